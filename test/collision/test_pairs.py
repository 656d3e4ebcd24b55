"""Contacts between solids against coal, and against the motion of their bodies."""

from functools import cache

import coal
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial import ConvexHull

from contact_sim.arrays._fields import CANDIDATE_NUMBERS, PAIR_NUMBERS
from contact_sim.collision._body_pairs import detect_pairs
from contact_sim.collision._contact_slots import (
    CONTACTS,
    DROPPED,
    KEPT,
    clear_pool,
    keep_pair_contact,
)
from contact_sim.collision._hull_contacts import (
    CROSSINGS,
    ENDS,
    MOST_ON_FACE,
    NEAREST,
    OF_SECOND,
)
from contact_sim.collision._shapes import most_edges, shapes_of
from contact_sim.collision._solid_contacts import nearest_on_line
from contact_sim.collision._surface import NEAR
from contact_sim.robot._collision_pairs import RIM_CORNERS, Solid
from contact_sim.robot._contact_points import SIGNS

SPHERE, CAPSULE, BOX = (0.0, 0.0, 0.0, 0.06), (0.0, 0.0, 0.15, 0.04), (0.1, 0.07, 0.05, 0.0)
THIN = (0.2, 0.01, 0.012, 0.0)
PAIRS = {
    'two spheres': (SPHERE, SPHERE), 'sphere, capsule': (SPHERE, CAPSULE),
    'sphere, box': (SPHERE, BOX), 'two capsules': (CAPSULE, CAPSULE),
    'capsule, box': (CAPSULE, BOX), 'two boxes': (BOX, BOX), 'thin boxes': (THIN, THIN),
}  # fmt: skip
ROUND = [name for name in PAIRS if 'boxes' not in name]


def solid(size):
    """Return a solid of half sizes and radius; hulls and cylinders as they are."""
    return size if isinstance(size, Solid) else Solid('a', 'link', 'joint', size[:3], size[3])


def hull(corners):
    """Return the convex hull of corners (n, 3) about the middle of their box."""
    corners = corners[ConvexHull(corners).vertices]
    low, high = corners.min(axis=0), corners.max(axis=0)
    around = tuple(map(tuple, corners - 0.5 * (low + high)))
    return Solid('hull', 'link', 'joint', tuple(0.5 * (high - low)), corners=around)


def random_hull(rng):
    ways = np.array([unit(rng, 3) for _ in range(rng.integers(4, 20))])
    return hull(rng.uniform(0.04, 0.12) * ways * rng.uniform(0.4, 1.0, 3))


def cylinder(radius, half):
    size = (radius, radius, half)
    return Solid('cylinder', 'link', 'joint', size, cylinder=(radius, half))


@cache
def shape_of(half, radius, corners, cylinder):
    """Return a solid as a shape of coal, and its radius where that does not have it."""
    if cylinder:
        return coal.Cylinder(cylinder[0], 2.0 * cylinder[1]), 0.0
    if corners:
        points = coal.StdVec_Vec3s()
        points.extend([np.array(corner) for corner in corners])
        return coal.ConvexBase.convexHull(points, False, 'Qt'), radius
    if half[0] > 0.0:
        return coal.Box(*(2.0 * x for x in half)), radius
    if half[2] > 0.0:
        return coal.Capsule(radius, 2.0 * half[2]), 0.0
    return coal.Sphere(radius), 0.0


def row_of(M):
    return [*M.rotation.ravel('F'), *M.translation]


@cache
def numbers_of(*outlines):
    """Return shapes, where each begins, and scratch for their edges, of (half, radius, ...)."""
    solids = [
        Solid('a', 'link', 'joint', half, radius, corners=corners, cylinder=cylinder)
        for half, radius, corners, cylinder in outlines
    ]
    shapes, begin = shapes_of(solids)
    return shapes, begin, np.zeros((2 * most_edges(shapes, begin), CANDIDATE_NUMBERS))


def outline(one):
    return one.half, one.radius, one.corners, one.cylinder


def detect(place, solids, pool):
    """Search the pair of two solids, each an island of its own."""
    size = np.array([[*one.half, one.radius] for one in solids])
    reach = np.array([one.reach for one in solids])
    shapes, begin, scratch = numbers_of(*map(outline, solids))
    pairs, islands = np.array([0, 1, -1, -1, -1]), np.arange(2)
    assert len(pairs) == PAIR_NUMBERS
    solids = place, size, reach, islands, shapes, begin, scratch
    clear_pool(pool)
    detect_pairs(solids, pairs, np.array([0, 1, 0, 1]), np.zeros((2, 6)), pool)


