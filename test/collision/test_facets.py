"""Height fields and meshes as ground: exact distances, and no edge felt where there is none."""

import numba
import numpy as np
import pytest

from contact_sim.collision._contact_slots import UNUSED_GAP
from contact_sim.collision._facets import plane_through
from contact_sim.collision._height_field_contacts import (
    CORNER,
    PER_POINT,
    UPPER,
    X0,
    Y0,
    Patch,
    beside_part,
    contact_with,
    corners_of,
    other_end,
    place_of,
    point_of,
    top_of,
)
from contact_sim.collision._mesh_contacts import (
    CORNER_NUMBERS,
    CORNERS_FROM,
    EDGE_NUMBERS,
    EDGES,
    EDGES_FROM,
    FEW_ENTRIES,
    SMALLER_BINS,
    TRIANGLES,
    Bins,
    triangle_at,
)
from contact_sim.collision._surface import FIELD, curvature, find_contacts
from contact_sim.collision._terrain import FieldGround, MeshGround
from contact_sim.dynamics._vectors import dot, scaled, sub, vec
from contact_sim.terrain import HeightField, Terraces, TriangleMesh, boxes, concatenate

SCALE = 0.1
FLAT_MESH = HeightField(np.zeros((21, 21)), SCALE, (-1.0, -1.0)).as_mesh()


def rough(amplitude, seed=0):
    heights = np.random.default_rng(seed).uniform(-amplitude, amplitude, (17, 23))
    return HeightField(heights, SCALE, (-0.8, -1.1))


def brute_force(point, triangles):
    """Return distance and place of the nearest point of triangles, each by itself."""
    a, b, c = np.moveaxis(triangles, 1, 0)
    n = np.cross(b - a, c - a)
    n /= np.linalg.norm(n, axis=1)[:, None]
    foot = point - np.einsum('ij,ij->i', point - a, n)[:, None] * n
    inside = np.ones(len(a), dtype=bool)
    places = [foot]
    for first, second in ((a, b), (b, c), (c, a)):
        along = second - first
        inside &= np.einsum('ij,ij->i', np.cross(along, foot - first), n) >= 0.0
        share = np.einsum('ij,ij->i', point - first, along) / (along**2).sum(axis=1)
        places.append(first + np.clip(share, 0.0, 1.0)[:, None] * along)
    places[0] = np.where(inside[:, None], foot, np.inf)
    distance = np.linalg.norm(point - np.array(places), axis=2)
    corner, row = np.unravel_index(distance.argmin(), distance.shape)
    return distance[corner, row], places[corner][row]


@pytest.mark.parametrize('amplitude', [0.0, 0.01, 0.1, 0.5])
@pytest.mark.parametrize('ground_of', [FieldGround, lambda f: MeshGround(f.as_mesh())])
def test_distance_is_that_of_the_nearest_triangle(amplitude, ground_of):
    field = rough(amplitude)
    mesh = field.as_mesh()
    ground, triangles = ground_of(field), mesh.vertices[mesh.triangles]
    random = np.random.default_rng(1)
    low, high = [-0.75, -1.05, -amplitude - 0.1], [0.75, 1.05, amplitude + 0.6]
    points = random.uniform(low, high, (400, 3))
    distances = ground.signed_distance(points)
    found, normals = ground.contacts(points)
    assert (np.abs(np.linalg.norm(normals, axis=2) - 1.0) < 1e-12).all()
    for point, distance, contact, normal in zip(points, distances, found, normals, strict=True):
        expected, place = brute_force(point, triangles)
        front = point[2] > ground.height(*point[:2])
        assert distance == pytest.approx(expected if front else -expected, abs=1e-12)
        if front:
            assert contact[0] == pytest.approx(expected, abs=1e-12)
            assert point - contact[0] * normal[0] == pytest.approx(place, abs=1e-9)
        else:
            assert contact[0] < 0.0


