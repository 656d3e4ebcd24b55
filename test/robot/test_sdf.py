"""SDF: poses, axes and joints against Drake's parser and against the same robot as a URDF."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from contact_sim import load_robot
from contact_sim.constraints import LoopClosure
from contact_sim.errors import RobotDescriptionError
from contact_sim.robot import JointSpring

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'benchmarks'))

TOLERANCE = 1e-9
BODY = (
    '<inertial><pose>0.1 0.2 -0.1 0.3 0.2 0.1</pose><mass>{}</mass><inertia><ixx>0.2</ixx>'
    '<iyy>0.3</iyy><izz>0.25</izz><ixy>0.01</ixy><ixz>-0.02</ixz><iyz>0.03</iyz></inertia>'
    '</inertial>'
)


def loaded(text, **options):
    """Return the robot of an SDF text, without the warning that no feet are known."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return load_robot(text, **options)


def sdf(inside, version='1.9'):
    """Return an SDF of one model."""
    return f'<sdf version="{version}"><model name="machine">{inside}</model></sdf>'


def link(name, pose='', mass=1.0, inside=''):
    """Return a link with a pose in the model."""
    placed = f'<pose>{pose}</pose>' if pose else ''
    return f'<link name="{name}">{placed}{BODY.format(mass)}{inside}</link>'


def joint(name, parent, child, kind='revolute', axis='<xyz>0 1 0</xyz>', pose=''):
    """Return a joint with an axis."""
    return (
        f'<joint name="{name}" type="{kind}">{pose}<parent>{parent}</parent><child>{child}</child>'
        f'<axis>{axis}</axis></joint>'
    )


TWO = link('base', '0.1 0.2 0.3 0.1 0.2 0.3') + link('arm', '0.4 0.1 0.5 0.5 -0.2 0.7', 2.0)
FEATURES = {
    'a hinge at its child': TWO + joint('hinge', 'base', 'arm'),
    'a slider': TWO + joint('slider', 'base', 'arm', 'prismatic', '<xyz>1 2 3</xyz>'),
    'a joint beside its child': TWO + joint(
        'hinge', 'base', 'arm', pose='<pose>0.1 -0.2 0.3 0.4 0.5 0.6</pose>'),
    'poses relative to others': (
        link('base') + f'<link name="arm"><pose relative_to="hinge">0 0 0.1 0 0 0</pose>'
        f'{BODY.format(2.0)}</link>' + joint(
            'hinge', 'base', 'arm', pose='<pose relative_to="base">0.3 0 0 1 0 0</pose>')),
    'an axis in another frame': TWO + joint(
        'hinge', 'base', 'arm', axis='<xyz expressed_in="__model__">1 1 0</xyz>'),
    'degrees and quaternions': (
        '<link name="base"><pose degrees="true">0 0 0 10 20 30</pose>' + BODY.format(1.0)
        + '</link><link name="arm"><pose rotation_format="quat_xyzw">0 0 1 0.5 0.5 0.5 0.5</pose>'
        + BODY.format(2.0) + '</link>' + joint('hinge', 'base', 'arm')),
    'a fixed base': TWO + joint('hinge', 'base', 'arm') + (
        '<joint name="weld" type="fixed"><parent>world</parent><child>base</child></joint>'),
    'frames': TWO + '<frame name="tip" attached_to="arm"><pose>0 0 1 0 0 1</pose></frame>' + joint(
        'hinge', 'base', 'tip', pose='<pose>0.1 0 0 0 0 0</pose>'),
    'a link without inertial': '<link name="base"/>' + link('arm') + joint('hinge', 'base', 'arm'),
}  # fmt: skip


@pytest.mark.parametrize('inside', FEATURES.values(), ids=FEATURES)
def test_the_robot_is_what_drake_reads(inside):
    pytest.importorskip('pydrake', reason='the peer Drake is not installed')
    from sdf_robots import differences, plant_of

    found = differences(loaded(sdf(inside)), plant_of(sdf(inside)))
    assert max(found.values()) <= TOLERANCE, found


