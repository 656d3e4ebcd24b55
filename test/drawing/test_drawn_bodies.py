"""What robots look like, against Pinocchio's own visual geometry and its mesh reader (assimp)."""

import logging
from pathlib import Path

import coal
import numpy as np
import pinocchio as pin
import pytest

from contact_sim import RobotModel, joined, load_robot, robots
from contact_sim.drawing._body_meshes import (
    bodies_of,
    collada_parts,
    compose,
    tinted,
    without_slivers,
)
from contact_sim.robot._catalogue import textbook_systems
from contact_sim.robot._files import mesh_file


def joints_at(robot, q):
    data = robot.pinocchio_model.createData()
    pin.forwardKinematics(robot.pinocchio_model, data, q)
    return np.array([pin.SE3ToXYZQUAT(placement) for placement in data.oMi])


def placed(robot, q):
    """Return the bodies of a robot with position and quaternion w x y z in world."""
    bodies = bodies_of(robot)
    own = np.array([body.placement for body in bodies])
    return bodies, *compose(joints_at(robot, q)[[body.joint for body in bodies]], own)


def moved(robot):
    """Return a configuration with no angle zero."""
    v = np.random.default_rng(1).uniform(-0.5, 0.5, robot.nv)
    start = robot.reference_configuration()
    return np.asarray(pin.integrate(robot.pinocchio_model, start, v))


@pytest.mark.parametrize('name', [*robots(), *textbook_systems()])
def test_all_are_where_pinocchio_has_them(name):
    robot = load_robot(name)
    q = moved(robot)
    model = robot.pinocchio_model
    geometry = pin.buildGeomFromUrdfString(
        model, without_meshes(robot.description), pin.GeometryType.VISUAL
    )
    data, placements = model.createData(), pin.GeometryData(geometry)
    pin.updateGeometryPlacements(model, data, geometry, placements, q)
    expected = {}
    for one, placement in zip(geometry.geometryObjects, placements.oMg, strict=True):
        link = model.frames[one.parentFrame].name
        expected.setdefault(link, []).append(np.array(placement.homogeneous))
    found = {}
    for body, position, (w, x, y, z) in zip(*placed(robot, q), strict=True):
        where = pin.SE3(pin.Quaternion(w, x, y, z), position).homogeneous
        known = found.setdefault(body.link, [])
        if not known or not np.allclose(known[-1], where):
            known.append(where)  # a mesh of several materials is several bodies
    assert set(expected) <= set(found)
    for link, matrices in expected.items():
        distinct = [
            m for k, m in enumerate(matrices) if not k or not np.allclose(m, matrices[k - 1])
        ]
        assert np.array(found[link]) == pytest.approx(np.array(distinct), abs=1e-9)


def without_meshes(text):
    """Return a description with boxes in place of meshes: where they are is not what they are."""
    head, *rest = text.split('<mesh')
    return head + ''.join('<box size="1 1 1"/>' + part.partition('/>')[2] for part in rest)


@pytest.mark.parametrize(
    ('name', 'mesh'),
    [
        ('go1', 'go1_description/meshes/calf.dae'),
        ('go1', 'go1_description/meshes/depthCamera.dae'),
        ('go2', 'go2_description/visuals/base.dae'),
        ('anymal_c', 'anymal_c_simple_description/meshes/base.dae'),
        ('anymal_b', 'anymal_b_simple_description/meshes/foot/anymal_foot.dae'),
        ('hyq', 'hyq_description/meshes/leg/lowerleg.dae'),
    ],
)
def test_collada_is_read_as_assimp_reads_it(name, mesh):
    folders = load_robot(name).package_dirs
    file = mesh_file(f'package://example-robot-data/robots/{mesh}', folders)
    reference = coal.MeshLoader().load(str(file), np.ones(3))
    parts = collada_parts(file)
    points = np.concatenate([vertices for vertices, _, _ in parts])
    expected = np.array(reference.vertices())
    assert points.min(axis=0) == pytest.approx(expected.min(axis=0), abs=1e-6)
    assert points.max(axis=0) == pytest.approx(expected.max(axis=0), abs=1e-6)
    kept = [without_slivers(vertices, triangles) for vertices, triangles, _ in parts]
    assert sum(len(surface.triangles) for surface in kept) == reference.num_tris


