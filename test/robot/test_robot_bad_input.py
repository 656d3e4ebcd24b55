"""Arguments and models that cannot be used: each is refused with what is wrong and where."""

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import ONE_LEG, joint, link, robot

from contact_sim import ContactPoint, RobotModel, load_robot
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName

LEG = load_robot(ONE_LEG, feet=['foot'])


def pendulum(kind=None):
    """Return a model of one joint with a body that has inertia in every direction."""
    model = pin.Model()
    index = model.addJoint(0, kind or pin.JointModelRX(), pin.SE3.Identity(), 'swing')
    inertia = pin.Inertia(1.0, np.array([0.0, 0.1, -0.1]), 0.01 * np.eye(3))
    model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    model.addBodyFrame('bob', index, pin.SE3.Identity(), 0)
    return model


@pytest.mark.parametrize(
    ('frames', 'message'),
    [
        (5, 'feet = 5: expected a list of frame names or contact points'),
        ('foot', "feet = 'foot': expected a list of frame names"),
        ([3], 'feet: 3 is in the list, expected frame names or contact points'),
        ([['foot']], r"feet: \['foot'\] is in the list"),
        (['universe'], "contact frame 'universe' is fixed to the world"),
        (['foot', 'foot'], "contact point 'foot' is listed more than once"),
        (
            [ContactPoint('toe', 'foot', 'hip', np.zeros(3), 0.0)],
            "contact point 'toe': frame 'foot' moves with joint 'knee', not with 'hip'",
        ),
    ],
)
def test_feet(frames, message):
    with pytest.raises(InvalidInput, match=message):
        load_robot(ONE_LEG, feet=frames)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'radius': -0.01}, 'radius = -0.01 m: expected a finite value of at least 0'),
        ({'radius': np.nan}, 'radius = nan m'),
        ({'radius': 'big'}, "radius = 'big' m"),
        ({'offset': [0.0, 0.0]}, r'offset = \[0.0, 0.0\] m: expected three finite numbers'),
        ({'offset': [0.0, 0.0, np.inf]}, 'expected three finite numbers'),
        ({'offset': 'xyz'}, 'expected three finite numbers'),
        ({'name': ''}, "ContactPoint.name = '': expected a non-empty string"),
        ({'joint': 3}, 'ContactPoint.joint = 3: expected a non-empty string'),
    ],
)
def test_bad_contact_points(change, message):
    good = {'name': 'foot', 'frame': 'f', 'joint': 'j', 'offset': np.zeros(3), 'radius': 0.0}
    with pytest.raises(InvalidInput, match=message):
        ContactPoint(**(good | change))


@pytest.mark.parametrize(
    ('joints', 'error', 'message'),
    [
        (3, InvalidInput, 'actuated_joints = 3: expected a list of joint names'),
        ('hip', InvalidInput, "actuated_joints = 'hip': expected a list of joint names"),
        (['hip', 'hip'], InvalidInput, "actuated joint 'hip' is listed more than once"),
        (['root_joint'], InvalidInput, "'root_joint' has 6 degrees of freedom"),
        ([3], UnknownName, 'unknown actuated joint 3; known: .*hip, knee'),
        ([['hip']], UnknownName, r"unknown actuated joint \['hip'\]"),
        (['universe'], UnknownName, "unknown actuated joint 'universe'"),
        (['ankle'], UnknownName, "unknown actuated joint 'ankle'"),  # a fixed joint
    ],
)
def test_actuated_joints(joints, error, message):
    with pytest.raises(error, match=message):
        load_robot(ONE_LEG, actuated_joints=joints)


@pytest.mark.parametrize('source', ['a\0b.urdf', 'folder/\0'])
def test_paths_with_a_null_character(source):
    with pytest.raises(RobotDescriptionError, match=r'cannot read .*null'):
        load_robot(source)


def test_text_that_is_not_unicode():
    with pytest.raises(RobotDescriptionError, match=r'URDF text is not well-formed XML: .*utf-8'):
        load_robot('<robot name="\ud800"/>')


