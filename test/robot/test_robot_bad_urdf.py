"""Descriptions that cannot be a robot: each is refused with what is wrong and where."""

import pytest
from urdf_texts import ONE_LEG, SPHERE, XACRO_HEAD, joint, link, robot

from contact_sim import load_robot
from contact_sim.errors import InvalidInput, RobotDescriptionError


def two_links(mass=1.0, **changes):
    return robot(link('base'), link('leg', mass), joint('hip', 'base', 'leg', **changes))


def limit(**changes):
    values = {'lower': -1, 'upper': 2, 'effort': 30, 'velocity': 20} | changes
    attributes = ' '.join(f'{key}="{value}"' for key, value in values.items() if value is not None)
    return f'<limit {attributes}/>'


def inertia(**changes):
    values = dict.fromkeys(('ixy', 'ixz', 'iyz'), 0) | dict.fromkeys(('ixx', 'iyy', 'izz'), 0.1)
    attributes = ' '.join(f'{key}="{value}"' for key, value in (values | changes).items())
    return robot(
        f'<link name="base"><inertial><mass value="1"/><inertia {attributes}/></inertial></link>'
    )


CASES = {
    'not closed': ('<robot name="x"><link>', r'URDF text is not well-formed XML: .*line 1'),
    'not a robot': ('<model/>', 'the root element is <model>, expected <robot>'),
    'no links': ('<robot name="x"/>', 'no <link> in <robot>'),
    'link without a name': ('<robot name="x"><link/></robot>', 'a <link> has no name'),
    'two links of one name': (robot(link('a'), link('a')), "two links are called 'a'"),
    'two roots': (robot(link('a'), link('b')), 'no joint connects the links a, b'),
    'unknown parent': (
        robot(link('a'), joint('j', 'b', 'a')),
        "joint 'j': parent link 'b' does not exist",
    ),
    'unknown child': (
        robot(link('a'), joint('j', 'a', 'b')),
        "joint 'j': child link 'b' does not exist",
    ),
    'two parents': (
        robot(link('a'), link('b'), joint('j', 'a', 'b'), joint('k', 'a', 'b')),
        "joint 'k': link 'b' already has a parent",
    ),
    'loop': (
        robot(link('a'), link('b'), link('c'), joint('j', 'b', 'c'), joint('k', 'c', 'b')),
        "link 'b' is in a loop of joints",
    ),
    'two joints of one name': (
        robot(link('a'), link('b'), link('c'), joint('j', 'a', 'b'), joint('j', 'b', 'c')),
        "two joints are called 'j'",
    ),
    'joint type': (
        two_links(kind='wobbly'),
        r"joint 'hip': type = 'wobbly', expected one of fixed",
    ),
    'no limit': (two_links(limit=''), "joint 'hip': a revolute joint needs a <limit>"),
    'no effort': (
        two_links(limit=limit(effort=None)),
        "joint 'hip': <limit> effort = None, expected a number of at least 0",
    ),
    'negative effort': (
        two_links(limit=limit(effort=-1)),
        "effort = '-1', expected a number of at",
    ),
    'velocity not a number': (
        two_links(limit=limit(velocity='fast')),
        "velocity = 'fast', expected",
    ),
    'lower above upper': (
        two_links(limit=limit(lower=3)),
        "joint 'hip': lower limit 3.0 is above upper limit 2.0",
    ),
    'limit nan': (two_links(limit=limit(upper='nan')), "upper = 'nan', expected a number"),
    'negative damping': (
        two_links(more='<dynamics damping="-0.1"/>'),
        "joint 'hip': <dynamics> damping = '-0.1', expected a finite number up to .* at least 0",
    ),
    'infinite friction': (two_links(more='<dynamics friction="inf"/>'), "friction = 'inf'"),
    'no axis': (two_links(axis='0 0 0'), "joint 'hip': <axis> xyz is 0 0 0, expected a direction"),
    'short axis': (two_links(axis='0 1'), "<axis> xyz = '0 1', expected three finite numbers"),
    'zero mass': (
        two_links(mass=0.0),
        "joint 'hip' moves link 'leg', whose mass is 0 kg with all that hangs on it",
    ),
    'no inertial': (two_links(mass=None), "joint 'hip' moves link 'leg', whose mass is 0 kg"),
    'negative mass': (
        two_links(mass=-2.5),
        "link 'leg': <mass> value = '-2.5' kg, expected a finite number up to .* at least 0",
    ),
    'mass nan': (two_links(mass='nan'), "link 'leg': <mass> value = 'nan' kg"),
    'mass without value': (
        robot('<link name="a"><inertial><mass/><inertia/></inertial></link>'),
        "link 'a': <mass> value = None kg",
    ),
    'no mass': (
        robot('<link name="a"><inertial><inertia/></inertial></link>'),
        "link 'a': <inertial> needs <mass> and <inertia>",
    ),
    'no mass at all': (robot(link('a', None)), 'no link has a mass above 0 kg'),
    'inertia missing': (inertia(ixx=''), "link 'base': <inertia> ixx = '', expected a finite"),
    'inertia infinite': (inertia(iyz='inf'), "link 'base': <inertia> iyz = 'inf'"),
    'inertia negative': (
        inertia(izz=-0.2),
        r"link 'base': <inertia> has the principal moments -0.2, 0.1, 0.1 kg m\^2",
    ),
    'inertia indefinite': (inertia(ixy=0.3), 'principal moments -0.2, 0.1, 0.4'),
    'origin': (
        two_links(more='<origin xyz="0 nan 0"/>'),
        "joint 'hip': <origin> xyz = '0 nan 0', expected three finite numbers",
    ),
    'xacro name': (f'{XACRO_HEAD}<xacro:nothing/></robot>', 'xacro failed: .*nothing'),
    'xacro expression': (
        f'{XACRO_HEAD}<xacro:property name="a" value="1"/><link name="${{a/0}}"/></robot>',
        'xacro failed: .*division by zero',
    ),
    'xacro include': (
        f'{XACRO_HEAD}<xacro:include filename="gone.xacro"/></robot>',
        'cannot read .*gone.xacro: No such file',
    ),
}


