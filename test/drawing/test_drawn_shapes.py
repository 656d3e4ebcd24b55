"""Rotations, cones and the ground as it is drawn, against geometry."""

import numpy as np
import pinocchio as pin
import pytest
from robots import stand
from scipy.spatial.transform import Rotation
from terrains import GROUNDS

from contact_sim import Simulator, load_robot
from contact_sim.collision._terrain import as_terrain
from contact_sim.drawing._body_meshes import compose
from contact_sim.drawing._step_shapes import (
    SupportShapes,
    cone_triangles,
    ground_triangles,
    one_plane,
    turned_to,
)
from contact_sim.terrain import HeightField, TriangleMesh


def unit_vectors(n):
    vectors = np.random.default_rng(3).normal(size=(n, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_the_vertical_is_turned_to_the_normal_the_shortest_way():
    normals = np.concatenate([unit_vectors(50), [[0, 0, 1], [0, 0, -1], [1, 0, 0]]])
    turns = Rotation.from_quat(turned_to(normals))
    assert turns.apply([0.0, 0.0, 1.0]) == pytest.approx(normals, abs=1e-12)
    assert turns.magnitude() == pytest.approx(np.arccos(normals[:, 2]))


@pytest.mark.parametrize('friction', [0.0, 0.3, 1.5])
def test_the_sides_of_a_cone_have_the_angle_of_friction(friction):
    tip, *rim = cone_triangles(friction).reshape(-1, 3, 3).transpose(1, 0, 2)
    assert not tip.any()
    for x, y, z in np.concatenate(rim):
        assert np.hypot(x, y) / z == pytest.approx(friction)


def test_placements_are_composed_as_pinocchio_does():
    pin.seed(1)
    pairs = [(pin.SE3.Random(), pin.SE3.Random()) for _ in range(20)]
    first, second = (np.array([pin.SE3ToXYZQUAT(p[k]) for p in pairs]) for k in (0, 1))
    position, wxyz = compose(first, second)
    for k, (a, b) in enumerate(pairs):
        product = a * b
        assert position[k] == pytest.approx(product.translation)
        turned = Rotation.from_quat(wxyz[k][[1, 2, 3, 0]]).as_matrix()
        assert turned == pytest.approx(product.rotation)


def heights():
    x, y = np.meshgrid(np.linspace(-2, 2, 21), np.linspace(-1, 1, 11), indexing='ij')
    return HeightField(0.1 * np.sin(3 * x) * np.cos(2 * y), 0.2, (-2.0, -1.0))


def mesh():
    corners = np.array([[0.0, 0, 0], [2, 0, 0.5], [2, 2, 0], [0, 2, 0.3]])
    return TriangleMesh(corners, np.array([[0, 1, 2], [0, 2, 3]]))


@pytest.mark.parametrize('ground', [*GROUNDS.values(), heights(), mesh()], ids=repr)
def test_every_corner_of_what_is_drawn_is_on_the_ground(ground):
    terrain = as_terrain(ground)
    corners = ground_triangles(terrain)
    assert len(corners) % 3 == 0
    assert terrain.signed_distance(corners) == pytest.approx(np.zeros(len(corners)), abs=1e-9)
    a, b, c = np.moveaxis(corners.reshape(-1, 3, 3), 1, 0)
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() > 1.0  # it has an area


def test_the_walls_of_a_pit_are_drawn():
    """A floor, three walls: each is there, and only where the robot can touch it."""
    pit = GROUNDS['pit']
    corners = ground_triangles(pit)
    a, b, c = np.moveaxis(corners.reshape(-1, 3, 3), 1, 0)
    faces = np.cross(b - a, c - a)
    faces /= np.linalg.norm(faces, axis=1, keepdims=True)
    for normal, offset in pit.planes:
        unit = np.array(normal) / np.linalg.norm(normal)
        assert (faces @ unit > 1.0 - 1e-9).any()
        assert (corners @ unit >= offset - 1e-9).all()


def test_only_a_plane_is_one_plane():
    assert {name for name, ground in GROUNDS.items() if one_plane(ground) is not None} == {
        'plane', 'steep_plane', 'inclined_plane',
    }  # fmt: skip
    normal, offset = one_plane(GROUNDS['plane'])
    assert normal == pytest.approx(np.array([0.2, -0.3, 1.0]) / np.sqrt(1.13))
    assert offset == 0.1


def test_support_of_a_robot_that_stands():
    robot = load_robot('quadruped')
    sim = Simulator(robot)
    stand(sim, 300)
    shape = SupportShapes(robot, sim.terrain).of(sim.last_report)
    feet = sim.last_report.contacts.position
    assert len(shape.outline) == 5
    assert shape.outline[0] == pytest.approx(shape.outline[-1])
    assert {tuple(p) for p in shape.outline.round(9)} == {tuple(p) for p in feet.round(9)}
    assert shape.over
    assert shape.below == pytest.approx([*shape.centre[:2], 0.0])
    masses = [inertia.mass for inertia in robot.pinocchio_model.inertias]
    data = robot.pinocchio_model.createData()
    pin.forwardKinematics(robot.pinocchio_model, data, sim.q)
    levers = [data.oMi[j].act(i.lever) for j, i in enumerate(robot.pinocchio_model.inertias)]
    assert shape.centre == pytest.approx(np.average(levers, axis=0, weights=masses))