def test_distance_from_boxes_is_analytic():
    low = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    high = np.array([[1.0, 1.0, 0.5], [3.0, 1.0, 0.3], [1.0, 3.0, 1.0]])
    ground = MeshGround(boxes(low, high))
    points = np.random.default_rng(2).uniform([-0.5] * 3, [3.5, 3.5, 1.5], (2000, 3))
    beside = np.maximum(low - points[:, None], points[:, None] - high)
    outside = np.linalg.norm(np.maximum(beside, 0.0), axis=2)
    expected = np.where(outside > 0.0, outside, beside.max(axis=2)).min(axis=1)
    assert np.abs(ground.signed_distance(points) - expected).max() < 1e-12
    assert (expected < 0.0).sum() > 50


@numba.njit
def field_feature(ground, feature, x, y, z):
    """Return φ and n of one feature, whether or not the point is nearest to it."""
    p = (x - ground.data[X0], y - ground.data[Y0], z)
    i, j, part = place_of(ground, feature)
    a = point_of(ground, i, j)
    if part <= UPPER:
        a, b, c = corners_of(ground, i, j, part)
        n = plane_through(a, b, c)
        return dot(n, sub(p, a)), n
    off = sub(p, a)
    if part != CORNER:
        along = sub(other_end(ground, i, j, part), a)
        off = sub(off, scaled(dot(off, along) / dot(along, along), along))
    distance = np.sqrt(dot(off, off))
    return distance, scaled(1.0 / distance, off) if distance > 0.0 else (0.0, 0.0, 1.0)


@numba.njit
def mesh_feature(ground, feature, x, y, z):
    """Return φ and n of one feature, whether or not the point is nearest to it."""
    data, relief, p, number = ground.data, ground.relief, (x, y, z), int(feature)
    triangles, edges = int(data[TRIANGLES]), int(data[EDGES])
    if number < triangles:
        triangle = triangle_at(relief, number)
        return dot(triangle.n, sub(p, triangle.a)), triangle.n
    if number < triangles + edges:
        row = int(data[EDGES_FROM]) + EDGE_NUMBERS * (number - triangles)
        a, b = vec(relief, row), vec(relief, row + 3)
        along, off = sub(b, a), sub(p, a)
        off = sub(off, scaled(dot(off, along) / dot(along, along), along))
    else:
        row = int(data[CORNERS_FROM]) + CORNER_NUMBERS * (number - triangles - edges)
        off = sub(p, vec(relief, row))
    distance = np.sqrt(dot(off, off))
    return distance, scaled(1.0 / distance, off) if distance > 0.0 else (0.0, 0.0, 1.0)


@pytest.mark.parametrize('ground', [FieldGround(rough(0.2)), MeshGround(rough(0.2).as_mesh())])
def test_normal_is_the_gradient_and_curvature_that_of_the_normal(ground):
    """Central differences of the feature that a point touches, triangles, edges and corners."""
    random, kinds = np.random.default_rng(3), set()
    feature_at = field_feature if ground.kind == FIELD else mesh_feature
    for point in random.uniform([-0.7, -1.0, -0.2], [0.7, 1.0, 0.5], (150, 3)):
        found = np.zeros(3), np.zeros((3, 3, 3)), np.zeros(3)
        find_contacts(ground.ground, *point, 0.05, found, 0, 3)
        for distance, frame, feature in zip(*found, strict=True):
            if not 0.02 < distance < 1.0:
                continue
            away, normal = feature_at(ground.ground, feature, *point)
            assert away == pytest.approx(distance, abs=1e-12)
            assert np.array(normal) == pytest.approx(frame[2], abs=1e-9)
            h, slope, turn = 1e-5, np.zeros(3), np.zeros((3, 3))
            for axis in range(3):
                step = h * np.eye(3)[axis]
                after = feature_at(ground.ground, feature, *(point + step))
                before = feature_at(ground.ground, feature, *(point - step))
                slope[axis] = (after[0] - before[0]) / (2 * h)
                turn[:, axis] = (np.array(after[1]) - before[1]) / (2 * h)
            assert slope == pytest.approx(frame[2], abs=1e-6)
            xx, xy, xz, yy, yz, zz = curvature(ground.ground, feature, *point)
            bend = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            assert np.abs(turn - bend).max() < 1e-6 * (1.0 + np.abs(bend).max())
            rank = np.linalg.matrix_rank(bend, tol=1e-6)
            kinds.add(int(rank))
    assert kinds == {0, 1, 2}  # triangles, edges, corners