def test_colours_are_those_of_the_file_or_of_the_material():
    go1, go2 = bodies_of(load_robot('go1')), bodies_of(load_robot('go2'))
    colours = {body.link: body.colour for body in go1}
    assert colours['trunk'] == pytest.approx((0.698, 0.7529, 0.8392, 1.0))  # <color>: no other
    assert colours['FL_hip'] == pytest.approx((0.4452758, 0.527092, 0.6723946, 1.0))  # hip.dae
    feet = {body.colour for body in go2 if body.link == 'FL_foot'}
    assert feet == {(0.0, 0.0, 0.0, 1.0)}  # <diffuse> in foot.dae


def test_meshes_are_read_once_and_not_too_fine():
    bodies = bodies_of(load_robot('go1'))
    calves = {id(body.surface) for body in bodies if body.link.endswith('_calf')}
    assert len(calves) == 1
    assert max(len(body.surface.triangles) for body in bodies) <= 5000
    again = {id(body.surface) for body in bodies_of(load_robot('go1'))}
    assert again == {id(body.surface) for body in bodies}


LINK = """<robot name="r"><link name="body">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry>{visual}</geometry></visual>
<collision><origin xyz="0 0 0.25"/><geometry><box size="0.1 0.2 0.3"/></geometry></collision>
</link></robot>"""


def test_a_missing_mesh_is_drawn_as_its_collision_geometry(caplog):
    text = LINK.format(visual='<mesh filename="package://nowhere/none.dae"/>')
    robot = load_robot(text, feet=(), check_meshes=False)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            (body,) = bodies_of(robot)
    assert np.ptp(body.surface.vertices, axis=0) == pytest.approx([0.1, 0.2, 0.3])
    assert body.placement[:3] == pytest.approx([0.0, 0.0, 0.25])
    (message,) = caplog.messages  # once, however often it is drawn
    assert 'package://nowhere/none.dae' in message


def test_a_mesh_that_cannot_be_read_is_said(caplog, tmp_path):
    file = tmp_path / 'broken.stl'
    file.write_text('not a mesh')
    robot = load_robot(LINK.format(visual=f'<mesh filename="{file}"/>'), feet=())
    with caplog.at_level(logging.WARNING):
        (body,) = bodies_of(robot)
    assert len(body.surface.triangles) == 12
    (message,) = caplog.messages
    assert str(file) in message


def test_links_without_geometry_are_capsules_between_their_joints():
    described = load_robot('double_pendulum')
    robot = RobotModel.from_pinocchio(described.pinocchio_model)
    q = np.array([0.4, -0.9])
    bodies, position, wxyz = placed(robot, q)
    data = robot.pinocchio_model.createData()
    pin.forwardKinematics(robot.pinocchio_model, data, q)
    first, second = (np.array(data.oMi[j].translation) for j in (1, 2))
    k = next(k for k, body in enumerate(bodies) if body.joint == 1)
    assert position[k] == pytest.approx(0.5 * (first + second))
    w, x, y, z = wxyz[k]
    axis = pin.Quaternion(w, x, y, z).matrix()[:, 2]
    assert np.abs(axis @ (second - first)) == pytest.approx(np.linalg.norm(second - first))
    core = np.ptp(bodies[k].surface.vertices[:, 2]) - np.ptp(bodies[k].surface.vertices[:, 0])
    assert core == pytest.approx(np.linalg.norm(second - first), rel=0.02)


def test_robots_that_were_joined_are_where_each_would_be():
    parts = {'a': load_robot('quadruped'), 'arm': load_robot('double_pendulum')}
    world = joined(parts, {'arm': (1.0, 2.0, 0.5)})
    bodies, position, _ = placed(world, world.reference_configuration())
    turn = pin.rpy.rpyToMatrix(0.0, 0.0, 0.5)
    _, alone, _ = placed(parts['arm'], parts['arm'].reference_configuration())
    expected = alone @ turn.T + [1.0, 2.0, 0.0]
    mine = [k for k, body in enumerate(bodies) if body.link.startswith('arm/')]
    assert position[mine] == pytest.approx(expected)
    _, four_legs, _ = placed(parts['a'], parts['a'].reference_configuration())
    others = [k for k, body in enumerate(bodies) if body.link.startswith('a/')]
    assert position[others] == pytest.approx(four_legs)


def test_a_tint_is_the_colour_of_all():
    bodies = tinted(bodies_of(load_robot('quadruped')), (0.1, 0.2, 0.3, 0.4))
    assert {body.colour for body in bodies} == {(0.1, 0.2, 0.3, 0.4)}


def test_other_files_are_refused_in_words(tmp_path):
    file = Path(tmp_path, 'x.dae')
    file.write_text('<COLLADA><library_visual_scenes/></COLLADA>')
    assert collada_parts(file) == []
    file.write_text('nonsense')
    with pytest.raises(ValueError, match='not well-formed XML'):
        collada_parts(file)