def contacts(sizes, placements, slots=16):
    """Return key within the pair, gap, point and normal of every contact of two solids."""
    counts = np.zeros(2, dtype=np.int64)
    position, frame = np.zeros((slots, 3)), np.zeros((slots, 3, 3))
    gap, feature = np.zeros(slots), np.zeros(slots)
    pool = (0, counts, position, frame, gap, feature)
    detect(np.array([row_of(M) for M in placements]), [solid(size) for size in sizes], pool)
    n = counts[KEPT]
    assert np.all((feature[:n] >= 0.0) & (feature[:n] < CONTACTS))
    assert np.all(feature[n:] == -1.0)
    assert len(set(feature[:n])) == n
    np.testing.assert_allclose(
        np.einsum('iab,icb->iac', frame, frame), [np.eye(3)] * slots, atol=1e-12
    )
    return feature[:n], gap[:n], position[:n], frame[:n, 2]


def coal_distance(sizes, placements):
    return distance_and_normal(sizes, placements)[0]


def distance_and_normal(sizes, placements):
    """Return those of coal, the normal out of the second solid."""
    given, rounding, result = [], 0.0, coal.DistanceResult()
    for size, M in zip(sizes, placements, strict=True):
        shape, radius = shape_of(*outline(solid(size)))
        given += [shape, coal.Transform3s(M.rotation, M.translation)]
        rounding += radius
    distance = coal.distance(*given, coal.DistanceRequest(), result)
    return distance - rounding, -np.array(result.normal)


def near_each_other(rng, sizes, deepest, count):
    """Yield random placements of two solids, near each other or overlapping by little."""
    found = 0
    while found < count:
        first, second = pin.SE3.Random(), pin.SE3.Random()
        first.rotation = pin.Quaternion(unit(rng, 4)).toRotationMatrix()
        second.rotation = pin.Quaternion(unit(rng, 4)).toRotationMatrix()
        second.translation = rng.uniform(-0.2, 0.2, 3)
        first.translation = second.translation + rng.uniform(0.02, 0.3) * unit(rng, 3)
        distance = coal_distance(sizes, (first, second))
        if deepest <= distance <= 1.5 * NEAR:
            found += 1
            yield (first, second), distance


def unit(rng, n):
    x = rng.normal(size=n)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize('name', ROUND)
def test_distances_of_round_solids_are_those_of_coal(name):
    sizes, rng = PAIRS[name], np.random.default_rng(1)
    deepest = -0.9 * (sizes[0][3] + sizes[1][3])  # as long as the cores do not meet
    for placements, distance in near_each_other(rng, sizes, deepest, 1500):
        _, gap, point, normal = contacts(sizes, placements)
        if distance > NEAR:
            assert len(gap) == 0
            continue
        assert gap.min() == pytest.approx(distance, abs=2e-6)  # GJK of coal ends at 1e-6
        # the point is on the surface of the first solid, and its partner on that of the second
        ball = (0.0, 0.0, 0.0, 1e-9)
        x, n, away = point[gap.argmin()], normal[gap.argmin()], gap.min()
        for size, M, place in zip(sizes, placements, (x, x - away * n), strict=True):
            at = pin.SE3(np.eye(3), place)
            assert coal_distance((ball, size), (at, M)) == pytest.approx(0.0, abs=3e-6)


@pytest.mark.parametrize('name', ['two boxes', 'thin boxes'])
def test_overlap_of_boxes_is_that_of_coal(name):
    sizes, rng, seen = PAIRS[name], np.random.default_rng(2), 0
    tolerance = 1e-4 * min(min(size[:3]) for size in sizes) + 2e-6
    for placements, distance in near_each_other(rng, sizes, -0.02, 1500):
        _, gap, _, _ = contacts(sizes, placements)
        if distance < 0.0:
            assert gap.min() == pytest.approx(distance, abs=tolerance)
            seen += 1
        elif len(gap):
            assert -tolerance < gap.min() < 1.5 * distance + tolerance  # along an axis
    assert seen > 300


