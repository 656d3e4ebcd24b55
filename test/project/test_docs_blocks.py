"""Every code block of the documentation runs, or is checked as far as that goes without a robot.

Python blocks of a page share their names, as in a session. A comment before a block says what is
not worth showing:

    <!-- given: sim = Simulator(load_robot('go1')) -->     run before the block
    <!-- not run: needs a ROS installation -->             the reason why it is not

A block of kind `text` right after one that prints is what it prints.
"""

import contextlib
import inspect
import io
import json
import re
from xml.etree import ElementTree

import pytest
import yaml
from command_lines import commands, complaint, known_parameter
from markdown_pages import ROOT, blocks, pages

PAGES = pages()
FIXTURES = {'trial', 'tmp_path'}
EXTRAS = {'mjcf': ('mjcf', 'mujoco'), 'torch': ('torch', 'torch'), 'jax': ('jax', 'jax')}
"""Extra and package that the Python of a page needs, by its name."""
NOT_RUN = 5
"""Largest number of blocks that are not run."""


def of_language(*languages):
    found = [block for page in PAGES for block in blocks(page) if block.language in languages]
    return pytest.mark.parametrize('block', found, ids=lambda block: block.place)


def dotted(values, prefix=''):
    """Return the parameters of a file as dotted names."""
    names = []
    for name, value in values.items():
        nested = isinstance(value, dict)
        names += dotted(value, f'{prefix}{name}.') if nested else [f'{prefix}{name}']
    return names


def shown_output(page, block):
    """Return the block of kind `text` right after a block, None where there is none."""
    after = f'{block.text}```\n\n```text\n'
    _, found, rest = page.read_text(encoding='utf-8').partition(after)
    return rest.partition('```')[0] if found else None


def run(block, names):
    """Run a block with the names of those before it; return (new names of tests, its output)."""
    exec(compile(block.given, f'before {block.place}', 'exec'), names)
    before, printed = set(names), io.StringIO()
    with contextlib.redirect_stdout(printed):
        # as many empty lines as come before the block: a traceback shows the line of the page
        exec(compile('\n' * block.line + block.text, str(block.page), 'exec'), names)
    return [name for name in names.keys() - before if name.startswith('test_')], printed.getvalue()


@pytest.mark.parametrize(
    'page',
    [page for page in PAGES if any(block.language == 'python' for block in blocks(page))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch, request):
    if page.stem in EXTRAS:
        extra, package = EXTRAS[page.stem]
        pytest.importorskip(package, reason=f'the extra {extra} is not installed')
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks(page):
        if block.language != 'python' or block.skipped:
            continue
        tests, printed = run(block, names)
        assert 'nan' not in printed, block.place
        assert printed == (shown_output(page, block) or printed), block.place
        for name in tests:
            wanted = set(inspect.signature(names[name]).parameters)
            assert wanted <= FIXTURES, f'{block.place}: {name} wants {wanted - FIXTURES}'
            names[name](**{fixture: request.getfixturevalue(fixture) for fixture in wanted})


@of_language('sh', 'bash', 'console')
def test_commands_are_those_that_there_are(block):
    if not block.skipped:
        found = {' '.join(command): complaint(command) for command in commands(block.text)}
        assert found
        assert {command: reason for command, reason in found.items() if reason} == {}


@of_language('yaml')
def test_yaml_is_read_and_names_parameters_that_the_node_has(block):
    content = yaml.safe_load(block.text)
    assert content
    given = content.get('/**', {}).get('ros__parameters', {}) if isinstance(content, dict) else {}
    assert [name for name in dotted(given) if not known_parameter(name)] == []


@of_language('json', 'xml')
def test_data_are_well_formed(block):
    if block.language == 'xml':
        ElementTree.fromstring(f'<page>{block.text}</page>')
    else:
        json.loads(block.text)


def test_every_block_is_of_a_kind_that_is_checked_or_shows_no_code():
    checked = {'python', 'sh', 'bash', 'console', 'yaml', 'json', 'xml'}
    shown = {'', 'text', 'math', 'bibtex', 'cpp'}
    kinds = {block.language: block.place for page in PAGES for block in blocks(page)}
    assert {kind: place for kind, place in kinds.items() if kind not in checked | shown} == {}


def test_few_blocks_are_not_run_and_each_says_why():
    skipped = [block for page in PAGES for block in blocks(page) if block.skipped]
    assert len(skipped) <= NOT_RUN
    for block in skipped:
        assert len(block.skipped.split()) >= 3, block.place


def test_comments_for_blocks_stand_before_blocks():
    for page in PAGES:
        text = page.read_text(encoding='utf-8')
        said = re.findall(r'<!--\s*(?:given|not run)', text)
        assert len(said) == sum(bool(block.given or block.skipped) for block in blocks(page)), page


@pytest.mark.parametrize(
    'command',
    [
        'python -m contact_sim.compare --scenaro slide',
        'python -m contact_sim.compare --models nsp',
        'python -m contact_sim.nowhere',
        'python benchmarks/nothing.py',
        'make tset',
        'make demo ROBOTS=go1',
        "pip install '.[robot]'",
        'ros2 launch contact_sim simulation.launch.py robt:=go1',
        'ros2 run contact_sim simulator',
        'ros2 run contact_sim simulation --ros-args -p friction:=0.4',
        'ros2 param set /contact_sim friction.mue 0.4',
        'ros3 run contact_sim simulation',
    ],
)
def test_wrong_commands_are_noticed(command):
    (words,) = commands(command)
    assert complaint(words)


def test_commands_are_split_as_a_shell_would():
    text = "A=1 make lint && cd x  # why\nros2 run a b \\\n    -p c:='d e' | cat\n"
    assert list(commands(text)) == [
        ['make', 'lint'], ['cd', 'x'], ['ros2', 'run', 'a', 'b', '-p', 'c:=d e'], ['cat'],
    ]  # fmt: skip
