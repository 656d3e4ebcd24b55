"""What searches keep of the ground changes no contact: lists of facets, clearances of bodies."""

from itertools import product

import coal
import numpy as np
import pinocchio as pin
import pytest
from test_coal import mesh_of, random_poses

from contact_sim import InclinedPlane, Plane, Simulator, Worlds, load_robot
from contact_sim.arrays._fields import (
    CLEARANCE,
    LIST_COUNT,
    LIST_RADIUS,
    LISTED,
    MOST_LISTED,
    SPOT_ROOM,
    WAIT,
)
from contact_sim.collision._clearance import (
    MOST,
    clearance_over_facets,
    distance_to_listed,
    moved_at_most,
)
from contact_sim.collision._detection import detect
from contact_sim.collision._facets import DEEP, add_to_list, begin_list, serves
from contact_sim.collision._mesh_contacts import TRIANGLES, distance_to_feature, list_facets
from contact_sim.collision._shapes import shape_numbers
from contact_sim.collision._terrain import as_terrain
from contact_sim.contact_models._base import refresh
from contact_sim.errors import NonFiniteState
from contact_sim.robot._collision_pairs import Solid
from contact_sim.step._workspace import FOUND_OF_GROUND
from contact_sim.terrain import HeightField, Terraces, TriangleMesh, boxes

RANDOM = np.random.default_rng(0)
HILLS = HeightField(RANDOM.uniform(0.0, 0.06, (60, 60)), 0.07, (-2.1, -2.1))
STAIRS = Terraces(
    np.array([-2.0, -0.3, 0.05, 0.4, 0.75, 2.0]), np.array([-2.0, 2.0]),
    np.array([0.0, 0.05, 0.1, 0.15, 0.1])[:, None],
).as_mesh()  # fmt: skip
LOW = RANDOM.uniform(-1.0, 0.6, (25, 3))
SIZE = RANDOM.uniform(0.1, 0.5, (25, 3))
LOW[:, 2] = -0.2
BLOCKS = boxes(
    np.vstack([LOW, [-3.0, -3.0, -0.5]]),
    np.vstack([np.column_stack([(LOW + SIZE)[:, :2], 0.5 * SIZE[:, 2]]), [3.0, 3.0, 0.0]]),
)
SHEET = TriangleMesh(
    np.array([[-0.3, -0.2, 0.0], [0.3, -0.2, 0.0], [0.3, 0.2, 0.0], [-0.3, 0.2, 0.0]]),
    np.array([[0, 1, 2], [0, 2, 3]]),
)
STEPS = HeightField.of_function(
    lambda x, y: 0.05 * np.floor(3.0 * np.abs(x)) + 0.0 * y, (4.2, 4.2), 0.07, (-2.1, -2.1)
)
RAMP = HeightField.of_function(lambda x, y: 0.2 * x - 0.1 * y, (4.2, 4.2), 0.07, (-2.1, -2.1))
SMALL = HeightField(RANDOM.uniform(0.0, 0.03, (7, 6)), 0.1, (-0.3, -0.25))
GROUNDS = {
    'hills': HILLS, 'mesh of hills': HILLS.as_mesh(), 'stairs': STAIRS, 'blocks': BLOCKS,
    'sheet': SHEET, 'small field': SMALL, 'slope': InclinedPlane(0.2), 'steps': STEPS,
    'ramp': RAMP, 'mesh of steps': STEPS.as_mesh(), 'mesh of a ramp': RAMP.as_mesh(),
}  # fmt: skip


def forget(work):
    """Let a workspace keep nothing, search all bodies, and see no flat ground."""
    for name in FOUND_OF_GROUND:
        getattr(work, name)[:] = 0.0
    for name in ('clearances', 'solid_clearances', 'flat_spots'):
        getattr(work, name)[:, CLEARANCE], getattr(work, name)[:, WAIT] = -1e9, 1e9


