"""What Pinocchio makes of a URDF is the file, number by number, however that is written."""

import re

import numpy as np
import pinocchio as pin
import pytest
from urdf_texts import ONE_LEG, SPHERE, joint, link, robot

from contact_sim import load_robot
from contact_sim.errors import RobotDescriptionError
from contact_sim.robot import _loading
from contact_sim.robot._catalogue import catalogue_entry, robot_file, robots


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
    entry = catalogue_entry('go1')
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


@pytest.mark.parametrize('floating', [True, False])
@pytest.mark.parametrize('name', robots())
def test_every_robot_of_the_catalogue_agrees_with_its_file(name, floating):
    load_robot(name, floating_base=floating)  # compares, see below


SLIDER = robot(
    link('base', 2.0),
    link('mid', 1.0),
    link('arm', 3.0),
    joint('weld', 'base', 'mid', 'fixed', limit=''),
    joint('slide', 'mid', 'arm', 'prismatic', axis='1 2 -2', more='<dynamics damping="0.5"/>'),
    joint('turn', 'arm', 'tip', 'continuous', axis='0.3 0 0.4'),
    link('tip', 0.5),
)


def _change(what):
    def change(model):
        by = pin.SE3(np.eye(3), np.full(3, 1e-6))
        i = model.getJointId('slide')
        if what == 'mass':
            model.inertias[i].mass = 3.0 + 1e-6
        elif what == 'root mass':
            model.inertias[1].mass = 2.0
        elif what == 'lever':
            model.inertias[i].lever = model.inertias[i].lever + [1e-6, 0, 0]
        elif what == 'inertia':
            model.inertias[i].inertia = model.inertias[i].inertia * (1 + 1e-6)
        elif what == 'placement':
            model.jointPlacements[i] = model.jointPlacements[i] * by
        elif what == 'turned':
            model.jointPlacements[i].rotation = pin.rpy.rpyToMatrix(1e-6, 0, 0)
        elif what in ('lowerPositionLimit', 'upperPositionLimit'):
            getattr(model, what)[model.joints[i].idx_q] += 1e-6
        else:
            getattr(model, what)[model.joints[i].idx_v] += 1e-6

    return change


CHANGES = {
    'mass': 'links arm: mass 3.0 kg',
    'root mass': 'links base, mid: mass 3.0 kg',
    'lever': 'links arm: mass 3.0 kg, moments',
    'inertia': 'links arm: mass 3.0 kg, moments',
    'placement': "joint 'slide': Pinocchio places it at",
    'turned': "joint 'slide': Pinocchio places it at",
    'lowerPositionLimit': "joint 'slide': <limit> lower = -1.0",
    'upperPositionLimit': "joint 'slide': <limit> upper = 2.0",
    'effortLimit': "joint 'slide': <limit> effort = 30.0",
    'velocityLimit': "joint 'slide': <limit> velocity = 20.0",
    'damping': "joint 'slide': <dynamics> damping = 0.5",
    'friction': "joint 'slide': <dynamics> friction = 0.0",
}


@pytest.mark.parametrize(('what', 'message'), CHANGES.items(), ids=CHANGES)
def test_a_parser_that_reads_another_number_is_found_out(monkeypatch, what, message):
    built = pin.buildModelFromXML

    def careless(*arguments):
        model = built(*arguments)
        _change(what)(model)
        return model

    load_robot(SLIDER)
    monkeypatch.setattr(_loading.pin, 'buildModelFromXML', careless)
    with pytest.raises(RobotDescriptionError, match=message):
        load_robot(SLIDER)


@pytest.mark.parametrize(('said', 'read'), [('1 2 -2', '1 2 2'), ('0.3 0 0.4', '0.3 0 -0.4')])
def test_a_parser_that_reads_another_axis_is_found_out(monkeypatch, said, read):
    built = _loading.kinematics_text
    words = [' '.join(map(repr, map(float, axis.split()))) for axis in (said, read)]
    monkeypatch.setattr(_loading, 'kinematics_text', lambda *given: built(*given).replace(*words))
    with pytest.raises(RobotDescriptionError, match=r'<axis> .*: Pinocchio moves it'):
        load_robot(SLIDER)


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
    assert sum(not point.radius for point in points) == 16  # the rims of the cylinder


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
