"""python -m contact_sim.inspect: what it understands of descriptions, and how it says so."""

import re
import shlex
import sys

import pytest
from legged import ball, biped, body, hinge, quadruped
from urdf_texts import ONE_LEG, ONE_LEG_SRDF

from contact_sim import load_robot
from contact_sim.errors import ContactSimError
from contact_sim.inspect.__main__ import main
from contact_sim.inspect._inspection import (
    Source,
    balance_trial,
    inspect_robot,
    lines,
    proposed_feet,
    run_next,
    standing_trial,
)


def write(folder, text, name='robot.urdf'):
    path = folder / name
    path.write_text(text)
    return str(path)


def said(found):
    return '\n'.join(lines(found))


def test_feet_by_name_at_the_ends_of_limbs():
    robot = load_robot(quadruped(), feet=())
    assert proposed_feet(robot).links == ('foot_fl', 'foot_fr', 'foot_hl', 'foot_hr')
    assert proposed_feet(load_robot(biped(), feet=())).links == ('sole_l', 'sole_r')


def test_feet_without_a_name_are_the_lowest_ends():
    text = quadruped().replace('foot_', 'peg_')
    found = proposed_feet(load_robot(text, feet=()))
    assert found.links == ('peg_fl', 'peg_fr', 'peg_hl', 'peg_hr')
    assert 'lowest ends' in found.why


def test_balls_of_the_trunk_beside_wheels_are_casters():
    parts = [body('base', 10.0, (0.5, 0.4, 0.2)), body('knob', 0.1, (0.1, 0.1, 0.1))]
    parts.append(hinge('top', 'base', 'knob', (1, 0, 0), (0, 0, 0.8), kind='fixed'))
    for name, x, y in (('left', 0.0, 0.2), ('right', 0.0, -0.2), ('front', 0.2, 0.0)):
        kind, axis = ('fixed', (1, 0, 0)) if name == 'front' else ('continuous', (0, 1, 0))
        parts.append(body(name, 0.5, (0.1, 0.1, 0.1), collision=ball(0.05)))
        parts.append(hinge(f'{name}_axle', 'base', name, axis, (x, y, -0.1), kind=kind))
    robot = load_robot(f'<robot name="cart">{"".join(parts)}</robot>', feet=())
    assert proposed_feet(robot).links == ('left', 'right', 'front')


def test_names_that_are_no_feet_and_a_body_without_limbs():
    text = biped().replace('sole_', 'foot_sensor_')
    assert 'lowest ends' in proposed_feet(load_robot(text, feet=())).why
    assert proposed_feet(load_robot('<robot name="b"><link name="foot"><inertial>'
        '<mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link></robot>', feet=())).links == ()  # fmt: skip


def test_what_is_said_is_what_the_robot_is(tmp_path):
    found = inspect_robot(Source(write(tmp_path, quadruped())))
    assert found.proposed
    text = said(found)
    robot = load_robot(quadruped(), feet=[foot.frame for foot in found.robot.feet])
    assert f'{robot.total_mass:.3f} kg, 17 links, 12 driven joints, floating base' in text
    assert 'feet (proposed: links at the ends of limbs by name):' in text
    assert 'foot_fl: 1 contact point, radius 20 mm, on what knee_fl moves; 1 on' in text
    row = next(line for line in text.splitlines() if line.startswith('knee_fl '))
    assert row.split() == ['knee_fl', '-2.6', '-0.1', '200', '30', '0', '0']
    assert 'legs bent to 90 % of their length' in text


def test_gains_and_the_step_up_to_which_they_are_stable():
    found = inspect_robot(Source('go1'))
    kp, kd = found.robot.default_gains
    (line,) = [line for line in lines(found) if line.startswith('default gains')]
    assert f'kp {kp.min():.3g} to {kp.max():.3g}, kd {kd.min():.3g} to {kd.max():.3g} ' in line
    assert line.endswith(f'time step of {1e3 * found.robot.gains_time_step:.2g} ms')


def test_the_lines_to_run_next_hold_what_was_found(tmp_path):
    path = write(tmp_path, quadruped())
    launch, python = list(run_next(inspect_robot(Source(path))))[1:]
    words = dict(word.split(':=') for word in shlex.split(launch) if ':=' in word)
    assert words['urdf'] == path
    assert words['feet'].split() == ['foot_fl', 'foot_fr', 'foot_hl', 'foot_hr']
    call = python.partition('contact_sim.')[2]
    robot = eval(call, {'load_robot': load_robot})
    assert [foot.name for foot in robot.feet] == words['feet'].split()