def test_limits_friction_and_shapes_are_read():
    axis = (
        '<xyz>0 0 1</xyz><limit><lower>-1</lower><upper>2</upper><effort>5</effort>'
        '<velocity>7</velocity></limit><dynamics><damping>0.1</damping><friction>0.2</friction>'
        '<spring_stiffness>3</spring_stiffness></dynamics>'
    )
    shape = (
        '<collision name="ball"><pose>0 0 -0.1 0 0 0</pose><geometry><sphere><radius>0.05</radius>'
        '</sphere></geometry></collision><visual name="v"><geometry><ellipsoid><radii>1 1 1'
        '</radii></ellipsoid></geometry></visual>'
    )
    text = sdf(
        link('base') + link('foot', '0 0 -1 0 0 0', inside=shape)
        + joint('leg', 'base', 'foot', axis=axis)
    )  # fmt: skip
    robot = loaded(text, feet=['foot'])
    assert (robot.effort_limit, robot.velocity_limit) == ([5.0], [7.0])
    assert (robot.lower_position_limit, robot.upper_position_limit) == ([-1.0], [2.0])
    assert (robot.actuators.viscous_friction, robot.actuators.dry_friction) == ([0.1], [0.2])
    point = robot.contact_points[0]
    assert (point.radius, point.offset.tolist()) == (0.05, [0.0, 0.0, -0.1])
    assert robot.springs == (JointSpring('leg', 3.0),)
    assert 'a visual of type ellipsoid is left out: v' in robot.notes
    unlimited = loaded(sdf(link('base') + link('arm') + joint('hinge', 'base', 'arm')))
    assert unlimited.position_limits == ()
    assert unlimited.effort_limit > 1e300


def test_ball_universal_and_loops():
    ball = '<joint name="ball" type="ball"><parent>base</parent><child>arm</child></joint>'
    robot = loaded(sdf(TWO + ball))
    assert robot.nv == 9
    cross = joint('cross', 'base', 'arm', 'universal').replace(
        '</joint>', '<axis2><xyz>1 0 0</xyz></axis2></joint>'
    )
    assert loaded(sdf(TWO + cross)).joint_names == ('cross', 'cross_2')
    loop = (
        TWO + link('rod', '0.2 0.2 0.2 0 0 0') + joint('one', 'base', 'arm')
        + joint('two', 'base', 'rod') + ball.replace('base', 'rod').replace('"ball"', '"pin"', 1)
    )  # fmt: skip
    robot = loaded(sdf(loop))
    closure = robot.constraints[0]
    assert isinstance(closure, LoopClosure)
    assert (closure.frame, closure.other) == ('rod', 'arm')
    assert np.abs(robot.loops.error(robot.references['standing'])).max() <= 1e-9


REFUSED = {
    'gearbox': (TWO + joint('g', 'base', 'arm', 'gearbox'), "type 'gearbox' is not modelled"),
    'no frame': (TWO + joint('j', 'base', 'none'), "<child> 'none': no such link or frame"),
    'cycle': ('<link name="a"><pose relative_to="b"/></link><link name="b"><pose '
              'relative_to="a"/></link>' + joint('j', 'a', 'b'), 'are a cycle'),
    'no number': (link('base', '0 0 x 0 0 0'), 'expected 6 finite numbers'),
    'include': ('<include><uri>model://x</uri></include>', "<include> 'model://x' in a <model>"),
    'no axis': (TWO + '<joint name="j" type="revolute"><parent>base</parent><child>arm</child>'
                '</joint>', 'no <axis>'),
    'two of one name': (link('base') * 2, "'base': expected a name of its own"),
}  # fmt: skip


@pytest.mark.parametrize(('inside', 'message'), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(inside, message):
    with pytest.raises(RobotDescriptionError, match=message):
        loaded(sdf(inside))


def test_a_file_has_one_model(tmp_path):
    file = tmp_path / 'two.sdf'
    one = sdf(TWO + joint('hinge', 'base', 'arm'))
    file.write_text(one)
    assert loaded(file).name == 'machine'
    model = one[one.index('<model') : one.index('</sdf>')]
    file.write_text(f'<sdf version="1.9"><world name="w">{model}{model}</world></sdf>')
    with pytest.raises(RobotDescriptionError, match='expected one <model>'):
        loaded(file)


def test_the_prefix_of_drake_need_not_be_declared():
    joint_of_drake = joint('hinge', 'base', 'arm').replace(
        '<axis>', '<drake:rotor_inertia>2e-4</drake:rotor_inertia><drake:gear_ratio>10'
        '</drake:gear_ratio><axis>')  # fmt: skip
    robot = loaded(sdf(TWO + joint_of_drake))
    assert robot.actuators.armature.tolist() == pytest.approx([0.02])
