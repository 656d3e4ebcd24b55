"""Distances and nearest points of shapes against coal, the collision library of Pinocchio."""

import coal
import numpy as np
import pinocchio as pin
import pytest

from contact_sim.collision._terrain import Plane, as_terrain
from contact_sim.robot._contact_points import corners_of
from contact_sim.terrain import HeightField, boxes

POSES = 10_000
RADIUS = 0.05
BLOCK = boxes([[-0.5, -0.4, -0.3]], [[0.5, 0.4, 0.3]])
HILLS = HeightField(np.random.default_rng(0).uniform(-0.1, 0.1, (17, 23)), 0.1, (-0.8, -1.1))
ORIGIN = coal.Transform3s()


def mesh_of(mesh):
    """Return a mesh of coal."""
    other = coal.BVHModelOBBRSS()
    other.beginModel(len(mesh.triangles), len(mesh.vertices))
    other.addVertices(mesh.vertices)
    other.addTriangles(mesh.triangles)
    other.endModel()
    return other


def random_poses(n, low, high, seed=1):
    """Return rotations (n, 3, 3) and positions (n, 3)."""
    random = np.random.default_rng(seed)
    quaternions = random.normal(size=(n, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1)[:, None]
    rotations = np.array([pin.Quaternion(*q).matrix() for q in quaternions])
    return rotations, random.uniform(low, high, (n, 3))


def distance_by_coal(shape, rotation, position, other):
    """Return signed distance and the nearest point of `other`."""
    result = coal.DistanceResult()
    placed = coal.Transform3s(rotation, position)
    distance = coal.distance(shape, placed, other, ORIGIN, coal.DistanceRequest(True), result)
    return distance, np.array(result.getNearestPoint2())


@pytest.mark.parametrize(
    ('ground', 'other', 'low', 'high', 'depth'),
    [
        (BLOCK, coal.Box(1.0, 0.8, 0.6), (-0.9, -0.8, -0.7), (0.9, 0.8, 0.7), RADIUS),
        (BLOCK, mesh_of(BLOCK), (-0.9, -0.8, -0.7), (0.9, 0.8, 0.7), 0.0),
        (HILLS, mesh_of(HILLS.as_mesh()), (-0.6, -0.9, 0.0), (0.6, 0.9, 0.5), 0.0),
    ],
    ids=['box', 'mesh', 'hills'],
)
def test_spheres_have_the_distance_and_the_nearest_point_of_coal(ground, other, low, high, depth):
    """On a box down to a depth of the radius; coal's spheres in a mesh have none that counts."""
    ground, sphere = as_terrain(ground), coal.Sphere(RADIUS)
    rotations, centres = random_poses(POSES, low, high)
    distances = ground.signed_distance(centres) - RADIUS
    gaps, normals = ground.contacts(centres)
    errors, places = [], []
    for k in np.flatnonzero((distances > 1e-6 - depth) & (distances < 0.5)):
        expected, point = distance_by_coal(sphere, rotations[k], centres[k], other)
        errors.append(distances[k] - expected)
        slot = int(gaps[k].argmin())
        if gaps[k, slot] <= distances[k] + RADIUS + 1e-12:  # not where only concave edges are near
            places.append(centres[k] - gaps[k, slot] * normals[k, slot] - point)
    assert np.abs(errors).max() < 1e-12
    assert np.abs(places).max() < 1e-9
    assert len(places) > 0.4 * POSES


@pytest.mark.parametrize(
    'shape',
    [
        coal.Sphere(0.1), coal.Capsule(0.05, 0.3), coal.Box(0.1, 0.2, 0.3),
        coal.Cylinder(0.1, 0.3), coal.Cone(0.1, 0.3),
    ],
    ids=['sphere', 'capsule', 'box', 'cylinder', 'cone'],
)  # fmt: skip
def test_contact_points_of_shapes_are_as_deep_in_a_plane_as_the_shapes(shape):
    """Sphere, capsule and box exactly, what is round within the error that is told."""
    plane = Plane((0.2, -0.3, 1.0), 0.1)
    half_space = coal.Halfspace(plane.plane[:3], plane.plane[3])
    corners, radius, error = corners_of(shape, 'shape')
    rotations, positions = random_poses(POSES, -1.0, 1.0)
    points = np.einsum('kij,nj->kni', rotations, corners) + positions[:, None]
    ours = plane.signed_distance(points.reshape(-1, 3)).reshape(POSES, -1).min(axis=1) - radius
    theirs = [
        distance_by_coal(shape, rotation, position, half_space)[0]
        for rotation, position in zip(rotations, positions, strict=True)
    ]
    more = ours - theirs
    assert more.min() > -1e-12
    assert more.max() < error + 1e-12
    assert np.ptp(ours) > 1.0
    if error:
        assert more.max() > 0.9 * error


@pytest.mark.parametrize(
    ('shape', 'exact'),
    [(coal.Capsule(0.05, 0.3), 0.8), (coal.Box(0.1, 0.2, 0.3), 0.6)],
    ids=['capsule', 'box'],
)
def test_at_edges_of_the_ground_contact_points_are_never_nearer_than_the_shape(shape, exact):
    """Between two points of a shape an edge of a box is not felt; elsewhere all is exact."""
    ground, block = as_terrain(BLOCK), coal.Box(1.0, 0.8, 0.6)
    corners, radius, _ = corners_of(shape, 'shape')
    rotations, positions = random_poses(2000, -1.0, 1.0)
    points = np.einsum('kij,nj->kni', rotations, corners) + positions[:, None]
    ours = ground.signed_distance(points.reshape(-1, 3)).reshape(2000, -1).min(axis=1) - radius
    more = []
    for k in range(2000):
        distance, _ = distance_by_coal(shape, rotations[k], positions[k], block)
        if distance > 1e-6:
            more.append(ours[k] - distance)
    assert min(more) > -1e-9
    assert max(more) < 0.15  # half the length of the shape
    assert np.mean(np.array(more) < 1e-9) > exact