@pytest.mark.parametrize('ground', [
    FieldGround(HeightField(np.zeros((21, 21)), SCALE, (-1.0, -1.0))), MeshGround(FLAT_MESH),
])  # fmt: skip
def test_a_flat_floor_has_one_contact_wherever_a_sphere_is(ground):
    random = np.random.default_rng(4)
    points = random.uniform([-0.9, -0.9, 1e-6], [0.9, 0.9, 0.3], (300, 3))
    points[:100, :2] = SCALE * np.round(points[:100, :2] / SCALE)  # over corners
    points[100:200, 0] = SCALE * np.round(points[100:200, 0] / SCALE)  # over edges
    distance, normal = ground.contacts(points)
    assert distance[:, 0] == pytest.approx(points[:, 2], abs=1e-15)
    assert (distance[:, 1:] == UNUSED_GAP).all()
    assert np.abs(normal[:, 0] - [0.0, 0.0, 1.0]).max() < 1e-12


def test_no_seam_is_felt_between_parts_that_share_no_corner():
    """Two halves of a floor with cells of different size, and a border where the floor ends."""
    left = HeightField(np.zeros((8, 15)), SCALE, (-0.7, -0.7)).as_mesh()
    right = HeightField(np.zeros((6, 11)), 0.14, (0.0, -0.7)).as_mesh()
    ground = MeshGround(concatenate([left, right]))
    for x in (-1e-3, 0.0, 1e-3, 5e-3):
        distance, _ = ground.contacts([[x, y, 0.02] for y in np.linspace(-0.65, 0.65, 40)])
        assert distance[:, 0] == pytest.approx(0.02, abs=1e-12)
        assert (distance[:, 1:] == UNUSED_GAP).all()
    beyond = ground.contacts([[0.0, 0.71, 0.02]])[0][0]
    assert beyond[0] == pytest.approx(np.hypot(0.01, 0.02), abs=1e-9)


def test_both_sides_of_a_concave_corner_are_felt_and_an_edge_once():
    """A step up at x = 0: floor at 0 for x < 0, 0.15 above for x > 0, a wall in between."""
    floor = [[-1, -1, 0], [0, -1, 0], [0, 1, 0], [-1, 1, 0]]
    top = [[0, -1, 0.15], [1, -1, 0.15], [1, 1, 0.15], [0, 1, 0.15]]
    quads = [[0, 1, 2, 3], [4, 5, 6, 7], [1, 4, 7, 2]]
    triangles = [t for a, b, c, d in quads for t in ([a, b, c], [a, c, d])]
    ground = MeshGround(TriangleMesh(np.array(floor + top, dtype=float), np.array(triangles)))

    def contacts(x, z):
        distance, normal = ground.contacts([[x, 0.1, z]])
        held = distance[0] < UNUSED_GAP
        return {
            (round(d, 9), *np.round(n[[0, 2]], 6)) for d, n in
            zip(distance[0][held], normal[0][held], strict=True)
        }  # fmt: skip

    for x, z in ((-0.015, 0.01), (-0.005, 0.005)):
        distance, normal = ground.contacts([[x, 0.1, z]])
        assert sorted(distance[0][:2]) == pytest.approx(sorted([-x, z]))
        assert (-1.0, 0.0) in {tuple(np.round(n[[0, 2]], 9)) for n in normal[0][:2]}
        assert (0.0, 1.0) in {tuple(np.round(n[[0, 2]], 9)) for n in normal[0][:2]}
    # a little inside of both, inside of the wall alone, inside of the floor alone
    assert contacts(0.001, -0.002) == {(-0.001, -1.0, 0.0), (-0.002, 0.0, 1.0)}
    assert {(-0.001, -1.0, 0.0), (0.004, 0.0, 1.0)} <= contacts(0.001, 0.004)
    # near the upper edge: in front of it one contact, inside of it the nearer side
    assert contacts(-0.01, 0.16) == {(round(np.hypot(0.01, 0.01), 9), -0.707107, 0.707107)}
    assert contacts(0.05, 0.149) == {(-0.001, 0.0, 1.0)}
    assert contacts(0.001, 0.1) == {(-0.001, -1.0, 0.0)}


