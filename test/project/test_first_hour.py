"""The walk of docs/quick_start.md, as a newcomer takes it: its files and its commands.

What it says in Python runs in test_docs_blocks.py. Pages are saved here instead of served.
"""

import re
import subprocess
import sys

import pytest
from markdown_pages import ROOT

import contact_sim

PAGE = (ROOT / 'docs' / 'quick_start.md').read_text(encoding='utf-8')


def block(language, after):
    """Return the first fenced block of `language` behind the text `after`."""
    found = re.search(rf'```{language}\n(.*?)```', PAGE[PAGE.index(after) :], re.DOTALL)
    return found.group(1)


def commands(part):
    """Return the command lines of one numbered part of the page."""
    section = re.search(rf'^## {part}\. .*?(?=^## )', PAGE, re.DOTALL | re.MULTILINE).group(0)
    blocks = re.findall(r'```sh\n(.*?)```', section, re.DOTALL)
    return [line.partition('  #')[0].split() for text in blocks for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path):
    controller = block('python', 'Write this into\n`my_controller.py`')
    (tmp_path / 'my_controller.py').write_text(controller, encoding='utf-8')
    description = contact_sim.load_robot('go1').description
    (tmp_path / 'my_robot.urdf').write_text(description, encoding='utf-8')
    return tmp_path


def run(folder, words):
    assert words[:2] == ['python', '-m']
    return subprocess.run(
        [sys.executable, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=240
    )


def test_the_parts_lead_from_a_robot_to_ones_own():
    heads = re.findall(r'^## \d\. (.*)$', PAGE, re.MULTILINE)
    assert heads == [
        'Install', 'A robot', 'Run it', 'Look at it', 'Your own controller', 'Your own robot',
    ]  # fmt: skip
    given = re.search(r"write_text\('''(.*?)'''\)", PAGE, re.DOTALL).group(1)
    assert given == block('python', 'Write this into\n`my_controller.py`')  # what the page runs


def test_a_robot_of_ones_own_is_inspected(folder):
    inspect = next(words for words in commands(6) if 'contact_sim.inspect' in words)
    result = run(folder, inspect)
    assert result.returncode == 0, result.stderr
    assert 'FL_foot' in result.stdout
    assert 'stands' in result.stdout


@pytest.mark.parametrize('part', [4, 5, 6])
def test_the_viewer_shows_what_each_part_asks_for(folder, part):
    pytest.importorskip('viser')
    (shown,) = [words for words in commands(part) if 'contact_sim.view' in words]
    result = run(folder, [*shown, '--save', 'seen.html', '--duration', '0.2'])
    assert result.returncode == 0, result.stderr
    assert (folder / 'seen.html').stat().st_size > 1e4


def test_a_controller_of_ones_own_gets_a_verdict(folder):
    """With a smaller budget than the page has; what is there by then is written."""
    (asked,) = [words for words in commands(5) if 'contact_sim.verdict' in words]
    assert asked[-2] == '--budget'
    result = run(folder, [*asked[:-1], '8s'])
    assert result.returncode == 0, result.stderr
    assert 'wrote out/verdict/verdict.html' in result.stdout
    assert (folder / 'out' / 'verdict' / 'verdict.png').stat().st_size > 1e4


def test_the_extras_that_the_page_installs_are_those_that_it_needs():
    install = ' '.join(commands(1)[0])
    assert install == "pip install '.[robots,view,verdict]'"
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    assert install in readme.partition('\n## ')[0]
