"""python -m contact_sim.support: the table in words."""

import subprocess
import sys

import pytest

from contact_sim import InvalidInput, load_robot
from contact_sim.support.__main__ import main, stances, support_table


def cells(line):
    """Feet and integers of a row of the table."""
    words = line.split()
    first = next(k for k, word in enumerate(words) if word.isdecimal())
    return words[:first], [int(word) for word in words[first : first + 6]]


@pytest.mark.parametrize('name', ['anymal_b', 'go1', 'hyq', 'quadruped'])
def test_every_subset_of_feet_is_listed(name, capsys):
    assert main(['--robot', name]) == 0
    lines = capsys.readouterr().out.splitlines()[4:]
    assert len(lines) == 16
    for line in lines:
        feet, numbers = cells(line)
        count = 0 if feet == ['(flight)'] else len(feet)
        expected = {
            0: [0, 0, 0, 0, 6, 6], 1: [3, 3, 3, 0, 3, 6], 2: [6, 6, 5, 1, 1, 6],
            3: [9, 9, 6, 3, 0, 6], 4: [12, 12, 6, 6, 0, 6],
        }  # fmt: skip
        assert numbers == expected[count]


def test_one_stance_names_the_motion_that_is_free(capsys):
    assert main(['--robot', 'anymal_b', '--feet', 'LF_FOOT', '3']) == 0
    text = capsys.readouterr().out
    assert 'rotation about the line LF_FOOT - RH_FOOT' in text
    assert main(['--robot', 'anymal_b', '--feet', 'LF_FOOT', 'RF_FOOT', 'RH_FOOT']) == 0
    assert capsys.readouterr().out.rstrip().endswith('none')


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['--feet', 'tail'], "unknown foot 'tail'"),
        (['--robot', 'unicorn'], 'unicorn'),
        (['--pose', 'handstand'], 'handstand'),
        (['--feet', '0', 'LF_FOOT'], 'more than once'),
    ],
)
def test_bad_arguments_say_why(arguments, words, capsys):
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_robots_without_feet_and_with_too_many(capsys):
    assert main(['--robot', 'solo8', '--feet']) == 0
    assert '(flight)' in capsys.readouterr().out
    with pytest.raises(InvalidInput, match='8192 subsets'):
        stances(range(13))
    fixed = load_robot('go1', floating_base=False)
    text = support_table(fixed, fixed.reference_configuration(), [0])
    assert 'motions of the base' not in text


def test_the_command_runs():
    command = [
        sys.executable,
        '-m',
        'contact_sim.support',
        '--robot',
        'solo12',
        '--feet',
        'FL_FOOT',
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert 'rotation about z through FL_FOOT' in result.stdout