def outwards(point, mesh):
    """Return the distance of a point by all triangles, with the sign by Baerentzen (2005).

    That of the offset from the nearest place along the sum of the normals there, weighted by their
    angles at a corner. Beyond an open border all is outside.
    """
    corners, n = mesh.vertices[mesh.triangles], mesh.normals
    distance, place = brute_force(point, corners)
    off = np.linalg.norm(corners - place, axis=2) < 1e-12
    along = np.roll(corners, -1, axis=1) - corners
    share = np.einsum('tki,tki->tk', place - corners, along) / (along**2).sum(axis=2)
    foot = corners + share[:, :, None] * along
    on = (np.linalg.norm(foot - place, axis=2) < 1e-12) & (share > -1e-9) & (share < 1.0 + 1e-9)
    if ((mesh.neighbours < 0) & on).any():
        return distance
    if off.any():
        t, k = np.nonzero(off)
        before = corners[t, (k + 2) % 3] - corners[t, k]
        cosine = np.einsum('ij,ij->i', along[t, k], before)
        cosine /= np.linalg.norm(along[t, k], axis=1) * np.linalg.norm(before, axis=1)
        direction = np.arccos(cosine) @ n[t]
    elif on.any():
        direction = n[on.any(axis=1)].sum(axis=0)
    else:
        away = np.einsum('tki,ti->tk', place - corners, n)
        around = np.abs(np.linalg.norm(np.cross(along, place - corners), axis=2).sum(axis=1))
        area = np.linalg.norm(np.cross(along[:, 0], along[:, 1]), axis=1)
        direction = n[(np.abs(away).max(axis=1) < 1e-12) & (around < area * (1.0 + 1e-9))][0]
    return distance if (point - place) @ direction >= 0.0 else -distance


STEPPED = Terraces(
    np.linspace(-0.5, 0.5, 5), np.linspace(-0.5, 0.5, 4),
    np.random.default_rng(7).uniform(0.0, 0.3, (4, 3)).round(2),
).as_mesh()  # fmt: skip
SOLIDS = boxes(
    [[-0.5, -0.5, -0.5], [0.1, -0.5, -0.5], [-0.2, -0.2, 0.0]],
    [[0.1, 0.5, 0.0], [0.5, 0.5, 0.2], [0.3, 0.1, 0.4]],
)


@pytest.mark.parametrize(
    'mesh', [rough(0.2).as_mesh(), STEPPED, SOLIDS], ids=['field', 'tiles', 'boxes']
)
def test_signed_distance_is_that_of_all_triangles_and_their_normals(mesh):
    """In front, behind, beside and beyond the borders, up to metres away."""
    ground, random = MeshGround(mesh), np.random.default_rng(8)
    points = random.uniform([-1.2, -1.4, -0.8], [1.2, 1.4, 0.8], (250, 3))
    points[-10:] *= 4.0
    expected = np.array([outwards(point, ground.mesh) for point in points])
    assert np.abs(ground.signed_distance(points) - expected).max() < 1e-12
    assert (expected < 0.0).sum() > 5


