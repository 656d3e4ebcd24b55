"""`contact_sim COMMAND`: every program is listed, and its help has examples."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_lines import complaint
from markdown_pages import ROOT

import contact_sim.__main__ as command_line
from contact_sim.__main__ import COMMANDS

IN_ROS = {'node', 'stance', 'balance', 'trot', 'policy', 'demo'}


def run(*words):
    return subprocess.run(
        [sys.executable, '-m', 'contact_sim', *words], capture_output=True, text=True, timeout=120
    )


def test_every_room_that_can_be_run_is_a_command():
    package = ROOT / 'contact_sim'
    rooms = {f'contact_sim.{path.parent.name}' for path in package.glob('*/__main__.py')}
    assert rooms <= {command.module for command in COMMANDS.values()}


def test_without_a_command_it_lists_all_with_an_example_each(capsys):
    assert command_line.main([]) == 0
    said = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert re.search(rf'^  {name} +{re.escape(command.meaning)}$', said, re.MULTILINE)
        assert f'      contact_sim {name} {command.example}\n' in f'{said}\n'


@pytest.mark.parametrize('name', COMMANDS)
def test_the_examples_are_command_lines_that_there_are(name):
    command = COMMANDS[name]
    if name in IN_ROS:
        pytest.importorskip('rclpy')
    assert complaint(['contact_sim', name, *command.example.split()]) is None


@pytest.mark.parametrize('name', sorted(COMMANDS.keys() - IN_ROS))
def test_every_help_has_examples(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['contact_sim'])
    with pytest.raises(SystemExit) as end:
        command_line.main([name, '--help'])
    said = capsys.readouterr().out
    assert end.value.code == 0
    _, _, examples = re.sub(r'\\\n\s*', '', said).partition('\nexamples:\n')
    lines = re.findall(rf'^  python -m {re.escape(COMMANDS[name].module)} ?(.*)$', examples, re.M)
    assert lines
    for line in lines:
        words = line.partition('   ')[0].partition('  #')[0].split()
        assert complaint(['contact_sim', name, *words]) is None, line


@pytest.mark.ros
@pytest.mark.parametrize('name', sorted(IN_ROS))
def test_every_help_of_a_ros_program_has_examples(name):
    pytest.importorskip('rclpy')
    result = run(name, '--help')
    assert result.returncode == 0, result.stderr
    assert '\nexamples:\n' in result.stdout
    assert f'contact_sim {name} --ros-args' in result.stdout or name == 'demo'


def test_a_near_miss_is_named_and_ends_with_2(capsys):
    assert command_line.main(['veiw']) == 2
    assert "did you mean 'view'?" in capsys.readouterr().err


def test_a_command_runs_as_python_m_does(tmp_path):
    result = run('support', '--robot', 'quadruped', '--feet', 'LF_FOOT', 'RH_FOOT')
    assert result.returncode == 0, result.stderr
    assert 'quadruped' in result.stdout
    wrong = run('compare', '--models', 'NSP')
    assert wrong.returncode == 2
    assert "unknown contact model 'NSP'" in wrong.stderr
    assert 'did you mean' in wrong.stderr


def test_the_one_script_is_called_like_the_package():
    text = (ROOT / 'setup.py').read_text(encoding='utf-8')
    scripts = re.search(r"'console_scripts': \[(.*?)\]", text, re.DOTALL).group(1)
    assert scripts == "'contact_sim = contact_sim.__main__:main'"


@pytest.mark.parametrize(
    'name',
    ['simulation', *(f'{name}_controller' for name in ('stance', 'balance', 'trot', 'policy'))],
)
def test_the_executables_of_ros_start_what_launch_files_expect(name):
    file = Path(ROOT, 'scripts', name)
    assert file.stat().st_mode & 0o111 == 0o111
    text = file.read_text(encoding='utf-8')
    assert text.startswith('#!/usr/bin/env python3\n')
    module, function = re.search(r'^from (\S+) import (\w+)$', text, re.MULTILINE).groups()
    place = ROOT.joinpath(*module.split('.')).with_suffix('.py')
    assert f'def {function}(' in place.read_text(encoding='utf-8')
    assert f'\n{function}()' in text or f'({function}())' in text
