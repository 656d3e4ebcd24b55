"""load_robot: sources, feet, reference poses, meshes."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from urdf_texts import ONE_LEG, ONE_LEG_SRDF, SPHERE, joint, link, robot

from contact_sim import ContactPoint, load_robot
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName

XACRO = """<?xml version="1.0"?>
<robot name="from_xacro" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="mass" value="${2 * 3.5}"/>
  <link name="base"><inertial><mass value="${mass}"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
</robot>"""


def write(folder, name, text):
    path = Path(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def mesh(uri, use='visual'):
    return f'<{use}><geometry><mesh filename="{uri}"/></geometry></{use}>'


def with_mesh(uri, use='visual'):
    return robot(link('base', 1.0, mesh(uri, use)))


def test_text_path_and_string_path_are_the_same_robot(tmp_path):
    path = write(tmp_path, 'leg.urdf', ONE_LEG)
    robots = [load_robot(source) for source in (ONE_LEG, path, str(path), f'\ufeff\n {ONE_LEG}')]
    for one in robots:
        assert one.name == 'one_leg'
        assert one.joint_names == ('hip', 'knee')
        assert one.total_mass == 7.0
        assert one.description.strip() == ONE_LEG


def test_a_file_without_extension_in_the_working_folder(tmp_path, monkeypatch):
    write(tmp_path, 'leg', ONE_LEG)
    monkeypatch.chdir(tmp_path)
    assert load_robot('leg').name == 'one_leg'


def test_xacro_from_a_file_and_from_text(tmp_path):
    path = write(tmp_path, 'robot.urdf.xacro', XACRO)
    for source, arguments in ((path, None), (XACRO, {})):
        loaded = load_robot(source, xacro_arguments=arguments)
        assert loaded.name == 'from_xacro'
        assert loaded.total_mass == 7.0
        assert '${' not in loaded.description
        assert str(tmp_path) not in loaded.description


def test_xacro_includes_are_relative_to_the_file(tmp_path):
    write(tmp_path, 'parts/base.xacro', XACRO)
    path = write(
        tmp_path,
        'robot.xacro',
        '<robot name="outer" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="parts/base.xacro"/></robot>',
    )
    assert load_robot(path).total_mass == 7.0


def test_a_text_knows_nothing_of_the_file_before(tmp_path):
    write(tmp_path, 'part.xacro', XACRO)
    including = XACRO.replace(
        '<link name="base">', '<xacro:include filename="part.xacro"/><link name="more">'
    )
    with pytest.raises(RobotDescriptionError, match='no joint connects the links base, more'):
        load_robot(write(tmp_path, 'robot.xacro', including))  # it found part.xacro
    with pytest.raises(RobotDescriptionError, match=r'cannot read .*part.xacro'):
        load_robot(including, xacro_arguments={})


def test_a_byte_order_mark_is_not_part_of_the_robot(tmp_path):
    path = tmp_path / 'leg.urdf'
    path.write_text(ONE_LEG, encoding='utf-8-sig')
    assert load_robot(path).description == ONE_LEG


def test_dynamics_and_limits_come_from_the_urdf():
    leg = load_robot(ONE_LEG)
    assert leg.joint_damping.tolist() == [0.0] * 6 + [0.3, 0.0]
    assert leg.joint_friction.tolist() == [0.0] * 6 + [0.4, 0.0]
    assert leg.effort_limit.tolist() == [30.0, 30.0]
    assert leg.lower_position_limit.tolist() == [-1.0, -1.0]


def test_no_feet_without_argument_catalogue_and_srdf():
    leg = load_robot(ONE_LEG, body_contacts=False)
    assert leg.contact_points == ()
    assert leg.reference_configuration().tolist() == [0, 0, 0, 0, 0, 0, 1, 0, 0]


def test_feet_by_name_take_the_sphere_of_their_link():
    (foot,) = load_robot(ONE_LEG, feet=['foot']).contact_points
    assert (foot.name, foot.frame, foot.joint, foot.radius) == ('foot', 'foot', 'knee', 0.03)
    assert foot.offset == pytest.approx([0.01, 0.0, -0.18])


def test_a_fixed_joint_stands_for_its_link():
    (foot,) = load_robot(ONE_LEG, feet=['ankle']).contact_points
    assert (foot.frame, foot.radius) == ('ankle', 0.03)
    assert foot.offset == pytest.approx([0.01, 0.0, -0.18])


BOX = '<collision><origin xyz="0 0 1"/><geometry><box size="1 2 4"/></geometry></collision>'


def test_a_foot_touches_with_all_spheres_of_its_link():
    text = robot(link('base', 1.0, SPHERE + BOX + SPHERE.replace('0.01 0 0.02', '-1 0 0')))
    one, two = load_robot(text, feet=['base']).contact_points
    assert (one.name, two.name) == ('base_0', 'base_1')
    assert {one.frame, two.frame} == {'base'}
    assert one.radius == two.radius == 0.03
    assert one.offset.tolist() == [0.01, 0.0, 0.02]
    assert two.offset.tolist() == [-1.0, 0.0, 0.0]
    assert [foot.points for foot in load_robot(text, feet=['base']).feet] == [(0, 1)]


def test_a_foot_without_spheres_touches_with_the_corners_of_its_link():
    loaded = load_robot(robot(link('base', 1.0, BOX)), feet=['base'])
    corners = [[x, y, z] for x in (-0.5, 0.5) for y in (-1.0, 1.0) for z in (-1.0, 3.0)]
    assert sorted(point.offset.tolist() for point in loaded.contact_points) == corners
    assert all(point.radius == 0.0 for point in loaded.contact_points)
    assert any('base touches with 8 points' in note for note in loaded.notes)


def test_a_foot_without_geometry_touches_at_its_origin():
    for shapes in ('', MESH.format('nowhere.stl')):
        text = robot(link('base', 1.0, shapes))
        (point,) = load_robot(text, feet=['base'], check_meshes=False).contact_points
        assert (point.name, point.radius) == ('base', 0.0)
        assert not point.offset.any()
    with pytest.warns(UserWarning, match="foot 'base' touches at its origin: .*nowhere.stl"):
        load_robot(text, feet=['base'], check_meshes=False)


MESH = '<collision><geometry><mesh filename="{}"/></geometry></collision>'


def test_a_mesh_beside_the_file_is_found(tmp_path):
    corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    faces = ['1 2 4', '1 4 3', '5 7 8', '5 8 6', '1 5 6', '1 6 2', '3 4 8', '3 8 7', '1 3 7',
             '1 7 5', '2 6 8', '2 8 4']  # fmt: skip
    lines = [*(f'v {x} {y} {z}' for x, y, z in corners), *(f'f {face}' for face in faces)]
    (tmp_path / 'meshes').mkdir()
    (tmp_path / 'meshes' / 'cube.obj').write_text('\n'.join(lines))
    path = write(tmp_path, 'r.urdf', robot(link('base', 1.0, MESH.format('meshes/cube.obj'))))
    loaded = load_robot(path, feet=['base'])
    assert sorted(tuple(p.offset.tolist()) for p in loaded.contact_points) == corners
    assert len(load_robot(path, feet=()).with_body_contacts().body_points) == 8


def test_no_feet_are_a_warning():
    with pytest.warns(UserWarning, match='no feet are known, only other links touch the ground'):
        load_robot(ONE_LEG)


@pytest.mark.parametrize('said', [{'feet': ()}, {'floating_base': False}, {'feet': ['foot']}])
def test_no_warning_where_feet_are_not_missed(said):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        load_robot(ONE_LEG, **said)


def test_feet_as_contact_points():
    point = ContactPoint('toe', 'foot', 'knee', [0.0, 0.1, -0.2], 0.01)
    leg = load_robot(ONE_LEG, feet=[point, 'foot'])
    assert [foot.name for foot in leg.contact_points] == ['toe', 'foot']
    assert leg.contact_points[0] is point


def test_feet_of_the_argument_win_over_the_catalogue():
    go1 = load_robot('go1', feet=('RR_foot', 'FL_calf'))
    assert [foot.name for foot in go1.feet] == ['RR_foot', 'FL_calf']
    assert [point.radius for point in go1.contact_points] == [0.02, *[0.0] * 8]
    assert load_robot('go1', feet=()).contact_points == ()
    (foot,) = load_robot('solo12', feet=['HL_FOOT']).contact_points
    assert foot.radius == 0.016


def test_end_effectors_and_poses_of_an_srdf(tmp_path):
    path = write(tmp_path, 'leg.srdf', ONE_LEG_SRDF)
    for srdf in (path, str(path), ONE_LEG_SRDF):
        leg = load_robot(ONE_LEG, srdf=srdf)
        assert [foot.name for foot in leg.contact_points] == ['foot']
        assert leg.reference_configurations == ('standing', 'half_sitting')
        standing = leg.reference_configuration()
        assert leg.joint_positions(standing).tolist() == [0.5, -0.5]
        # hip and knee joints hang 0.2 m below their parents: 0.2 + 0.2 cos 0.5 + the foot
        height = 0.2 + 0.2 * np.cos(0.5) + 0.2 - 0.02 + 0.03
        assert standing[:3] == pytest.approx([1.0, 2.0, height], abs=1e-12)
        assert leg.joint_positions(leg.reference_configuration('half_sitting')).tolist() == [1, 0]


def test_a_pose_and_a_foot_that_several_groups_name():
    srdf = ONE_LEG_SRDF.replace(
        '</robot>',
        '<end_effector name="same" parent_link="foot" group="all"/>'
        '<group_state name="half_sitting" group="shin"><joint name="knee" value="-0.25"/>'
        '</group_state></robot>',
    )
    leg = load_robot(ONE_LEG, srdf=srdf)
    assert [foot.name for foot in leg.contact_points] == ['foot']
    sitting = leg.reference_configuration('half_sitting')
    assert leg.joint_positions(sitting).tolist() == [1.0, -0.25]


def test_rounded_quaternions_of_an_srdf_are_normalised():
    srdf = ONE_LEG_SRDF.replace('0. 0. 0. 1."', '0. 0. 0.707 0.707"')
    q = load_robot(ONE_LEG, srdf=srdf).reference_configuration()
    assert q[5:7] == pytest.approx([np.sqrt(0.5)] * 2, abs=1e-15)


def test_arguments_of_a_xacro_take_their_defaults():
    text = XACRO.replace(
        '<xacro:property name="mass" value="${2 * 3.5}"/>', '<xacro:arg name="mass" default="4"/>'
    ).replace('${mass}', '$(arg mass)')
    assert load_robot(text, xacro_arguments={}).total_mass == 4.0


def test_feet_of_the_argument_win_over_the_srdf():
    leg = load_robot(ONE_LEG, feet=['shank'], srdf=ONE_LEG_SRDF)
    assert [foot.name for foot in leg.contact_points] == ['shank']


def test_fixed_base_keeps_its_place():
    leg = load_robot(ONE_LEG, floating_base=False, feet=['foot'], srdf=ONE_LEG_SRDF)
    assert leg.reference_configuration().tolist() == [0.5, -0.5]
    assert leg.joint_damping.tolist() == [0.3, 0.0]
    with pytest.raises(InvalidInput, match="'base' is fixed to the world"):
        load_robot(ONE_LEG, floating_base=False, feet=['base'])


def test_floating_joint_of_the_urdf_is_a_floating_base():
    text = robot(
        link('world', None),
        link('base', 3.0, SPHERE),
        joint('float', 'world', 'base', 'floating', limit=''),
    )
    ball = load_robot(text, floating_base=False, feet=['base'])
    assert ball.floating_base
    assert ball.base_frame == 'base'
    assert ball.joint_names == ()
    # the joint sits 0.2 m below the world's origin: its z says how far the base is above that
    assert ball.reference_configuration()[2] == pytest.approx(0.2 - 0.02 + 0.03)


def test_massless_links_between_joints_and_frames_are_fine():
    text = robot(
        link('base', 2.0),
        link('imu', None),
        link('marker', 0.0),
        link('universal', None),
        link('leg'),
        joint('to_imu', 'base', 'imu', 'fixed', limit=''),
        joint('to_marker', 'base', 'marker', 'fixed', limit=''),
        joint('roll', 'base', 'universal', axis='1 0 0'),
        joint('pitch', 'universal', 'leg'),
    )
    assert load_robot(text).total_mass == 3.0


def test_actuated_joints_keep_the_order_of_pinocchio():
    leg = load_robot(ONE_LEG, actuated_joints=['knee'])
    assert leg.joint_names == ('knee',)
    assert leg.selection_matrix.tolist() == [[0.0] * 7 + [1.0]]
    both = load_robot(ONE_LEG, actuated_joints=['knee', 'hip'])
    assert both.joint_names == ('hip', 'knee')


def test_package_above_the_file_is_found(tmp_path):
    write(tmp_path, 'my_robot/meshes/base.stl', '')
    path = write(tmp_path, 'my_robot/urdf/r.urdf', with_mesh('package://my_robot/meshes/base.stl'))
    assert load_robot(path).package_dirs == (str(tmp_path),)


@pytest.mark.parametrize('variable', ['AMENT_PREFIX_PATH', 'ROS_PACKAGE_PATH'])
def test_package_of_a_workspace_is_found(tmp_path, monkeypatch, variable):
    share = tmp_path / 'share' if variable == 'AMENT_PREFIX_PATH' else tmp_path
    write(share, 'my_robot/base.stl', '')
    text = with_mesh('package://my_robot/base.stl')
    with pytest.raises(RobotDescriptionError, match="no package 'my_robot'"):
        load_robot(text)
    monkeypatch.setenv(variable, str(tmp_path))
    assert load_robot(text).package_dirs == (str(share),)


def test_meshes_beside_the_file_and_with_a_full_path(tmp_path):
    base = write(tmp_path, 'a base.stl', '')
    assert load_robot(write(tmp_path, 'r.urdf', with_mesh('a base.stl'))).package_dirs == (
        str(tmp_path),
    )
    for uri in (str(base), base.as_uri()):
        assert load_robot(with_mesh(uri)).name == 'tiny'


def test_uris_that_only_others_understand_are_left_alone():
    assert load_robot(with_mesh('http://example.org/base.stl')).name == 'tiny'


@pytest.mark.parametrize('use', ['visual', 'collision'])
def test_missing_mesh(tmp_path, use):
    path = write(tmp_path, 'pkg/r.urdf', with_mesh('package://pkg/nowhere.stl', use))
    with pytest.raises(RobotDescriptionError) as caught:
        load_robot(path)
    message = str(caught.value)
    assert f"{path}: link 'base': {use} mesh 'package://pkg/nowhere.stl' not found" in message
    assert f'there is no file {tmp_path}/pkg/nowhere.stl' in message
    assert load_robot(path, check_meshes=False).total_mass == 1.0


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(RobotDescriptionError, match=r'cannot read .*gone.urdf: No such file'):
        load_robot(tmp_path / 'gone.urdf')
    with pytest.raises(RobotDescriptionError, match=r'cannot read gone.xacro: No such'):
        load_robot('gone.xacro')
    with pytest.raises(RobotDescriptionError, match='it is a folder, expected a regular file'):
        load_robot(tmp_path)
    with pytest.raises(RobotDescriptionError, match=r'cannot read .*gone.srdf: No such file'):
        load_robot(ONE_LEG, srdf=tmp_path / 'gone.srdf')


@pytest.mark.parametrize('source', ['', '  ', None, 3, b'<robot/>', ['go1']])
def test_sources_of_the_wrong_kind(source):
    with pytest.raises(InvalidInput, match=r'expected a name \(a1, go1.*\), a path or URDF text'):
        load_robot(source)


def test_names_longer_than_a_file_name():
    with pytest.raises(UnknownName, match='unknown robot or file'):
        load_robot('x' * 5000)


def test_feet_have_to_exist():
    with pytest.raises(UnknownName, match=r"unknown contact frame 'paw'; known: .*FL_foot"):
        load_robot('go1', feet=['paw'])
    with pytest.raises(UnknownName, match="unknown contact frame 'paw'"):
        load_robot(ONE_LEG, srdf='<robot name="x"><end_effector parent_link="paw"/></robot>')
    with pytest.raises(InvalidInput, match="feet = 'FL_foot': expected a list"):
        load_robot('go1', feet='FL_foot')
    with pytest.raises(InvalidInput, match="contact point 'FL_foot' is listed more than once"):
        load_robot('go1', feet=['FL_foot', 'FL_foot'])


def test_actuated_joints_have_to_exist():
    with pytest.raises(UnknownName, match=r"unknown actuated joint 'tail'; known: .*FL_hip_joint"):
        load_robot('go1', actuated_joints=['tail'])
    with pytest.raises(InvalidInput, match="'root_joint' has 6 degrees of freedom"):
        load_robot('go1', actuated_joints=['root_joint'])