@pytest.mark.parametrize(
    ('name', 'floating'), [('root_joint', True), ('universe', True), ('universe', False)]
)
def test_joints_called_as_pinocchio_calls_its_own(name, floating):
    text = robot(link('base'), link('leg'), joint(name, 'base', 'leg'))
    with pytest.raises(RobotDescriptionError, match=f"URDF text: joint '{name}': Pinocchio gives"):
        load_robot(text, floating_base=floating)


def test_a_joint_called_root_joint_is_fine_without_ours():
    text = robot(link('base'), link('leg'), joint('root_joint', 'base', 'leg'))
    assert load_robot(text, floating_base=False).joint_names == ('root_joint',)


def test_a_mesh_without_a_filename():
    text = robot(link('base', 1.0, '<visual><geometry><mesh/></geometry></visual>'))
    with pytest.raises(
        RobotDescriptionError, match="visual mesh '' not found: it has no filename"
    ):
        load_robot(text)


def test_find_in_a_xacro_without_a_workspace(monkeypatch):
    monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    text = (
        '<robot name="x" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:include filename="$(find far_away)/a.xacro"/></robot>'
    )
    with pytest.raises(RobotDescriptionError, match=r'\$\(find package\) needs ROS 2: source'):
        load_robot(text, xacro_arguments={})


def test_a_robot_that_cannot_move():
    with pytest.raises(RobotDescriptionError, match='robot tiny: it has no joint that moves'):
        load_robot(robot(link('base')), floating_base=False)
    with pytest.raises(RobotDescriptionError, match='robot robot: it has no joint that moves'):
        RobotModel.from_pinocchio(pin.Model())


@pytest.mark.parametrize('model', [None, 3, 'go1', LEG])
def test_what_is_no_pinocchio_model(model):
    with pytest.raises(InvalidInput, match=r'model = .*: expected a pinocchio.Model'):
        RobotModel.from_pinocchio(model)


@pytest.mark.parametrize('points', [5, 'bob', [3]])
def test_contact_points_of_a_pinocchio_model(points):
    with pytest.raises(InvalidInput, match=r'contact_points.*expected .*frame names or contact'):
        RobotModel.from_pinocchio(pendulum(), points)


def test_two_joints_of_one_name():
    model = pendulum()
    index = model.addJoint(1, pin.JointModelRY(), pin.SE3.Identity(), 'swing')
    model.appendBodyToJoint(index, model.inertias[1], pin.SE3.Identity())
    with pytest.raises(InvalidInput, match="joint 'swing' is listed more than once"):
        RobotModel.from_pinocchio(model)


@pytest.mark.parametrize('value', [np.nan, -1.0])
@pytest.mark.parametrize('what', ['damping', 'friction', 'effortLimit', 'velocityLimit'])
def test_numbers_of_a_joint(what, value):
    model = pendulum()
    setattr(model, what, np.array([value]))
    with pytest.raises(
        RobotDescriptionError, match=rf"joint 'swing': {what} = {value}, expected .*of at least 0"
    ):
        RobotModel.from_pinocchio(model)


@pytest.mark.parametrize('what', ['damping', 'friction'])
def test_infinite_damping(what):
    model = pendulum()
    setattr(model, what, np.array([np.inf]))
    with pytest.raises(RobotDescriptionError, match=f'{what} = inf, expected a finite number'):
        RobotModel.from_pinocchio(model)


def test_no_limit_of_effort_is_fine():
    model = pendulum()
    model.effortLimit = np.array([np.inf])
    assert RobotModel.from_pinocchio(model).effort_limit.tolist() == [np.inf]


