"""Contacts between solids against coal, and against the motion of their bodies."""

import coal
import numpy as np
import pinocchio as pin
import pytest

from contact_sim.arrays._fields import PAIR_NUMBERS
from contact_sim.collision._body_pairs import detect_pairs
from contact_sim.collision._contact_slots import (
    CONTACTS,
    DROPPED,
    KEPT,
    clear_pool,
    keep_pair_contact,
)
from contact_sim.collision._surface import NEAR

SPHERE, CAPSULE, BOX = (0.0, 0.0, 0.0, 0.06), (0.0, 0.0, 0.15, 0.04), (0.1, 0.07, 0.05, 0.0)
THIN = (0.2, 0.01, 0.012, 0.0)
PAIRS = {
    'two spheres': (SPHERE, SPHERE), 'sphere, capsule': (SPHERE, CAPSULE),
    'sphere, box': (SPHERE, BOX), 'two capsules': (CAPSULE, CAPSULE),
    'capsule, box': (CAPSULE, BOX), 'two boxes': (BOX, BOX), 'thin boxes': (THIN, THIN),
}  # fmt: skip
ROUND = [name for name in PAIRS if 'boxes' not in name]


def shape_of(size):
    *half, radius = size
    if half[0] > 0.0:
        return coal.Box(*(2.0 * x for x in half))
    return coal.Capsule(radius, 2.0 * half[2]) if half[2] > 0.0 else coal.Sphere(radius)


def row_of(M):
    return [*M.rotation.ravel('F'), *M.translation]


def detect(place, size, reach, pool):
    """Search the pair of two solids, each an island of its own."""
    pairs, islands = np.array([0, 1, -1, -1, -1]), np.arange(2)
    assert len(pairs) == PAIR_NUMBERS
    solids = place, size, reach, islands
    clear_pool(pool)
    detect_pairs(solids, pairs, np.array([0, 1, 0, 1]), np.zeros((2, 6)), pool)


def contacts(sizes, placements, slots=16):
    """Return key within the pair, gap, point and normal of every contact of two solids."""
    size = np.array(sizes)
    reach = np.linalg.norm(size[:, :3], axis=1) + size[:, 3]
    counts = np.zeros(2, dtype=np.int64)
    position, frame = np.zeros((slots, 3)), np.zeros((slots, 3, 3))
    gap, feature = np.zeros(slots), np.zeros(slots)
    pool = (0, counts, position, frame, gap, feature)
    detect(np.array([row_of(M) for M in placements]), size, reach, pool)
    n = counts[KEPT]
    assert np.all((feature[:n] >= 0.0) & (feature[:n] < CONTACTS))
    assert np.all(feature[n:] == -1.0)
    assert len(set(feature[:n])) == n
    np.testing.assert_allclose(
        np.einsum('iab,icb->iac', frame, frame), [np.eye(3)] * slots, atol=1e-12
    )
    return feature[:n], gap[:n], position[:n], frame[:n, 2]


def coal_distance(sizes, placements):
    given = []
    for size, M in zip(sizes, placements, strict=True):
        given += [shape_of(size), coal.Transform3s(M.rotation, M.translation)]
    return coal.distance(*given, coal.DistanceRequest(), coal.DistanceResult())


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
    size = np.array([BOX, BOX])
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
    detect(place, size, np.full(2, 0.2), pool)
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