@pytest.mark.parametrize(('text', 'message'), CASES.values(), ids=CASES)
def test_refused(text, message):
    with pytest.raises(RobotDescriptionError, match=message):
        load_robot(text, xacro_arguments={} if text.startswith(XACRO_HEAD) else None)


def test_the_message_begins_with_the_file(tmp_path):
    path = tmp_path / 'leg.urdf'
    path.write_text(two_links(mass=-1.0))
    with pytest.raises(RobotDescriptionError) as caught:
        load_robot(path)
    assert str(caught.value).startswith(f"{path}: link 'leg': <mass>")


def test_binary_file(tmp_path):
    path = tmp_path / 'leg.urdf'
    path.write_bytes(b'\xff\xfe\x00\x00')
    with pytest.raises(RobotDescriptionError, match='it is not UTF-8 text'):
        load_robot(path)


def test_broken_xacro_file(tmp_path):
    path = tmp_path / 'leg.urdf.xacro'
    path.write_text(f'{XACRO_HEAD}<link name="${{nothing}}"/></robot>')
    with pytest.raises(RobotDescriptionError) as caught:
        load_robot(path)
    assert str(caught.value).startswith(f'{path}: xacro failed:')
    assert 'nothing' in str(caught.value)


def test_negative_radius_of_a_foot():
    text = robot(link('base', 1.0, SPHERE.replace('0.03', '-0.03')))
    with pytest.raises(RobotDescriptionError, match=r"link 'base': <sphere> radius = '-0.03'"):
        load_robot(text, feet=['base'])


def pose(joint_name, value):
    return (
        f'<robot><group_state name="standing"><joint name="{joint_name}" value="{value}"/>'
        '</group_state></robot>'
    )


@pytest.mark.parametrize(
    ('srdf', 'message'),
    [
        ('<robot', 'SRDF text is not well-formed XML'),
        ('<urdf/>', 'SRDF text: the root element is <urdf>, expected <robot>'),
        (
            pose('hip', 'bent'),
            "group_state 'standing', 'hip': value = 'bent', expected numbers",
        ),
        (
            pose('hip', '1 2'),
            "reference pose 'standing': hip has 2 values, expected 1",
        ),
        (
            pose('root_joint', '0 0 1 0 0 0 0'),
            r"pose 'standing': root_joint: the quaternion \(x, y, z, w\) has norm 0, expected 1",
        ),
        (
            pose('root_joint', '0 0 1 0 0 0 1.05'),
            'root_joint: .* has norm 1.05, expected 1',
        ),
        (
            pose('root_joint', '0 0 1'),
            'root_joint has 3 values, expected 7',
        ),
        (
            pose('elbow', '1'),
            "pose 'standing': the robot has none of its joints elbow; known: root_joint, hip",
        ),
        (
            '<robot><group_state><joint name="hip" value="1"/></group_state></robot>',
            'SRDF text: a group_state has no name',
        ),
        (
            '<robot><end_effector name="tip"/></robot>',
            "SRDF text: end_effector 'tip' has no parent_link",
        ),
        (
            pose('hip', 'inf'),
            "value = 'inf', expected numbers",
        ),
    ],
)
def test_bad_srdf(srdf, message):
    with pytest.raises(RobotDescriptionError, match=message):
        load_robot(ONE_LEG, srdf=srdf)


@pytest.mark.parametrize('srdf', [3, '', b'<robot/>'])
def test_srdf_of_the_wrong_kind(srdf):
    with pytest.raises(InvalidInput, match=r'srdf = .*: expected a path or SRDF text'):
        load_robot(ONE_LEG, srdf=srdf)


RANK_ONE = inertia(**dict.fromkeys(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), 1e-6))


def test_an_inertia_of_rank_one_alone_cannot_turn():
    with pytest.raises(RobotDescriptionError, match='robot tiny: the mass matrix is singular'):
        load_robot(RANK_ONE)


def test_an_inertia_of_rank_one_is_fine_on_a_body():
    tip = RANK_ONE[RANK_ONE.index('<link') : RANK_ONE.index('</robot>')].replace('base', 'tip')
    text = robot(link('base'), tip, joint('weld', 'base', 'tip', 'fixed', limit=''))
    assert load_robot(text).total_mass == 2.0