def test_depth_is_found_at_any_depth_and_beside_cliffs():
    """More than 2 m inside a box; beside and inside a step of a field that is 4 m high."""
    block = MeshGround(boxes([-5, -5, -10], [5, 5, 0]))
    points = np.array([[0.0, 0.0, z] for z in (3.0, -1.9, -2.1, -4.0)])
    assert block.signed_distance(points) == pytest.approx(points[:, 2], abs=1e-12)
    assert block.contacts(points[1:])[0][:, 0] == pytest.approx(points[1:, 2], abs=1e-12)
    heights = np.zeros((21, 21))
    heights[10:] = 4.0
    cliff = FieldGround(HeightField(heights, SCALE, (-1.0, -1.0)))  # from x = −0.1 to 0
    n = np.array([-4.0, 0.0, 0.1]) / np.hypot(4.0, 0.1)
    for x, z in ((-0.11, 2.5), (0.01, 1.5), (-0.05, 3.5), (-0.02, 0.9)):
        distance = n @ [x, 0.03, z - 4.0]
        assert cliff.signed_distance([[x, 0.03, z]]) == pytest.approx([distance], abs=1e-12)
        found = cliff.contacts([[x, 0.03, z]])
        assert found[0][0, 0] == pytest.approx(distance, abs=1e-12)
        assert found[1][0, 0] == pytest.approx(n, abs=1e-9)


@pytest.mark.parametrize('ground', [
    FieldGround(HeightField(np.zeros((21, 21)), SCALE, (-1.0, -1.0))), MeshGround(FLAT_MESH),
])  # fmt: skip
def test_beyond_an_open_border_is_no_ground(ground):
    """The distance of a square, at every height; a sphere that falls past it is not held."""
    points = np.random.default_rng(9).uniform([0.8, 0.8, -0.5], [1.5, 1.5, 0.5], (300, 3))
    points[:50, :2] = 1.0 + np.abs(points[:50, :2] - 1.0)  # beyond the corner
    beside = np.maximum(np.abs(points[:, :2]) - 1.0, 0.0)
    expected = np.sqrt((beside**2).sum(axis=1) + points[:, 2] ** 2)
    expected *= np.where((beside == 0.0).all(axis=1), np.sign(points[:, 2]), 1.0)
    assert ground.signed_distance(points) == pytest.approx(expected, abs=1e-12)
    found = ground.contacts(points)[0][:, 0]
    assert found == pytest.approx(expected, abs=1e-12)
    under = [[1.0, 0.33, -0.02], [1.0, 0.3, -0.02]]
    assert ground.signed_distance(under) == pytest.approx([-0.02, -0.02], abs=1e-12)


def test_behind_an_edge_that_is_nearly_flat_is_behind():
    """Its fold is less than the angle by which a direction may leave its normals."""
    for fold in (3e-9, 1e-8, 1e-7, 1e-6, 1e-3):
        roof = HeightField([[-fold] * 3, [0.0] * 3, [-fold] * 3], 1.0, (-1.0, -1.0)).as_mesh()
        points = np.array([[0.0, y, z] for y in (-0.5, 0.0, 0.3) for z in (-0.3, -1e-6, 1e-6)])
        found = MeshGround(roof).signed_distance(points)
        assert found == pytest.approx(points[:, 2], abs=1e-6 * fold + 1e-12, rel=fold)
        assert np.isin(np.sign(found), np.sign(points[:, 2])).all()