def test_a_box_lies_on_another_one_at_its_corners():
    upper = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 0.3), np.array([0.02, 0.01, 0.0999]))
    small = (0.05, 0.03, 0.05, 0.0)
    _, gap, point, normal = contacts((small, BOX), (upper, pin.SE3.Identity()))
    np.testing.assert_allclose(gap, -1e-4, atol=1e-12)
    np.testing.assert_allclose(normal, [[0.0, 0.0, 1.0]] * 4, atol=1e-12)
    corners = [upper.act(np.array([x, y, -0.05])) for x in (-0.05, 0.05) for y in (-0.03, 0.03)]
    assert sorted(map(tuple, point.round(9))) == sorted(map(tuple, np.round(corners, 9)))


def test_planks_across_each_other_touch_at_four_crossings():
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, np.pi / 2), np.array([0.0, 0.0, 0.024]))
    _, gap, point, _ = contacts((THIN, THIN), (turned, pin.SE3.Identity()))
    np.testing.assert_allclose(gap, 0.0, atol=1e-12)
    expected = [(x, y, 0.012) for x in (-0.01, 0.01) for y in (-0.01, 0.01)]
    np.testing.assert_allclose(sorted(map(tuple, point.round(12))), expected, atol=1e-12)


@pytest.mark.parametrize('shift', [0.0, 0.01])
def test_equal_boxes_on_each_other_touch_at_four_points(shift):
    upper = pin.SE3(np.eye(3), np.array([shift, 0.0, 0.1]))
    _, gap, point, _ = contacts((BOX, BOX), (upper, pin.SE3.Identity()))
    assert len(gap) == 4
    np.testing.assert_allclose(gap, 0.0, atol=1e-12)
    assert point[:, 0].min() == pytest.approx(shift - 0.1)
    assert point[:, 0].max() == pytest.approx(0.1)


def test_a_capsule_lies_on_a_box_at_both_ends_of_what_lies_there():
    lying = pin.SE3(pin.rpy.rpyToMatrix(0.0, np.pi / 2, 0.0), np.array([0.0, 0.0, 0.09]))
    _, gap, point, _ = contacts((CAPSULE, BOX), (lying, pin.SE3.Identity()))
    np.testing.assert_allclose(gap, 0.0, atol=1e-12)
    np.testing.assert_allclose(sorted(point[:, 0]), [-0.1, 0.1], atol=1e-12)


def test_capsules_side_by_side_touch_at_two_places():
    beside = pin.SE3(np.eye(3), np.array([0.08, 0.0, 0.1]))
    _, gap, point, normal = contacts((CAPSULE, CAPSULE), (beside, pin.SE3.Identity()))
    np.testing.assert_allclose(gap, 0.0, atol=1e-12)
    np.testing.assert_allclose(sorted(point[:, 2]), [-0.05, 0.15], atol=1e-12)
    np.testing.assert_allclose(normal, [[1.0, 0.0, 0.0]] * 2, atol=1e-12)


@pytest.mark.parametrize('name', PAIRS)
def test_gaps_change_as_the_normals_say(name):
    """φ̇ = n · (v_A − v_B) at the contact, for random motions of both bodies.

    Of the contacts over a face those of corners keep their place on one of the bodies.
    """
    followed = (0, 1, 2, 3, 24) if 'boxes' in name else (0,)
    sizes, rng, step, seen = PAIRS[name], np.random.default_rng(3), 1e-7, 0
    for placements, _ in near_each_other(rng, sizes, -0.01, 300):
        keys, gap, point, normal = contacts(sizes, placements)
        twists = [
            pin.Motion(rng.normal(size=6)) for _ in placements
        ]  # of the world, at the origin
        moved = [pin.exp6(twist * step) * M for twist, M in zip(twists, placements, strict=True)]
        later, gap_later, _, _ = contacts(sizes, moved)
        for k, key in enumerate(keys):
            if key in later:
                middle = point[k] - 0.5 * gap[k] * normal[k]
                v = [twist.linear + np.cross(twist.angular, middle) for twist in twists]
                rate = (gap_later[list(later).index(key)] - gap[k]) / step
                if key % 32 in followed:
                    assert rate == pytest.approx(normal[k] @ (v[0] - v[1]), abs=1e-4)
                    seen += 1
    assert seen > 50


def test_the_nearest_contacts_are_kept():
    turned = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.01, 0.3), np.array([0.0, 0.0, 0.1]))
    whole = contacts((BOX, BOX), (turned, pin.SE3.Identity()))
    some = contacts((BOX, BOX), (turned, pin.SE3.Identity()), slots=3)
    assert len(whole[1]) > 3
    np.testing.assert_array_equal(np.sort(some[1]), np.sort(whole[1])[:3])


