"""What Pinocchio makes of a URDF is the file, number by number, however that is written."""

import re
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import ONE_LEG, SPHERE, joint, link, robot

from contact_sim import load_robot
from contact_sim.errors import RobotDescriptionError
from contact_sim.robot._catalogue import CATALOGUE, robot_file, robots, textbook_systems
from contact_sim.robot._urdf import build_model


def numbers(robot):
    """Return what the motion of a robot depends on."""
    model = robot.pinocchio_model
    return [
        *(inertia.toDynamicParameters() for inertia in model.inertias),
        *(placement.homogeneous.ravel() for placement in model.jointPlacements),
        model.lowerPositionLimit, model.upperPositionLimit, model.effortLimit,
        model.velocityLimit, model.damping, model.friction,
    ]  # fmt: skip


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(numbers(one), numbers(other), strict=True))


def test_a_blank_behind_a_mass_is_not_the_end_of_the_link():
    """Pinocchio alone makes 12.965 kg of go1 with this blank, and says so on stderr only."""
    entry = CATALOGUE['go1']
    text = robot_file(entry, entry.urdf).read_text()
    spoilt = text.replace('<mass value="0.135862"/>', '<mass value="0.135862 "/>')
    assert spoilt != text
    plain = load_robot(text, check_meshes=False)
    assert plain.total_mass == pytest.approx(13.101, abs=1e-3)
    assert same(load_robot(spoilt, check_meshes=False), plain)


REWRITTEN = {
    'blanks': lambda text: re.sub(r'(\d)"', r'\1 "', text),
    'tabs': lambda text: re.sub(r'(xyz|rpy)="([^ "]+) ', '\\1="\\2\t', text),
    'line breaks': lambda text: re.sub(r'(xyz|rpy)="([^ "]+) ', '\\1="\n\\2\n', text),
    'references': lambda text: text.replace('"0.02"', '"0.0&#50;&#10;"'),
    'calibration': lambda text: text.replace('<axis', '<calibration rising="x"/><axis'),
    'comments': lambda text: text.replace('<mass', '<!-- how heavy --><mass'),
    'plus signs': lambda text: text.replace('value="1.0"', 'value="+1.e0"'),
}


@pytest.mark.parametrize('rewrite', REWRITTEN.values(), ids=REWRITTEN)
def test_a_urdf_written_otherwise_is_the_same_robot(rewrite):
    text = rewrite(ONE_LEG)
    assert text != ONE_LEG
    one, other = load_robot(ONE_LEG), load_robot(text)
    assert same(one, other)
    assert [p.frame for p in one.with_body_contacts(['foot']).body_points] == ['foot']
    assert [p.radius for p in other.with_body_contacts(['foot']).body_points] == [0.03]


@pytest.mark.parametrize(
    'word', ['1_0', '0x10', '١', '1,5', '1e', 'nan', '--1', '1 2', 'infinity']
)
def test_what_one_parser_alone_takes_for_a_number_is_none(word):
    with pytest.raises(RobotDescriptionError, match="link 'base': <mass> value = "):
        load_robot(robot(link('base', word)))


def test_a_limit_without_end_is_none():
    text = robot(
        link('base'), link('leg'),
        joint('hip', 'base', 'leg', limit='<limit effort="inf" velocity="1e999" lower="-inf"/>'),
    )  # fmt: skip
    leg = load_robot(text)
    assert min(leg.effort_limit[0], leg.velocity_limit[0]) > 1e300
    assert [str(limit) for limit in leg.position_limits] == ['-inf <= hip <= 0']


DOCTYPE = '<!DOCTYPE robot [<!ENTITY m "1">]>'
LAUGHS = '<!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa">' + ''.join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
) + ']>'  # fmt: skip


@pytest.mark.parametrize('doctype', [DOCTYPE, LAUGHS, '<!DOCTYPE robot SYSTEM "file:///x.dtd">'])
def test_doctype_is_refused(tmp_path, doctype):
    path = tmp_path / 'leg.urdf'
    path.write_text(doctype + ONE_LEG)
    for source in (path, doctype + ONE_LEG):
        with pytest.raises(RobotDescriptionError, match='<!DOCTYPE robot> is not allowed'):
            load_robot(source)
    with pytest.raises(RobotDescriptionError, match='<!DOCTYPE robot> is not allowed'):
        load_robot(ONE_LEG, srdf=doctype + '<robot name="one_leg"/>')


MODEL_ARRAYS = (
    'lowerPositionLimit', 'upperPositionLimit', 'positionLimitMargin', 'velocityLimit',
    'lowerVelocityLimit', 'upperVelocityLimit', 'effortLimit', 'lowerEffortLimit',
    'upperEffortLimit', 'damping', 'friction', 'lowerDryFrictionLimit', 'upperDryFrictionLimit',
    'armature', 'rotorInertia', 'rotorGearRatio',
)  # fmt: skip
"""Arrays of a Pinocchio model; some versions lack some of them."""