def test_a_border_is_felt_only_where_no_other_part_continues_it():
    """A floor, and two others beside it with a gap in between."""
    left = HeightField(np.zeros((3, 5)), 0.5, (-1.0, -1.0)).as_mesh()  # x to 0, y from −1 to 1
    low = HeightField(np.zeros((4, 3)), 0.35, (0.0, -1.0)).as_mesh()  # y to −0.3
    high = HeightField(np.zeros((4, 3)), 0.3, (0.0, 0.4)).as_mesh()  # y from 0.4
    ground = MeshGround(concatenate([left, low, high]))
    y = np.concatenate([np.linspace(-0.95, -0.3, 50), np.linspace(0.4, 0.95, 50)])
    for x in (-0.02, -1e-7, 0.0, 1e-7, 0.02):
        points = np.column_stack([np.full(len(y), x), y, np.full(len(y), 0.03)])
        distance, normal = ground.contacts(points)
        assert distance[:, 0] == pytest.approx(0.03, abs=1e-12)
        assert normal[:, 0, 2] == pytest.approx(1.0, abs=1e-9)
        assert (distance[:, 1:] == UNUSED_GAP).all()
    gap = ground.contacts([[0.04, 0.05, 0.03]])[0][0]
    assert gap[0] == pytest.approx(0.05, abs=1e-12)
    data, relief = ground.data, ground.relief
    edges = relief[int(data[EDGES_FROM]) :].reshape(-1)[: EDGE_NUMBERS * int(data[EDGES])]
    ends = edges.reshape(-1, EDGE_NUMBERS)[:, :6].reshape(-1, 2, 3)
    seam = ends[(ends[:, :, 0] == 0.0).all(axis=1)][:, :, 1]
    assert sorted(np.sort(seam).ravel()) == pytest.approx([-0.3, 0.0, 0.0, 0.4], abs=1e-9)


def test_beside_and_far_away_nothing_goes_wrong():
    for ground in (FieldGround(rough(0.1)), MeshGround(rough(0.1).as_mesh())):
        assert np.isnan(ground.height(5.0, 0.0))
        for point in ([50.0, 0.0, 1.0], [0.0, 0.0, 1e3], [0.0, 0.0, -50.0], [1e12, 1e12, 1e12]):
            distance, normal = ground.contacts([point])
            assert np.isfinite(distance).all()
            assert np.isfinite(normal).all()


@pytest.mark.parametrize('seed', range(5))
def test_no_part_of_a_field_that_touches_is_passed_by(seed):
    """The quick look from above rejects nothing that is found, and most of what is far off."""
    rng, scale, found, passed = np.random.default_rng(seed), 0.05, 0, 0
    for _ in range(1500):
        patch = Patch(*rng.uniform(-0.02, 0.02, 7))
        x, y = scale * rng.uniform(-1.5, 2.5, 2)
        p, limit = (float(x), float(y), rng.uniform(0.0, 0.06)), 0.04
        wide = limit**2 - max(p[2] - top_of(patch), 0.0) ** 2
        for part in range(PER_POINT):
            touches = contact_with(patch, scale, p, part, limit)[0] < np.inf
            passes = beside_part(p, part, wide)
            assert not (touches and passes)
            found, passed = found + touches, passed + passes
    assert found > 50
    assert passed > 400


def test_bins_have_every_facet_that_reaches_into_them_and_are_small_where_these_crowd():
    random = np.random.default_rng(0)
    # in the middle of a wide floor
    lower = np.vstack([[[-50.0, -50.0, 0.0]], random.uniform(-5.0, 5.0, (80, 3))])
    upper = lower + np.vstack([[[100.0, 100.0, 0.0]], random.uniform(0.0, 2.0, (80, 3))])
    bins = Bins.of(lower, upper)
    side, origin, count = bins.side, np.array(bins.origin), np.array(bins.count)
    coarse = 100.0 / np.sqrt(len(lower))
    assert coarse / SMALLER_BINS <= side <= 0.5 * coarse
    assert max(len(bins.entries), len(bins.tops)) <= FEW_ENTRIES
    for bx in range(count[0]):
        for by in range(count[1]):
            k = count[1] * bx + by
            begin = origin + side * np.array([bx, by])
            meets = (lower[:, :2] < begin + side) & (upper[:, :2] >= begin)
            expected = np.flatnonzero(meets.all(axis=1))
            entries = bins.entries[int(bins.starts[k]) : int(bins.starts[k + 1])]
            np.testing.assert_array_equal(entries, expected)
            assert bins.tops[k] == upper[expected, 2].max()