def test_what_is_left_out_is_counted():
    counts, slots = np.zeros(2, dtype=np.int64), 3
    pool = (
        0,
        counts,
        np.zeros((slots, 3)),
        np.zeros((slots, 3, 3)),
        np.zeros(slots),
        np.zeros(slots),
    )
    place = np.array(
        [row_of(pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1]))), row_of(pin.SE3.Identity())]
    )
    detect(place, [solid(BOX), solid(BOX)], pool)
    assert counts[KEPT] == 3
    assert counts[DROPPED] == 1


def test_no_pair_is_without_contacts_because_another_has_many():
    """In a full pool the pair with most gives up its farthest to others that are close."""
    slots = 4
    pool = (
        0, np.zeros(2, dtype=np.int64), np.zeros((slots, 3)), np.zeros((slots, 3, 3)),
        np.zeros(slots), np.zeros(slots),
    )  # fmt: skip
    clear_pool(pool)
    up, origin = (0.0, 0.0, 1.0), (0.0, 0.0, 0.0)
    for number, gap in enumerate((4e-4, 1e-4, 3e-4, 2e-4)):
        keep_pair_contact(pool, float(number), gap, up, origin)
    for number, gap in enumerate((1e-3, 2e-3, 5e-4)):  # of the next pair, farther but close
        keep_pair_contact(pool, float(CONTACTS + number), gap, up, origin)
    assert sorted(pool[4]) == [1e-4, 2e-4, 5e-4, 1e-3]
    assert (pool[5] >= CONTACTS).sum() == 2
    keep_pair_contact(pool, float(2 * CONTACTS), 6e-3, up, origin)  # far: the nearest are kept
    assert sorted(pool[4]) == [1e-4, 2e-4, 5e-4, 1e-3]
    assert pool[1][DROPPED] == 4


@pytest.mark.parametrize('tilt', [1e-3, 1e-2])
def test_boxes_that_are_nearly_flat_on_each_other_touch_with_their_faces(tilt):
    """Separate and tilted about both edges: the product of edges separates them better."""
    turn = pin.rpy.rpyToMatrix(tilt, 0.7 * tilt, 0.0)
    upper = pin.SE3(turn, np.array([0.02, 0.02, 0.1 + 0.15 * tilt]))
    _, gap, _, normal = contacts((BOX, BOX), (upper, pin.SE3.Identity()))
    assert len(gap) >= 4
    assert normal[:, 2].min() > 1.0 - tilt**2
    assert gap.min() == pytest.approx(
        coal_distance((BOX, BOX), (upper, pin.SE3.Identity())), rel=tilt**2, abs=2e-6
    )


# Polyhedra and cylinders.

ROUNDED = (0.1, 0.07, 0.05, 0.004), (0.06, 0.07, 0.05, 0.01)
CYLINDER = cylinder(0.05, 0.08)
WEDGE = hull(np.array([
    [-0.1, -0.07, -0.05], [0.1, -0.07, -0.05], [-0.1, 0.07, -0.05], [0.1, 0.07, -0.05],
    [-0.1, -0.07, 0.05], [-0.1, 0.07, 0.05],
]))  # fmt: skip
POLYHEDRA = {
    'two hulls': lambda rng: (random_hull(rng), random_hull(rng)),
    'box, hull': lambda rng: (BOX, random_hull(rng)),
    'two wedges': lambda rng: (WEDGE, WEDGE),
    'rounded boxes': lambda rng: ROUNDED,
    'sharp and rounded box': lambda rng: (BOX, ROUNDED[1]),
    'sphere, hull': lambda rng: (SPHERE, random_hull(rng)),
    'capsule, hull': lambda rng: (CAPSULE, random_hull(rng)),
    'sphere, cylinder': lambda rng: (SPHERE, CYLINDER),
}


def away_from(size, M, x):
    """Return the distance of a point from a solid [m], at most 0 on its surface."""
    one = solid(size)
    if not one.cylinder:
        return coal_distance(((0.0, 0.0, 0.0, 1e-9), size), (pin.SE3(np.eye(3), x), M))
    local = M.actInv(x)
    return max(np.hypot(*local[:2]) - one.cylinder[0], abs(local[2]) - one.cylinder[1])


def extent(size, M, n):
    """Return how far a solid that is no cylinder reaches along n in world [m]."""
    one, local = solid(size), M.rotation.T @ n
    core = max(np.array(one.corners) @ local) if one.corners else np.abs(local) @ one.half
    return n @ M.translation + core + one.radius


