"""Points within a few units in the last place of faces, edges and vertices of the ground."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from contact_sim import Simulator, loose_box
from contact_sim.collision._mesh_contacts import BINS_X, SIDE, X0
from contact_sim.collision._surface import FIELD
from contact_sim.collision._terrain import FieldGround, MeshGround
from contact_sim.terrain import HeightField, Terraces, boxes

SCALE = 0.1
SLOPE = 0.49


def rough(amplitude):
    heights = np.random.default_rng(0).uniform(-amplitude, amplitude, (12, 14))
    return HeightField(heights, SCALE, (-0.5, -0.6))


def slope():
    return HeightField.of_function(
        lambda x, y: SLOPE * x + 0.13 * y, (1.0, 1.0), 0.1, (-0.5, -0.5)
    )


BOX = boxes([-0.4, -0.3, -0.5], [0.4, 0.3, 0.1])
TERRACES = Terraces(
    np.array([-0.5, -0.1, 0.2, 0.5]), np.array([-0.5, 0.1, 0.5]),
    np.array([[0.0, 0.1], [0.3, 0.3], [0.2, 0.0]]),
).as_mesh()  # fmt: skip
TILES = boxes([[-0.5, -0.5, -0.5], [0.1, -0.5, -0.5]], [[0.0, 0.5, 0.0], [0.5, 0.5, 0.2]])
FIELDS = {'flat': rough(0.0), '0.1 mm': rough(1e-4), '0.1 m': rough(0.1), 'slope': slope()}
GROUNDS = {
    **{f'field {name}': (FieldGround(field), field.as_mesh()) for name, field in FIELDS.items()},
    **{
        f'mesh {name}': (MeshGround(field.as_mesh()), field.as_mesh())
        for name, field in FIELDS.items()
    },
    'boxes': (MeshGround(TILES), TILES),
    'box': (MeshGround(BOX), BOX),
    'tiles': (MeshGround(TERRACES), TERRACES),
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
        assert abs(ground.signed_distance(point[None])[0]) == pytest.approx(distance, abs=1e-9)
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
        assert (np.abs(np.diff(ground.signed_distance(line))) <= step * (1.0 + 1e-9) + 1e-9).all()


ULPS = st.tuples(*3 * [st.integers(-4, 4)])
PLACES = st.tuples(
    st.sampled_from(sorted(GROUNDS)), st.integers(0, 10**6), st.integers(1, 3), st.integers(0, 2),
    st.tuples(*2 * [st.floats(0.05, 0.95)]),
)  # fmt: skip
"""A ground, one of its triangles, and a place on it: at a corner, on an edge, or inside."""


def place_of(place):
    """Return ground, mesh, the size of a triangle and a point on it."""
    name, number, corners, first, (u, v) = place
    ground, mesh = GROUNDS[name]
    corner = mesh.vertices[mesh.triangles[number % len(mesh.triangles)]]
    share = {1: [1.0, 0.0, 0.0], 2: [u, 1.0 - u, 0.0], 3: [u * v, u * (1.0 - v), 1.0 - u]}
    size = np.linalg.norm(corner[1] - corner[0]) + np.linalg.norm(corner[2] - corner[0])
    return ground, mesh, size, np.roll(share[corners], first) @ corner


def inside_rim(point, mesh):
    """Return how far a point is inside the rectangle about a mesh as seen from above [m]."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    return min(*(point[:2] - low[:2]), *(high[:2] - point[:2]))


def moved(point, ulps):
    """Return a point moved by some units in the last place of 1 m."""
    return point + np.array(ulps) * np.finfo(float).eps


@settings(max_examples=400, deadline=None)
@given(PLACES, ULPS)
def test_the_distance_of_a_point_within_ulps_of_a_surface_is_ulps(place, ulps):
    ground, _, _, point = place_of(place)
    away = moved(point, ulps)
    (distance,) = ground.signed_distance(away[None])
    gaps = ground.contacts(away[None])[0][0]
    assert abs(distance) <= np.linalg.norm(away - point) + 4e-16
    assert abs(gaps[0]) <= np.linalg.norm(away - point) + 4e-16


@settings(max_examples=400, deadline=None)
@given(PLACES, ULPS, st.integers(-16, -1), ULPS)
def test_distances_differ_by_no_more_than_their_points(place, ulps, power, way):
    """Through faces, edges and corners; not from below a border to beside it."""
    ground, mesh, size, point = place_of(place)
    one = moved(point, ulps)
    other = one + 10.0**power * np.array(way)
    if (mesh.neighbours < 0).any():
        assume(inside_rim(one, mesh) > 0.0)
        assume(inside_rim(other, mesh) > 0.0)
    first, second = ground.signed_distance([one, other])
    bound = np.linalg.norm(other - one)
    assert abs(second - first) <= bound * (1.0 + 1e-12) + 1e-9 * size


@settings(max_examples=400, deadline=None)
@given(PLACES, ULPS, st.integers(-9, -1))
def test_height_is_where_the_distance_changes_its_sign(place, ulps, power):
    ground, mesh, size, point = place_of(place)
    x, y, _ = moved(point, ulps)
    rim = inside_rim((x, y), mesh)
    assume(rim >= 0.0)
    # within 2e-8 m of a corner at a wall the sign may be that of the other side
    z, room = ground.height(x, y), 3e-8 * size
    above, on, below = ground.signed_distance(
        [[x, y, z + 10.0**power], [x, y, z], [x, y, z - 10.0**power]]
    )
    assert abs(on) <= room
    assert -room <= above <= 10.0**power + room
    assert above > 0.0 or 10.0**power <= room
    if ground.kind == FIELD or rim > 10.0**power or (mesh.neighbours >= 0).all():
        assert -(10.0**power) - room <= below <= room


@settings(max_examples=400, deadline=None)
@given(PLACES, ULPS, st.integers(-16, -1), ULPS)
def test_the_search_finds_the_distance_in_front_and_no_depth_beyond_it(place, ulps, power, way):
    ground, mesh, size, point = place_of(place)
    point = moved(point, ulps) + 10.0**power * np.array(way)
    assume(ground.kind != FIELD or inside_rim(point, mesh) >= 0.0)  # not beside, below its rim
    (distance,) = ground.signed_distance(point[None])
    gaps, normals = ground.contacts(point[None])
    if distance > 1e-9 * size:
        assert gaps[0, 0] == pytest.approx(distance, abs=1e-9 * size)
        foot = point - gaps[0, 0] * normals[0, 0]
        assert abs(ground.signed_distance(foot[None])[0]) <= 2e-9 * size
    else:
        # planes behind which it is less deep count, too; none deeper
        assert -abs(distance) - 4e-9 * size <= gaps.min() <= 4e-9 * size


@pytest.mark.parametrize('name', ['tiles', 'boxes', 'mesh 0.1 m'])
def test_no_height_is_lost_where_bins_meet(name):
    ground, mesh = GROUNDS[name]
    data = ground.data
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    for k in range(int(data[BINS_X])):
        x = data[X0] + k * data[SIDE]
        for near in (np.nextafter(x, -9.0), x, np.nextafter(x, 9.0)):
            height = ground.height(near, 0.0123)
            if name == 'boxes' and 0.001 < near < 0.099:  # between the boxes
                assert np.isnan(height)
            elif low[0] <= near <= high[0]:
                assert low[2] <= height <= high[2]


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
