"""A xacro is a program: it runs where it was asked for, with its arguments, and nowhere else."""

from pathlib import Path

import pytest
from urdf_texts import ONE_LEG, XACRO_HEAD, program

from contact_sim import load_robot
from contact_sim.errors import InvalidInput, RobotDescriptionError


def test_it_runs_if_its_file_says_so_or_if_asked_to(tmp_path):
    mark = tmp_path / 'it_ran'
    for name, arguments in (('r.xacro', None), ('r.urdf.xacro', {}), ('r.urdf', {'mass': 3})):
        path = tmp_path / name
        path.write_text(program(mark))
        expected = 3.0 if arguments else 2.0
        assert load_robot(path, xacro_arguments=arguments).total_mass == expected
        assert mark.exists()
        mark.unlink()
    assert load_robot(program(mark), xacro_arguments={'mass': 4.5}).total_mass == 4.5


@pytest.mark.parametrize('name', ['r.urdf', 'r.xml', 'r'])
def test_it_does_not_run_under_another_name(tmp_path, name):
    mark = tmp_path / 'it_ran'
    path = tmp_path / name
    path.write_text(program(mark))
    for source in (path, str(path), program(mark)):
        with pytest.raises(RobotDescriptionError, match=r'is a xacro, .* is run only if'):
            load_robot(source)
    assert not mark.exists()


def test_a_urdf_that_a_xacro_wrote_is_a_urdf():
    text = ONE_LEG.replace('name="one_leg"', XACRO_HEAD.removeprefix('<robot ').removesuffix('>'))
    assert load_robot(text).name == 'x'


@pytest.mark.parametrize('arguments', ['mass:=3', 3, [('mass', 3)], {3: 'mass'}])
def test_arguments_of_the_wrong_kind(arguments):
    with pytest.raises(InvalidInput, match=r'xacro_arguments = .*: expected values by name'):
        load_robot(program(Path('/nowhere')), xacro_arguments=arguments)


def test_find_finds_folders_above_the_file(tmp_path, monkeypatch):
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    path = tmp_path / 'my_robot' / 'urdf' / 'r.xacro'
    path.parent.mkdir(parents=True)
    found = '$(find my_robot)/parts/leg.xacro'
    path.write_text(f'{XACRO_HEAD}<xacro:include filename="{found}"/></robot>')
    leg = tmp_path / 'my_robot' / 'parts' / 'leg.xacro'
    leg.parent.mkdir()
    leg.write_text(ONE_LEG)
    assert load_robot(path).joint_names == ('hip', 'knee')
    path.write_text(path.read_text().replace('my_robot', 'far_away'))
    with pytest.raises(RobotDescriptionError, match=r'\$\(find package\) needs ROS 2'):
        load_robot(path)