def check_equal(model, reference):
    """Check that two models are equal, every number to the bit."""
    assert model.name == reference.name
    assert list(model.names) == list(reference.names)
    assert list(model.parents) == list(reference.parents)
    assert list(map(str, model.joints)) == list(map(str, reference.joints))
    for array in MODEL_ARRAYS:
        if hasattr(reference, array):
            assert np.array_equal(getattr(model, array), getattr(reference, array)), array
    for i, name in enumerate(model.names):
        own, other = model.jointPlacements[i], reference.jointPlacements[i]
        assert np.array_equal(own.homogeneous, other.homogeneous), name
        assert model.inertias[i] == reference.inertias[i], name
    assert model.nframes == reference.nframes
    for frame, other in zip(model.frames, reference.frames, strict=True):
        for what in ('name', 'type', 'parentJoint', 'parentFrame', 'inertia'):
            assert getattr(frame, what) == getattr(other, what), (frame.name, what)
        own, others = frame.placement.homogeneous, other.placement.homogeneous
        assert np.array_equal(own, others), frame.name
    assert model == reference


def of_pinocchio(text, floating):
    """Return what Pinocchio's own parser makes of a text."""
    return pin.buildModelFromXML(text, *([pin.JointModelFreeFlyer()] if floating else []))


@pytest.mark.parametrize('floating', [True, False])
@pytest.mark.parametrize('name', [*robots(), *textbook_systems()])
def test_the_model_is_that_of_pinocchio_for_every_robot_of_the_catalogue(name, floating):
    text = load_robot(name).description
    model = build_model(ElementTree.fromstring(text), name, floating)
    check_equal(model, of_pinocchio(text, floating))


def random_text(seed):
    """Return a tree of links with inertias, joints and axes in general attitudes."""
    rng = np.random.default_rng(seed)

    def vector():
        return ' '.join(map(repr, rng.uniform(-3.0, 3.0, 3).tolist()))

    parts = []
    for k in range(12):
        own, mixed = rng.uniform(1.0, 2.0, 3).tolist(), rng.uniform(0.0, 0.3, 3).tolist()
        keys = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')
        moments = ' '.join(f'{key}="{x!r}"' for key, x in zip(keys, own + mixed, strict=True))
        parts.append(
            f'<link name="l{k}"><inertial><origin xyz="{vector()}" rpy="{vector()}"/>'
            f'<mass value="{rng.uniform(0.1, 3.0)!r}"/><inertia {moments}/></inertial></link>'
        )
    kinds = ('fixed', 'revolute', 'continuous', 'prismatic', 'planar', 'floating')
    for k in range(1, 12):
        axis = rng.choice([vector(), '1 0 0', '0 1 0', '0 0 1', '-1 0 0', '0 0 2'])
        parts.append(
            f'<joint name="{rng.choice(list("aBz_"))}{k}" type="{rng.choice(kinds)}">'
            f'<parent link="l{rng.integers(k)}"/><child link="l{k}"/><axis xyz="{axis}"/>'
            f'<origin xyz="{vector()}" rpy="{vector()}"/>'
            '<limit lower="-1" upper="2" effort="30" velocity="20"/>'
            '<dynamics damping="0.5" friction="0.25"/></joint>'
        )
    return robot(*parts, name=f'tree {seed}')


@pytest.mark.parametrize('floating', [True, False])
@pytest.mark.parametrize('seed', range(20))
def test_the_model_is_that_of_pinocchio_for_trees_of_all_joint_types(seed, floating):
    text = random_text(seed)
    model = build_model(ElementTree.fromstring(text), 'text', floating)
    check_equal(model, of_pinocchio(text, floating))


def test_capsules_and_cylinders_of_one_link_are_told_apart():
    shapes = [
        SPHERE.replace('sphere radius="0.03"', f'{kind} radius="{radius}" length="0.5"')
        for kind, radius in (('capsule', 0.1), ('cylinder', 0.2), ('capsule', 0.3))
    ]
    points = load_robot(robot(link('base', 1.0, ''.join(shapes)))).with_body_contacts().body_points
    ends = {(point.radius, *np.round(point.offset, 9)) for point in points if point.radius}
    assert ends == {
        (radius, 0.01, 0.0, 0.02 + side) for radius in (0.1, 0.3) for side in (-0.25, 0.25)
    }
    assert sum(not point.radius for point in points) == 32  # the rims of the cylinder


@pytest.mark.parametrize(
    ('collision', 'message'),
    [
        (SPHERE.replace('0.03', '3_0'), "<sphere> radius = '3_0' m"),
        (SPHERE.replace('0.03', '-1'), "<sphere> radius = '-1' m"),
        (SPHERE.replace('sphere radius="0.03"', 'box size="1 2"'), "<box> size = '1 2'"),
        (SPHERE.replace('sphere radius="0.03"', 'torus radius="1"'), '<torus>, expected one of'),
        (SPHERE.replace('<sphere radius="0.03"/>', ''), 'no shape in <geometry>'),
    ],
)
def test_collision_geometry_that_cannot_be_read(collision, message):
    text = robot(link('base', 1.0, SPHERE), link('leg', 1.0, collision), joint('j', 'base', 'leg'))
    with pytest.raises(RobotDescriptionError, match=message):
        load_robot(text).with_body_contacts()