def test_feet_of_an_srdf_or_of_the_catalogue_are_not_proposed(tmp_path):
    found = inspect_robot(
        Source(write(tmp_path, ONE_LEG), srdf=write(tmp_path, ONE_LEG_SRDF, 'r.srdf'))
    )
    assert not found.proposed
    assert 'feet (end effectors of the SRDF):' in said(found)
    assert 'srdf=' in list(run_next(found))[2]
    assert 'feet (of the catalogue):' in said(inspect_robot(Source('quadruped')))
    given = inspect_robot(Source(write(tmp_path, ONE_LEG), feet=('shank',)))
    assert 'feet (as given):' in said(given)
    assert 'feet:=shank' in list(run_next(given))[1]


def test_what_is_missing_is_named(tmp_path):
    mesh = '<visual><geometry><mesh filename="gone.stl"/></geometry></visual></link>'
    text = ONE_LEG.replace('</link>', mesh, 1).replace('effort="30"', 'effort="0"')
    found = inspect_robot(Source(write(tmp_path, text)))
    shown = said(found)
    assert '1 meshes are not on this machine: gone.stl' in shown
    assert 'effort="0" is taken for no limit' in shown
    assert 'joints without an effort limit: hip, knee' in shown
    assert 'links with geometry and without mass: foot' in shown
    assert all('check_meshes' in line for line in list(run_next(found))[1:])


def test_a_robot_that_stands_and_one_that_cannot():
    assert standing_trial(load_robot('go1')).stands
    fallen = standing_trial(load_robot(ONE_LEG, feet=['foot']))
    assert not fallen.stands
    assert "in 'standing' 1 contact points are down and enclose no area" in fallen.why
    assert standing_trial(load_robot(ONE_LEG, feet=())).why.startswith('no contact points')
    assert not standing_trial(load_robot(ONE_LEG, floating_base=False)).stands


def test_a_trial_says_whether_a_robot_stands_under_balance_and_why_not():
    robot = load_robot(biped(), feet=['sole_l', 'sole_r'])
    trial = balance_trial(robot)
    assert trial.stands, trial.why
    assert re.search(r'can move \d+ mm forward, \d+ back, \d+ left, \d+ right$', trial.why)
    ankles = dict.fromkeys(('ankle_l', 'ankle_r'), 6.0)
    weak = balance_trial(robot.with_actuators(effort_limit=ankles))
    assert '(effort limits; to the edges of the soles: ' in weak.why
    feeble = balance_trial(robot.with_actuators(effort_limit=1.0))
    assert not feeble.stands
    assert feeble.why.startswith('falls: ')
    assert feeble.why.endswith('its effort limits do not carry it')
    point = balance_trial(load_robot(ONE_LEG, feet=['foot']))
    assert not point.stands
    assert point.why.startswith("cannot: in pose 'standing' 1 contact point is on the ground")
    fixed = balance_trial(load_robot(ONE_LEG, floating_base=False))
    assert fixed.why == 'cannot: its base is fixed: there is nothing to balance'


def test_the_command(tmp_path, capsys):
    path = write(tmp_path, quadruped())
    pytest.importorskip('matplotlib')
    assert main([path, '--no-trial', '--out', str(tmp_path / 'new')]) == 0
    printed = capsys.readouterr().out
    assert f'picture: {tmp_path}/new/inspect-four_legs.png' in printed
    assert (tmp_path / 'new' / 'inspect-four_legs.png').read_bytes()[:4] == b'\x89PNG'
    assert printed.rstrip().splitlines()[-2].strip().startswith('ros2 launch contact_sim')


def test_the_command_without_matplotlib(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, 'matplotlib', None)
    assert main(['quadruped', '--no-trial', '--out', str(tmp_path)]) == 0
    assert 'no picture: it needs matplotlib (pip install matplotlib)' in capsys.readouterr().out


def test_the_command_ends_in_one_line_where_a_file_cannot_be_read(tmp_path, capsys):
    assert main([str(tmp_path / 'none.urdf'), '--no-trial']) == 2
    error = capsys.readouterr().err
    assert error.startswith('python -m contact_sim.inspect: cannot read')
    assert error.count('\n') == 1
    with pytest.raises(ContactSimError):
        inspect_robot(Source('no_such_robot'))


def test_the_exit_status_says_whether_it_stands(tmp_path, capsys):
    path = write(tmp_path, ONE_LEG)
    assert main([path, '--feet', 'foot', '--out', str(tmp_path)]) == 1
    assert 'trial with default gains under ncp: falls' in capsys.readouterr().out