def walk(sim, random, steps):
    """Yield configurations of a robot that creeps, hurries and jumps over the ground."""
    robot, start = sim.robot.pinocchio_model, sim.standing_configuration()
    q, speed = start.copy(), np.zeros(robot.nv)
    for step in range(steps):
        if step % 60 == 0:
            q = start.copy()
            q[:3] += random.uniform((-0.4, -0.4, -0.35), (0.4, 0.4, 0.1))
            turn = random.normal(size=3) * random.choice([0.1, 1.5])
            q[3:7] = pin.Quaternion(pin.exp3(turn)).coeffs()
            q = pin.integrate(robot, q, 0.2 * random.normal(size=robot.nv) * (step > 0))
        if step % 15 == 0:
            speed = random.normal(size=robot.nv) * random.choice([1e-5, 1e-3, 1e-2])
        q = pin.integrate(robot, q, speed)
        yield q


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize(
    ('ground', 'name'),
    [*product(GROUNDS, ('go1', 'anymal_b')), ('slope', 'solo12')],
)
def test_contacts_are_those_of_a_search_that_keeps_nothing(ground, name, seed):
    sim, random = Simulator(load_robot(name), 'ncp', GROUNDS[ground]), np.random.default_rng(seed)
    work = sim._workspace
    touching = clear = 0
    first = work.leaf_dof.shape[0]
    steps = 120 if 'mesh' in ground else 280  # a search of them takes ten times as long
    for _ in compared(sim, walk(sim, random, steps)):
        touching += int((work.data.feature[first:] >= 0.0).sum())
        clear += int((work.clearances[:, CLEARANCE] > 0.01).sum())
    assert touching > steps / 4
    assert clear > (0 if ground in ('sheet', 'small field', 'slope') else 2 * steps)


def compared(sim, configurations):
    """Compare contacts with those of searches that keep nothing, and yield after each."""
    work = sim._workspace
    other = work.copy()
    first = work.leaf_dof.shape[0]
    shapes = (first, 3), (first, 3, 3), (first,), (first,)
    found = [np.zeros(shape) for shape in shapes]
    found[3][:] = work.data.feature[:first]
    spheres = work.candidate_body, work.offset, work.radius
    for q in configurations:
        forget(other)
        for each in (work, other):
            each.data.q[:] = q
            refresh(*each.arrays)
        np.testing.assert_array_equal(work.data.now, other.data.now)
        # the spheres without lists
        detect(sim.terrain.ground, work.pose, *spheres, *found)
        for mine, name_of in zip(found, ('position', 'frame', 'gap', 'feature'), strict=True):
            np.testing.assert_array_equal(getattr(work.data, name_of)[:first], mine)
        yield


@pytest.mark.parametrize('ground', ['stairs', 'steps', 'ramp', 'mesh of steps', 'mesh of a ramp'])
def test_contacts_of_bodies_that_lie_on_flat_ground_are_those_of_all_facets(ground):
    sim, random = Simulator(load_robot('go1'), 'ncp', GROUNDS[ground]), np.random.default_rng(3)
    work, effort = sim._workspace, np.zeros(sim.robot.n_joints)
    q = sim.standing_configuration()
    q[2:7] = q[2] + 0.1, np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)
    sim.reset(q)
    for _ in range(600):
        sim.step(effort)
    bodies = spheres = lying = 0
    for _ in compared(sim, creep(sim.robot.pinocchio_model, sim.q, random)):
        bodies += int((work.flat_spots[:, CLEARANCE] > DEEP).sum())
        spheres += int((work.near_facets[:, SPOT_ROOM] > 0.03).sum())
        lying += int((work.data.gap < 1e-5).sum())
    assert bodies > 0
    assert spheres > 0
    assert lying > 400