def test_the_message_names_the_joint_of_the_number():
    model = pendulum(pin.JointModelFreeFlyer())
    index = model.addJoint(1, pin.JointModelRY(), pin.SE3.Identity(), 'tail')
    model.appendBodyToJoint(index, model.inertias[1], pin.SE3.Identity())
    for position, name in ((5, 'swing'), (6, 'tail')):
        damping = np.zeros(7)
        damping[position] = -1.0
        model.damping = damping
        with pytest.raises(RobotDescriptionError, match=f"joint '{name}': damping = -1.0"):
            RobotModel.from_pinocchio(model)


@pytest.mark.parametrize(('lower', 'upper'), [(2.0, 1.0), (np.nan, 1.0), (0.0, np.nan)])
def test_position_limits(lower, upper):
    model = pendulum()
    model.lowerPositionLimit, model.upperPositionLimit = np.array([lower]), np.array([upper])
    with pytest.raises(RobotDescriptionError, match="joint 'swing': position limits"):
        RobotModel.from_pinocchio(model)


def test_a_placement_that_is_not_finite():
    model = pendulum()
    model.jointPlacements[1] = pin.SE3(np.eye(3), np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(RobotDescriptionError, match="joint 'swing': its placement is not finite"):
        RobotModel.from_pinocchio(model)


@pytest.mark.parametrize('armature', [np.nan, -1.0])
def test_armatures_that_leave_no_inertia(armature):
    model = pendulum()
    model.armature = np.array([armature])
    with pytest.raises(RobotDescriptionError, match='the mass matrix is singular'):
        RobotModel.from_pinocchio(model)


def test_quaternion_inside_a_composite_joint():
    kind = pin.JointModelComposite(pin.JointModelTranslation())
    kind.addJoint(pin.JointModelSpherical())
    body = RobotModel.from_pinocchio(pendulum(kind))
    assert (body.nq, body.nv, body.joint_names) == (7, 6, ())
    assert body.checked_configuration([1, 2, 3, 0, 0, 0, 1]).tolist() == [1, 2, 3, 0, 0, 0, 1]
    with pytest.raises(InvalidInput, match=r"q\[3:7\] .*of joint 'swing', has norm 3"):
        body.checked_configuration([1, 2, 3, 0, 0, 0, 3])


@pytest.mark.parametrize('size', [3, 8, 20])
def test_vectors_of_the_wrong_length(size):
    wrong, right = np.zeros(size), LEG.reference_configuration()
    expected = rf'q of robot one_leg: shape \({size},\), expected \(9,\)'
    with pytest.raises(InvalidInput, match=expected):
        LEG.joint_positions(wrong)
    with pytest.raises(InvalidInput, match=expected):
        LEG.with_joint_positions(wrong, [0.0, 0.0])
    with pytest.raises(InvalidInput, match=rf'shape \({size + 1},\), expected \(8,\)'):
        LEG.joint_velocities(np.zeros(size + 1))
    with pytest.raises(InvalidInput, match=r'joint positions .* expected \(2,\)'):
        LEG.with_joint_positions(right, wrong)


def test_q_and_v_are_not_mistaken_for_each_other():
    with pytest.raises(InvalidInput, match='velocity v of robot one_leg'):
        LEG.joint_velocities(LEG.reference_configuration())
    with pytest.raises(InvalidInput, match='configuration q of robot one_leg'):
        LEG.joint_positions(np.zeros(LEG.nv))


def test_with_joint_positions_of_a_configuration_that_is_not_finite():
    with pytest.raises(InvalidInput, match='entry 0 is nan, not finite'):
        LEG.with_joint_positions([np.nan] + [0.0] * 8, [0.0, 0.0])


def test_lists_will_do():
    assert LEG.joint_positions([0, 0, 0, 0, 0, 0, 1, 2, 3]).tolist() == [2.0, 3.0]
    assert LEG.joint_velocities([0, 0, 0, 0, 0, 0, 4, 5]).tolist() == [4.0, 5.0]


@pytest.mark.parametrize('pose', ['flying', None, ['standing'], 3])
def test_reference_poses(pose):
    with pytest.raises(UnknownName, match=r'reference pose of robot one_leg .*; known: standing'):
        LEG.reference_configuration(pose)
