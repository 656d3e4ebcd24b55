"""Points within a few units in the last place of faces, edges and vertices of the ground."""

import numpy as np
import pytest

from contact_sim import Simulator, loose_box
from contact_sim.collision._terrain import FieldGround, MeshGround
from contact_sim.terrain import HeightField, boxes

SCALE = 0.1
SLOPE = 0.49


def rough(amplitude):
    heights = np.random.default_rng(0).uniform(-amplitude, amplitude, (12, 14))
    return HeightField(heights, SCALE, (-0.5, -0.6))


def slope():
    return HeightField.of_function(
        lambda x, y: SLOPE * x + 0.13 * y, (1.0, 1.0), 0.1, (-0.5, -0.5)
    )


TILES = boxes([[-0.5, -0.5, -0.5], [0.1, -0.5, -0.5]], [[0.0, 0.5, 0.0], [0.5, 0.5, 0.2]])
FIELDS = {'flat': rough(0.0), '0.1 mm': rough(1e-4), '0.1 m': rough(0.1), 'slope': slope()}
GROUNDS = {
    **{f'field {name}': (FieldGround(field), field.as_mesh()) for name, field in FIELDS.items()},
    **{
        f'mesh {name}': (MeshGround(field.as_mesh()), field.as_mesh())
        for name, field in FIELDS.items()
    },
    'boxes': (MeshGround(TILES), TILES),
}


def distance_from(point, corners):
    """Return the distance of a point from triangles, shape (n, 3, 3)."""
    a, b, c = np.moveaxis(corners, 1, 0)
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    away = np.einsum('ij,ij->i', point - a, n)
    foot, inside, nearest = point - away[:, None] * n, np.ones(len(a), dtype=bool), np.inf
    for first, second in ((a, b), (b, c), (c, a)):
        along = second - first
        inside &= np.einsum('ij,ij->i', np.cross(along, foot - first), n) >= 0.0
        share = np.einsum('ij,ij->i', point - first, along) / (along**2).sum(axis=1)
        off = point - first - np.clip(share, 0.0, 1.0)[:, None] * along
        nearest = min(nearest, np.linalg.norm(off, axis=1).min())
    return min(nearest, np.where(inside, np.abs(away), np.inf).min())


def points_near(mesh, count, random):
    """Yield points on faces, edges and vertices, moved by rounding or by up to 10 nm."""
    corners = mesh.vertices[mesh.triangles]
    low, high = mesh.vertices.min(axis=0)[:2] + 0.02, mesh.vertices.max(axis=0)[:2] - 0.02
    while count:
        share = random.dirichlet([1.0, 1.0, 1.0])
        share[: random.integers(3)] = 0.0  # a face, an edge or a vertex
        point = random.permutation(share / share.sum()) @ corners[random.integers(len(corners))]
        if not ((low < point[:2]) & (point[:2] < high)).all():
            continue  # a rim has no other side
        for axis in range(3):
            for _ in range(random.integers(4)):
                point[axis] = np.nextafter(point[axis], random.choice([-9.0, 9.0]))
        if random.random() < 0.3:
            point += random.normal(size=3) * 10.0 ** random.uniform(-15, -8)
        count -= 1
        yield point


@pytest.mark.parametrize('name', GROUNDS)
def test_no_contact_is_lost_or_invented_near_a_surface(name):
    ground, mesh = GROUNDS[name]
    corners = mesh.vertices[mesh.triangles]
    for point in points_near(mesh, 800, np.random.default_rng(3)):
        distance = distance_from(point, corners)
        gaps, normals = ground.contacts(point[None])
        # in front the nearest contact is at the distance, behind none is deeper
        assert abs(ground.distances(point[None])[0]) == pytest.approx(distance, abs=1e-9)
        assert -distance - 1e-9 <= gaps[0, 0] <= distance + 1e-9
        if name.endswith(('flat', 'slope')):  # an edge in a plane has its normal
            assert normals[0, 0] @ mesh.normals[0] == pytest.approx(1.0, abs=1e-12)
            assert (gaps[0, 1:] > 1.0).all()


@pytest.mark.parametrize('name', ['field 0.1 mm', 'field 0.1 m', 'mesh 0.1 mm', 'mesh 0.1 m'])
def test_distance_is_continuous_through_the_surface(name):
    ground, mesh = GROUNDS[name]
    random = np.random.default_rng(5)
    for point in points_near(mesh, 100, random):
        line = point + np.linspace(-1e-3, 1e-3, 81)[:, None] * random.normal(size=3)
        step = np.linalg.norm(line[1] - line[0])
        assert (np.abs(np.diff(ground.distances(line))) <= step * (1.0 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize('model', ['ncp', 'lcp'])
@pytest.mark.parametrize('seed', range(3))
def test_a_box_rests_on_a_planar_field(model, seed):
    """Its corners have radius 0, so rounding decides on which side of the ground they are."""
    field = HeightField.of_function(
        lambda x, y: SLOPE * x + 0.0 * y, (4.0, 4.0), 0.1, (-2.0, -2.0)
    )
    sim = Simulator(loose_box((0.2, 0.15, 0.1), 1.0), model, field, friction=0.5, time_step=0.002)
    angle, x = -np.arctan(SLOPE), np.random.default_rng(seed).uniform(-0.3, 0.3)
    out = np.array([np.sin(angle), 0.0, np.cos(angle)])
    start = [*(np.array([x, 0.1 * x, SLOPE * x]) + 0.05 * out)]
    sim.reset(np.array([*start, 0.0, np.sin(0.5 * angle), 0.0, np.cos(0.5 * angle)]))
    for _ in range(300):
        report = sim.step(np.zeros(0))
        # at most its weight, however shared
        assert report.pairs.force.max(initial=0.0) < 2.0 * 9.81
        assert report.residuals.energy_balance.change < 1e-12
    assert np.abs(sim.q[:3] - start).max() < 1e-9