@pytest.mark.parametrize('name', POLYHEDRA)
def test_distance_and_depth_of_polyhedra_are_those_of_coal(name):
    """And so are the normals; both points are on the surfaces."""
    rng, seen = np.random.default_rng(4), np.zeros(2, int)
    for _ in range(40):
        sizes = POLYHEDRA[name](rng)
        for placements, _ in near_each_other(rng, sizes, -0.02, 10):
            distance, expected = distance_and_normal(sizes, placements)
            _, gap, point, normal = contacts(sizes, placements)
            if distance > NEAR:
                assert len(gap) == 0
                continue
            least = gap.argmin()
            # the shortest way out, but for the share by which faces count more than edges
            assert gap[least] == pytest.approx(distance, abs=1e-5)
            n = normal[least]
            if distance > 1e-3:
                np.testing.assert_allclose(n, expected, atol=1e-2)
            elif 'cylinder' not in name:  # several ways out may be as short
                apart = -extent(sizes[0], placements[0], -n) - extent(sizes[1], placements[1], n)
                assert apart == pytest.approx(distance, abs=1e-5)
            ends = point[least], point[least] - gap[least] * n
            for size, M, place in zip(sizes, placements, ends, strict=True):
                assert abs(away_from(size, M, place)) < 2e-5
            seen[int(distance > 0.0)] += 1
    assert seen.min() > 40


@pytest.mark.parametrize('other', ['capsule', 'cylinder', 'box', 'hull'])
def test_a_cylinder_differs_from_its_prism_by_little(other):
    rng, seen = np.random.default_rng(5), 0
    others = {'capsule': CAPSULE, 'cylinder': cylinder(0.06, 0.02), 'box': BOX, 'hull': WEDGE}
    sizes = (others[other], CYLINDER)
    both = 0.05 + 0.06 * (other == 'cylinder')
    error = both * (1.0 - np.cos(np.pi / RIM_CORNERS))
    for placements, distance in near_each_other(rng, sizes, -0.01, 300):
        _, gap, _, _ = contacts(sizes, placements)
        if distance > NEAR:
            continue
        seen += len(gap) > 0
        if distance + error < NEAR:
            assert -1e-5 < gap.min() - distance < error + 1e-5
    assert seen > 100


@pytest.mark.parametrize('tilt', [0.0, 5e-4, 2e-3, 0.1, 0.7, np.pi / 2 - 1e-3, np.pi / 2])
@pytest.mark.parametrize('under', ['box', 'hull'])
def test_the_lowest_point_of_a_cylinder_over_a_face_is_exact(tilt, under):
    """At every tilt, however it is turned about its axis."""
    r, h, rng = 0.03, 0.04, np.random.default_rng(6)
    for _ in range(20):
        yaw, roll = rng.uniform(-3.0, 3.0, 2)
        turn = pin.rpy.rpyToMatrix(0.0, 0.0, yaw) @ pin.rpy.rpyToMatrix(0.0, np.pi / 2 - tilt, 0.0)
        M = pin.SE3(turn @ pin.rpy.rpyToMatrix(0.0, 0.0, roll), np.zeros(3))
        lowest = r * np.cos(tilt) + h * np.sin(tilt)
        M.translation = np.array([0.01, 0.0, 0.05 + lowest - 1e-3])
        sizes = BOX if under == 'box' else hull(SIGNS * BOX[:3]), cylinder(r, h)
        _, gap, _, normal = contacts(sizes, (pin.SE3.Identity(), M))
        assert gap.min() == pytest.approx(-1e-3, abs=2e-8)  # of a lying one r · tilt² / 2
        np.testing.assert_allclose(normal, [[0.0, 0.0, -1.0]] * len(gap), atol=1e-9)


def test_cylinders_side_by_side_touch_as_capsules_do():
    lying = pin.rpy.rpyToMatrix(0.0, np.pi / 2, 0.0)
    for angle in (0.0, 0.3, 1.0):
        turned = pin.rpy.rpyToMatrix(0.0, 0.0, angle) @ lying
        upper = pin.SE3(turned, np.array([0.01, 0.02, 0.099]))
        sizes = (CYLINDER, CYLINDER)
        _, gap, _, normal = contacts(sizes, (upper, pin.SE3(lying, np.zeros(3))))
        if angle > 0.0:
            least = gap.argmin()
            assert gap[least] == pytest.approx(-1e-3, abs=1e-12)
            np.testing.assert_allclose(normal[least], [0.0, 0.0, 1.0], atol=1e-9)
        else:  # parallel, 2 cm beside: at both ends of their common length
            assert len(gap) == 2
            np.testing.assert_allclose(gap, np.hypot(0.099, 0.02) - 0.1, atol=1e-12)