def creep(model, q, random):
    """Yield configurations that differ by hardly anything, or by steps of millimetres."""
    heights, q = [0.0, 1e-16, 1e-13, 1e-9, 1e-6, 1e-4], q.copy()
    for step in range(200):
        q[:2] += random.uniform(-2e-3, 2e-3, 2) * (step % 4 == 0)
        turn = np.zeros(model.nv)
        turn[3:6] = random.normal(size=3) * random.choice([0.0, 1e-12, 1e-6])
        moved = pin.integrate(model, q, turn)
        moved[2] += random.choice([-1.0, 1.0]) * random.choice(heights)
        yield moved


@pytest.mark.parametrize(
    ('half', 'radius', 'shape'),
    [
        ((0.1, 0.05, 0.02), 0.0, coal.Box(0.2, 0.1, 0.04)),
        ((0.0, 0.0, 0.1), 0.03, coal.Capsule(0.03, 0.2)),
        ((0.0, 0.0, 0.0), 0.05, coal.Sphere(0.05)),
    ],
    ids=['box', 'capsule', 'sphere'],
)
@pytest.mark.parametrize('ground', ['hills', 'stairs', 'blocks'])
def test_clearance_is_no_more_than_the_distance_of_coal(ground, half, radius, shape):
    terrain = as_terrain(GROUNDS[ground])
    other = mesh_of(HILLS.as_mesh() if ground == 'hills' else terrain.mesh)
    numbers = shape_numbers(Solid('solid', 'link', 'joint', half, radius))
    rotations, places = random_poses(2000, (-0.8, -0.8, 0.0), (0.8, 0.8, 0.3))
    result, origin, shares = coal.DistanceResult(), coal.Transform3s(), []
    for R, p in zip(rotations, places, strict=True):
        axes = tuple(map(tuple, R.T))
        solid = (*axes, tuple(p), tuple(map(float, half)), radius)
        outer = tuple((np.abs(R) @ half + radius).tolist())
        bound = clearance_over_facets(terrain.ground, solid, numbers, outer, MOST, 0.0, -1)
        result.clear()
        distance = coal.distance(
            shape, coal.Transform3s(R, p), other, origin, coal.DistanceRequest(), result
        )
        assert bound <= max(distance, 0.0) + 1e-9
        if 0.01 < distance < 0.05:
            shares.append(bound / distance)
    assert np.median(shares) > 0.5  # or nothing would be left out


@pytest.mark.parametrize('name', ['stairs', 'blocks', 'mesh of hills'])
def test_a_list_bounds_the_distance_of_a_point_from_the_mesh(name):
    ground, random = as_terrain(GROUNDS[name]).ground, np.random.default_rng(4)
    known, exact, bounded = np.zeros(LISTED + MOST_LISTED), 0, 0
    for _ in range(300):
        middle, radius = (
            random.uniform((-1.0, -1.0, 0.0), (1.0, 1.0, 0.3)),
            random.choice([0.1, 0.3]),
        )
        if not list_facets(ground, tuple(middle), radius, known):
            continue
        way = random.normal(size=3)
        p = tuple(middle + random.uniform(0.0, radius) * way / np.linalg.norm(way))
        distance = min(
            distance_to_feature(ground, k, p) for k in range(int(ground.data[TRIANGLES]))
        )
        room, bound = radius - np.linalg.norm(p - middle), distance_to_listed(ground, p, known)
        assert bound == pytest.approx(min(distance, room), abs=1e-12)
        exact, bounded = exact + (distance < room), bounded + (room < distance)
    assert min(exact, bounded) > 20


def test_no_point_of_a_box_moves_farther_than_the_bound():
    random = np.random.default_rng(1)
    for _ in range(200):
        before, step = pin.SE3.Random(), pin.exp6(0.1 * random.normal(size=6))
        after, box = before * step, np.append(random.uniform(-1, 1, 3), random.uniform(0, 1, 3))
        rows = [np.append(M.rotation.ravel('F'), M.translation) for M in (after, before)]
        corners = box[:3] + box[3:] * random.choice([-1.0, 1.0], (64, 3))
        way = [after.act(corner) - before.act(corner) for corner in corners]
        assert np.linalg.norm(way, axis=1).max() <= moved_at_most(rows[0], box, rows[1])


