"""The systems of examples/textbook: values of the texts, figures, and names to start them by."""

import numpy as np
import pytest

from contact_sim import Simulator, load_robot, robots, textbook_systems

pytest.importorskip('matplotlib', reason='the textbook draws with matplotlib (extra `demo`)')

from matplotlib.figure import Figure
from textbook.__main__ import main
from textbook.quantity import Quantity
from textbook.reference import PAGE, page
from textbook.system import System, systems

SYSTEMS = systems()
each_system = pytest.mark.parametrize('system', SYSTEMS.values(), ids=SYSTEMS)


@each_system
def test_values_are_those_of_the_text(system):
    """Among them X30 to X37: X30, X31, X32, X33, X34, X35, X36, X37, which no other test has."""
    assert system.quantities
    assert [(one.tag, one.name, one.error) for one in system.quantities if not one.passed] == []


@each_system
def test_there_is_something_to_see(system):
    figure = Figure()
    system.draw(figure)
    assert figure.axes
    assert all(axes.has_data() for axes in figure.axes)


def test_the_page_is_up_to_date():
    text = PAGE.read_text(encoding='utf-8')
    assert page(text, SYSTEMS) == text, 'run make generate'


@each_system
def test_it_says_what_it_is(system):
    title, blank, *body = system.text.split('\n')
    assert title.endswith('.')
    assert blank == ''
    assert body
    assert system.source
    assert system.robot in robots() + textbook_systems()


@pytest.mark.parametrize('name', textbook_systems())
def test_a_system_has_a_name_and_moves(name):
    """Loaded by name as `robot:=` does it, and ten steps from its pose are finite."""
    robot = load_robot(name)
    assert robot.name == name
    sim = Simulator(robot)
    sim.reset(robot.reference_configuration())
    for _ in range(10):
        report = sim.step(np.zeros(robot.n_joints))
    assert np.isfinite(report.q).all()


def test_the_command(tmp_path, capsys, monkeypatch):
    """A table with a line per value, a figure per system, and a status that tells."""
    parts = (
        (lambda: [Quantity('T2', 'angle [rad]', (1.0, 2.0), (1.0, 2.0 + 1e-7), 1e-6)]),
        (lambda figure: figure.subplots().plot([0.0, 1.0])),
    )
    good = System('good', 'A system.', 'a text, 1.2', 'go1', *parts)
    bad = System('bad', 'Another.', 'a text', 'go1', lambda: [Quantity('E1', 'x', 0.0, np.nan, 1)],
                 parts[1])  # fmt: skip
    monkeypatch.setattr('textbook.__main__.systems', lambda: {'good': good, 'bad': bad})
    assert main(['good', '--figures', str(tmp_path)]) == 0
    (header, line, _) = capsys.readouterr().out.splitlines()
    assert header.split() == ['system', 'source', 'quantity', 'in', 'the', 'text', 'here', 'error']
    assert line.split() == ['good', 'a', 'text,', '1.2', 'T2', 'angle', '[rad]',
                            '(1,', '2)', '(1,', '2.0000001)', '5.0e-08', 'pass']  # fmt: skip
    assert (tmp_path / 'good.png').read_bytes().startswith(b'\x89PNG')
    assert main(['--figures', str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines()[2].split()[-2:] == ['nan', 'FAIL']
    with pytest.raises(SystemExit, match='2'):
        main(['ugly'])
    assert 'unknown: ugly; there are good, bad' in capsys.readouterr().err