@pytest.mark.parametrize('turn', [0.0, 0.3])
def test_a_hull_of_a_box_touches_where_the_box_does(turn):
    upper = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.01, turn), np.array([0.02, 0.01, 0.1]))
    expected = contacts((BOX, BOX), (upper, pin.SE3.Identity()))
    found = contacts((hull(SIGNS * BOX[:3]),) * 2, (upper, pin.SE3.Identity()))
    assert len(found[1]) == min(len(expected[1]), MOST_ON_FACE)
    order = [np.lexsort(np.round(some[2], 7).T) for some in (expected, found)]
    for own, other in zip(expected[1:], found[1:], strict=True):
        np.testing.assert_allclose(own[order[0]], other[order[1]], atol=1e-9)


def test_a_round_face_keeps_its_deepest_contact_and_its_width():
    """Of sixteen corners eight are kept; none is more than two from the next one."""
    tilt, high = 0.02, cylinder(0.05, 0.02)
    upper = pin.SE3(pin.rpy.rpyToMatrix(0.0, tilt, 0.0), np.array([0.0, 0.0, 0.07]))
    _, gap, point, _ = contacts((BOX, high), (pin.SE3.Identity(), upper))
    assert 4 <= len(gap) <= MOST_ON_FACE
    lowest = 0.07 - 0.02 * np.cos(tilt) - 0.05 * np.sin(tilt)
    assert gap.min() == pytest.approx(lowest - 0.05, abs=1e-9)
    angles = np.sort(np.arctan2(point[:, 1], point[:, 0]))
    assert np.diff(angles, append=angles[0] + 2.0 * np.pi).max() < 2.0 * np.pi * 3.5 / RIM_CORNERS


@pytest.mark.parametrize('name', ['two hulls', 'box, hull', 'sphere, hull', 'sphere, cylinder'])
def test_gaps_of_polyhedra_change_as_the_normals_say(name):
    """As above, for contacts of a sphere, of corners over a face, and of two edges."""
    rng, step, seen = np.random.default_rng(8), 1e-7, 0
    for _ in range(30):
        sizes = POLYHEDRA[name](rng)
        for placements, _ in near_each_other(rng, sizes, -0.01, 10):
            keys, gap, point, normal = contacts(sizes, placements)
            twists = [pin.Motion(rng.normal(size=6)) for _ in placements]
            later, earlier = (
                contacts(
                    sizes, [pin.exp6(t * e) * M for t, M in zip(twists, placements, strict=True)]
                )
                for e in (step, -step)
            )
            for k, key in enumerate(keys):
                followed = key % OF_SECOND < ENDS if key < CROSSINGS else key < NEAREST
                followed |= key >= NEAREST and (key - NEAREST) % 3 == 0  # not side by side
                if key in later[0] and key in earlier[0] and followed:
                    middle = point[k] - 0.5 * gap[k] * normal[k]
                    v = [twist.linear + np.cross(twist.angular, middle) for twist in twists]
                    after, before = (g[list(own).index(key)] for own, g, _, _ in (later, earlier))
                    rate = (after - before) / (2.0 * step)
                    assert rate == pytest.approx(normal[k] @ (v[0] - v[1]), abs=1e-4)
                    seen += 1
    assert seen > 100


def test_the_nearest_point_of_a_segment_is_known_to_rounding():
    """Newton's last step is not taken for a search that has left its bounds."""
    draw, halves = np.random.default_rng(5), np.array([0.3, 0.2, 0.1])
    worst = 0.0
    for _ in range(2000):
        middle, along = draw.uniform(-0.6, 0.6, 3), draw.uniform(-0.5, 0.5, 3)

        def slope(t, middle=middle, along=along):
            x = middle + t * along
            return (x - np.clip(x, -halves, halves)) @ along

        if slope(-1.0) >= 0.0 or slope(1.0) <= 0.0:
            continue  # an end is nearest
        t = nearest_on_line(tuple(middle), tuple(along), tuple(halves))
        x = middle + t * along
        bend = along[np.abs(x) > halves] @ along[np.abs(x) > halves]
        if bend > 1e-3:
            worst = max(worst, abs(slope(t)) / bend)
    assert worst <= 1e-13