def test_a_list_serves_what_it_covers_and_is_of_no_use_when_full():
    known = np.zeros(LISTED + MOST_LISTED)
    begin_list(known, (1.0, 0.0, 0.0), 0.3)
    assert serves(known, (1.1, 0.0, 0.0), 0.19)
    assert not serves(known, (1.1, 0.0, 0.0), 0.21)
    assert all(add_to_list(known, float(k)) for k in (5, 3, 9, 3, 5))
    assert known[LIST_COUNT] == 3.0
    assert known[LISTED : LISTED + 3].tolist() == [3.0, 5.0, 9.0]
    assert not all(add_to_list(known, float(k)) for k in range(2 * MOST_LISTED))
    assert known[LIST_RADIUS] == 0.0
    assert not serves(known, (1.0, 0.0, 0.0), 0.1)


def flat(height):
    corners = np.array([[-3.0, -3.0], [3.0, -3.0], [3.0, 3.0], [-3.0, 3.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    return TriangleMesh(np.column_stack([corners, np.full(4, height)]), faces)


def level(height):
    return Plane(offset=height)


@pytest.mark.parametrize('rise', [0.02, 0.08])
@pytest.mark.parametrize('ground', [flat, level])
def test_bodies_that_were_clear_touch_ground_that_rises_under_them(ground, rise):
    robot, rng = load_robot('go1'), np.random.default_rng(2)
    low, risen = ground(-0.08), ground(-0.08 + rise)
    worlds, fresh = Worlds(robot, 8, terrain=low), Worlds(robot, 8, terrain=risen)
    q = worlds.q.copy()
    for k in range(8):
        change = rng.uniform(-0.5, 0.5, robot.nv)
        change[:6] = 0.0, 0.0, rng.uniform(-0.35, -0.1), *rng.uniform(-1.5, 1.5, 3)
        q[k] = pin.integrate(robot.pinocchio_model, q[k], change)
    worlds.reset(q=q)
    worlds.reset(q=q, terrain=risen)
    fresh.reset(q=q)
    np.testing.assert_array_equal(worlds._field('gap'), fresh._field('gap'))
    assert (fresh._field('gap') < 0.0).any()


def test_worlds_forget_the_ground_before():
    robot = load_robot('go1')
    one = Worlds(robot, 2, terrain=STAIRS)
    effort = np.zeros((2, robot.n_joints))
    for _ in range(50):
        one.step(effort)
    one.reset(terrain=BLOCKS)
    fresh = Worlds(robot, 2, terrain=BLOCKS)
    fresh.reset(q=one.q)
    for _ in range(50):
        one.step(effort)
        fresh.step(effort)
    np.testing.assert_array_equal(one.q, fresh.q)


@pytest.mark.parametrize('ground', sorted(GROUNDS.keys() - {'slope'}))
def test_robots_fly_to_any_distance(ground):
    sim, random = Simulator(load_robot('go1'), 'ncp', GROUNDS[ground]), np.random.default_rng(5)
    start, v, stepped = sim.standing_configuration(), np.zeros(18), 0
    for _ in range(10):
        q = start.copy()
        q[:3] += 10.0 ** random.uniform(2, 45) * random.normal(size=3) * random.integers(0, 2, 3)
        v[:6] = 10.0 ** random.uniform(2, 45) * random.normal(size=6) * random.integers(0, 2, 6)
        for speed in (0.0 * v, v):
            for place in (start, q):
                sim.reset(place, speed)
                try:
                    for _ in range(3):
                        sim.step(np.zeros(12))
                        stepped += 1
                except NonFiniteState:
                    continue
                assert np.isfinite(sim.last_report.contacts.gap).all()
    assert stepped > 40
