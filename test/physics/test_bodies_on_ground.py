"""Bodies touch the ground with corners, edges and faces: rails, stairs, fields, logs, rims."""

import math

import numpy as np
import pinocchio as pin
import pytest
from energy import ROUNDING, allowed, bodies, body, grounds, thrown
from scipy.spatial import ConvexHull

from contact_sim import (
    CylinderGround,
    InclinedPlane,
    InvalidInput,
    Plane,
    RobotDescriptionError,
    Simulator,
    SphereGround,
    Worlds,
    contact_models,
    joined,
    load_robot,
    loose_ball,
    loose_box,
    loose_ellipsoid,
)
from contact_sim.contact_models.guarantees import MAY_GAIN_ENERGY
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot._actuators import holding
from contact_sim.robot._standing_pose import lowest_heights
from contact_sim.terrain import HeightField, TriangleMesh, boxes

GRAVITY, STEP = 9.81, 1e-3
SIDES = (0.3, 0.2, 0.1)
RAIL = boxes([[-0.02, -1.0, -0.04]], [[0.02, 1.0, 0.0]])
"""4 cm wide along y, its top at z = 0; nothing beside it."""
BOX = loose_box(SIDES, 1.0)


DROPPED = bodies()
CYLINDER, CAPSULE, CUBE = DROPPED['cylinder'], DROPPED['capsule'], DROPPED['cube']


def at(x, y, z, roll=0.0, pitch=0.0, yaw=0.0):
    """Return the configuration of a loose body."""
    return np.r_[x, y, z, pin.Quaternion(pin.rpy.rpyToMatrix(roll, pitch, yaw)).coeffs()]


@pytest.mark.parametrize('model', contact_models())
@pytest.mark.parametrize('yaw', [0.0, 0.3])
def test_a_box_across_a_rail_lies_on_it(model, yaw):
    """Only edges of the rail touch its face: no corner of the box has anything below it."""
    sim = Simulator(BOX, model, RAIL, friction=0.6)
    sim.reset(at(0.0, 0.0, 0.5 * SIDES[2] + 1e-3, yaw=yaw))
    for _ in range(600):
        report = sim.step([])
    soft = model in ('compliant', 'sap', 'todorov')
    assert report.q[2] == pytest.approx(0.5 * SIDES[2], abs=2e-3 if soft else 2e-6)
    assert np.abs(report.v).max() < (1e-3 if soft else 1e-8)
    pairs = report.pairs
    assert set(pairs.names) == {('box_0', 'ground')}
    assert pairs.force.sum(axis=0) == pytest.approx([0.0, 0.0, GRAVITY], abs=2e-3)
    # both edges of the rail, each at both ends of the part below the box
    places = pairs.position[pairs.normal_force > 1e-6]
    assert np.abs(np.abs(places[:, 0]) - 0.02).max() < 1e-6 + 2e-3 * soft
    assert len(pairs) == 4


def dropped(model, terrain):
    """Drop the tilted box across x = 0."""
    sim = Simulator(BOX, model, terrain, friction=0.8)
    sim.reset(at(-0.05, 0.0, 0.25, pitch=-0.3, yaw=0.1))
    return sim


@pytest.mark.parametrize('name', ['box', 'pebble'])
def test_an_edge_of_the_ground_in_a_body_has_a_contact(name):
    """At any attitude: a place of the edge that is below all faces is overlap, and is found.

    An edge that crossed a face steeply had none (7 mm), until the body turned a little. The depth
    may be less than that of the place: an end of the edge is no deeper than it has come.
    """
    robot, rng = DROPPED[name], np.random.default_rng(5)
    sim, y = Simulator(robot, 'ncp', RAIL), np.linspace(-0.3, 0.3, 601)
    hull = ConvexHull([point.offset for point in robot.body_points])
    normals, offsets = hull.equations[:, :3], hull.equations[:, 3]
    edges = [np.column_stack([x + 0.0 * y, y, 0.0 * y]) for x in (-0.02, 0.02)]

    def depth(q):
        turn = pin.Quaternion(q[3:7]).matrix()
        return max(-((p - q[:3]) @ turn @ normals.T + offsets).max(axis=1).min() for p in edges)

    for _ in range(400):
        q = at(*rng.uniform(-0.04, 0.04, 2), 0.3, *rng.uniform(-1.2, 1.2, 3))
        wanted, low, high = rng.uniform(1e-3, 5e-3), 0.0, 0.3
        while high - low > 1e-6:  # lowered until the edge is as deep in it
            q[2] = 0.5 * (low + high)
            low, high = (q[2], high) if depth(q) > wanted else (low, q[2])
        sim.reset(q, np.zeros(6))
        assert sim.last_report.pairs.gap.min() < -0.1 * depth(q)


@pytest.mark.parametrize('model', ['ncp', 'lcp', 'todorov', 'sap', 'compliant'])
def test_the_edge_of_a_stair_does_not_enter_a_box(model):
    """A box dropped across the nose of a step turns about it and comes to rest on two edges.

    Under soft laws the nose gets about as deep as the box itself in a plane, from the same height:
    one edge carries it here, one corner there.
    """
    soft = model in ('todorov', 'sap', 'compliant')
    allowed = 5e-4
    if soft:
        sim = dropped(model, Plane())
        allowed = -1.5 * min(sim.step([]).pairs.gap.min(initial=0.0) for _ in range(300))
        assert 1e-3 < allowed < 3e-2
    stairs = boxes([[0.0, -1.0, -0.3], [-1.0, -1.0, -0.3]], [[1.0, 1.0, 0.1], [0.0, 1.0, 0.0]])
    sim, nose = dropped(model, stairs), np.array([0.0, 0.0, 0.1])
    for _ in range(2000):
        report = sim.step([])
        turn = pin.Quaternion(report.q[3:7]).matrix()
        # depth of the points of the nose below the box, from its faces: the one nearest to them
        for y in (-0.05, 0.0, 0.05):
            local = turn.T @ (nose + [0.0, y, 0.0] - report.q[:3])
            assert (0.5 * np.array(SIDES) - np.abs(local)).min() < allowed
    assert np.abs(report.v).max() < (2e-2 if model == 'todorov' else 5e-3)  # todorov creeps
    pressed = report.pairs.normal[report.pairs.normal_force > 1e-3]
    assert (np.abs(pressed[:, 0]) > 0.05).any()  # the nose pushes along the tilted face


@pytest.mark.parametrize('robot', [BOX, CUBE, CYLINDER, CAPSULE], ids=lambda r: r.name)
@pytest.mark.parametrize('name', ['field', 'mesh'])
def test_a_flat_field_is_a_plane(robot, name):
    """No vertex and no edge inside of a plane is felt, whatever lies on it."""
    field = HeightField(np.zeros((40, 40)), 0.05, (-1.0, -1.0))
    ground = field if name == 'field' else field.as_mesh()
    ends = []
    for terrain in (ground, Plane()):
        sim = Simulator(robot, 'ncp', terrain, friction=0.5)
        sim.reset(at(0.01, 0.02, 0.2, 0.3, 0.4, 0.5))
        for _ in range(400):
            report = sim.step([])
            assert (report.pairs.normal == [0.0, 0.0, 1.0]).all()
        ends.append(report.q)
    if robot is not CYLINDER:  # a prism of 16 sides on a field
        assert ends[0] == pytest.approx(ends[1], abs=1e-9)


@pytest.mark.parametrize('angle', [0.1, 0.3])
def test_a_cylinder_rolls_down_a_plane(angle):
    """a = g sin α / (1 + I/(m r²)), on both of its rims."""
    radius, inertia = 0.08, 0.0032
    sim = Simulator(CYLINDER, 'ncp', InclinedPlane(angle), friction=1.0)
    slope, normal = np.array([math.cos(angle), 0.0, -math.sin(angle)]), np.zeros(3)
    normal[[0, 2]] = math.sin(angle), math.cos(angle)
    lying = at(0.0, 0.0, 0.0, roll=math.pi / 2)
    lying[:3] = radius * normal
    sim.reset(lying)
    if sim.last_report.pairs.gap.min(initial=1.0) > 0.01:  # the plane rises with x
        slope[2], normal[0] = -slope[2], -normal[0]
        slope = -slope
        lying[:3] = radius * normal
        sim.reset(lying)
    steps = 500
    for _ in range(steps):
        report = sim.step([])
    rate = GRAVITY * math.sin(angle) / (1.0 + inertia / radius**2)
    time = steps * STEP
    assert report.q[:3] @ slope == pytest.approx(0.5 * rate * time * (time + STEP), rel=1e-6)
    assert report.q[:3] @ normal == pytest.approx(radius, abs=1e-9)
    assert len(report.pairs) == 2


@pytest.mark.parametrize('height', [0.3, 0.4])
def test_a_cylinder_stands_on_its_rim_and_tips_where_its_middle_leaves_it(height):
    radius, angle = 0.1, math.atan(0.2 / 0.35)  # it tips for tan α > 2 r / height
    shape = f'<cylinder radius="{radius}" length="{height}"/>'
    standing = body(shape, (0.0275, 0.0275, 0.005))
    sim = Simulator(standing, 'ncp', InclinedPlane(angle), friction=5.0)
    sim.reset(sim.standing_configuration())
    start = pin.Quaternion(sim.q[3:7])
    for _ in range(300):
        sim.step([])
    turned = start.angularDistance(pin.Quaternion(sim.q[3:7]))
    assert turned < 1e-6 if height < 0.35 else turned > 1e-2


@pytest.mark.parametrize('ground', ['mesh', 'field', 'edge'])
def test_a_cylinder_that_stands_on_facets_touches_them_with_four_corners(ground):
    """As on a plane; tilted, its whole rim of 16 corners is near."""
    field = HeightField(np.zeros((40, 40)), 0.05, (-1.0, -1.0))
    terrain = {
        'mesh': field.as_mesh(),
        'field': field,
        # the ground ends below the cylinder, behind its middle
        'edge': boxes(np.array([[-0.03, -1.0, -0.5]]), np.array([[1.0, 1.0, 0.0]])),
    }[ground]
    sim = Simulator(CYLINDER, 'ncp', terrain, friction=0.8)
    radius, half = CYLINDER.collisions.solids[0].cylinder
    start = at(0.013, -0.007, half)
    sim.reset(start)
    for _ in range(300):
        report = sim.step([])
    assert report.q == pytest.approx(start, abs=1e-9)
    assert np.abs(report.v).max() < 1e-9
    weight = GRAVITY * CYLINDER.total_mass
    assert report.pairs.force.sum(axis=0) == pytest.approx([0.0, 0.0, weight], abs=1e-6 * weight)
    off = report.pairs.position[:, :2] - start[:2]
    on_rim = np.abs(np.linalg.norm(off, axis=1) - radius) < 1e-6
    assert on_rim.sum() == (3 if ground == 'edge' else 4)
    # what the ground lacks below the cylinder is replaced by its edge
    assert (~on_rim).sum() == (2 if ground == 'edge' else 0)
    sim.reset(at(0.013, -0.007, half + 1e-4, roll=1e-3))
    assert len(sim.last_report.pairs) > 8


@pytest.mark.parametrize('ground', ['log', 'ball'])
def test_a_box_lies_on_a_log_and_on_a_ball(ground):
    """A face touches a round ground where that is nearest, not with its corners."""
    radius = 0.5
    terrain = {
        'log': CylinderGround((0.0, 0.0, -radius), (0.0, 1.0, 0.0), radius),
        'ball': SphereGround((0.0, 0.0, -radius), radius),
    }[ground]
    sim = Simulator(BOX, 'ncp', terrain, friction=0.8)
    sim.reset(at(0.0, 0.0, 0.5 * SIDES[2]))
    for _ in range(100):
        report = sim.step([])
    assert report.q[:3] == pytest.approx([0.0, 0.0, 0.5 * SIDES[2]], abs=1e-6)
    assert report.pairs.force.sum(axis=0) == pytest.approx([0.0, 0.0, GRAVITY], abs=1e-6)
    assert len(report.pairs) == (2 if ground == 'log' else 1)


GROUNDS = grounds()


def gain(report):
    """Return by how much the energy rose in the step [J]."""
    change = report.record.energy - report.record.energy_start
    return float(change[0] - report.record.gravity @ change[1:])


@pytest.mark.parametrize('robot', [BOX, CUBE, CYLINDER, CAPSULE], ids=lambda r: r.name)
@pytest.mark.parametrize('name', GROUNDS)
def test_nothing_that_falls_gains_energy_or_falls_through(name, robot):
    """Beyond the bound of theory 2.15; the benchmark `energy.py` does the same with many more."""
    sim = Simulator(robot, 'ncp', GROUNDS[name], friction=0.6)
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        x, y = rng.uniform(-0.6, 0.6, 2)
        turn = pin.Quaternion(rng.standard_normal(4)).normalized()
        top = max(sim.terrain.height(x, y), 0.0)
        q = np.r_[x, y, top + 0.25 + rng.uniform(0.0, 0.1), turn.coeffs()]
        sim.reset(q, np.r_[rng.uniform(-0.5, 0.5, 3), rng.uniform(-3.0, 3.0, 3)])
        for _ in range(700):
            report = sim.step([])
            assert gain(report) < allowed(robot, report.record) + ROUNDING
        assert report.q[2] > top - 0.7


def tumbling(robot, model, seed=1):
    """Return the largest gain of a robot on a plane in a step, and that beyond the bound [J]."""
    sim = Simulator(robot, model, friction=0.6)
    rng = np.random.default_rng(seed)
    q, v = sim.standing_configuration().copy(), np.zeros(robot.nv)
    q[2], v[:6] = q[2] + 0.05, rng.uniform(-2.0, 2.0, 6)
    q[3:7] = pin.Quaternion(rng.standard_normal(4)).normalized().coeffs()
    low = lowest_heights(robot.pinocchio_model, robot.body_points, q).min()
    q[2] -= low - 1e-3
    sim.reset(q, v)
    found = []
    for _ in range(400):
        report = sim.step(np.zeros(robot.n_joints))
        found.append((gain(report), gain(report) - allowed(robot, report.record)))
    return np.max(found, axis=0)


@pytest.mark.parametrize('model', contact_models())
def test_what_guarantees_says_of_energy_is_true(model):
    """Both ways: a model without the bound gains energy somewhere; the others stay within it."""
    gains, beyond = np.max([tumbling(BOX, model, seed) for seed in range(4)], axis=0)
    if model not in MAY_GAIN_ENERGY:
        assert beyond < ROUNDING
    elif model == 'hybrid':
        assert beyond > 1e-3  # λᵀ b is no bound, and yet
        assert gains < ROUNDING
    elif model == 'null_space':  # it holds a foot over the ground by pulling at it
        sim = Simulator(BOX, model, friction=0.6)
        sim.reset(*thrown(sim, 'box', 0))
        assert gain(sim.step([])) > 1e-2
    else:
        assert gains > 1e-4


def test_limits_self_contact_and_loops_gain_no_energy():
    for name in ('go1', 'four_bar_quadruped'):
        robot = load_robot(name).with_self_collision()
        assert tumbling(robot, 'ncp')[1] < ROUNDING * robot.total_mass


def test_boxes_that_lie_on_each_other_do_not_turn_into_each_other():
    """Three boxes land on ground that is rough by 0.1 mm, 1 mm apart.

    Between faces that are tilted by less than 1 mrad there must be several contacts: with one, at
    the crossing of two edges, the boxes turned by 3 mm into each other within three steps.
    """
    sim = Simulator(DROPPED['stack'], 'ncp', GROUNDS['rough'], friction=0.6)
    q = sim.standing_configuration().copy()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        for k in range(3):
            q[7 * k : 7 * k + 3] = *rng.uniform(-0.3, 0.3, 2), 0.06 + 0.101 * k
            q[7 * k : 7 * k + 2] = q[:2] + 0.02 * k
        v = np.zeros(18)
        v[2::6] = -2.0
        sim.reset(q, v)
        for _ in range(60):
            report = sim.step([])
            assert gain(report) < 1e-6
            assert report.pairs.gap.min(initial=0.0) > -1e-4


def test_a_corner_of_the_ground_carries_a_capsule():
    """Its side lies on the tip of a pyramid: no edge of it crosses the axis."""
    pyramid = TriangleMesh(
        [[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [0, 0, 0.5], [0, 0, -1]],
        [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4], [1, 0, 5], [2, 1, 5], [3, 2, 5], [0, 3, 5]],
    )
    sim = Simulator(CAPSULE, 'ncp', pyramid, friction=0.8)
    sim.reset(at(0.0, 0.0, 0.54 + 1e-4, pitch=math.pi / 2, yaw=0.3))
    for _ in range(50):
        report = sim.step([])
    assert report.q[2] == pytest.approx(0.54, abs=1e-6)
    assert report.pairs.force.sum(axis=0) == pytest.approx([0.0, 0.0, GRAVITY], abs=1e-6)


AXES = (0.12, 0.08, 0.05)


@pytest.mark.parametrize('attitude', [(0.0, 0.0, 0.0), (0.3, 0.7, 0.5), (2.0, -1.0, 0.2)])
def test_an_ellipsoid_touches_a_slope_at_the_point_with_its_normal(attitude):
    """φ = n·c − d − |A Rᵀ n|; the point is on the surface, and its gradient is along −n."""
    robot, slope = loose_ellipsoid(AXES, 1.0), InclinedPlane(0.2)
    sim = Simulator(robot, 'ncp', slope)
    sim.reset(at(0.0, 0.0, 0.05, *attitude))
    pairs, n = sim.last_report.pairs, np.asarray(slope.plane[:3])
    assert len(pairs) == 1
    turn = pin.rpy.rpyToMatrix(*attitude)
    reach = np.linalg.norm(np.array(AXES) * (turn.T @ n))
    assert pairs.gap[0] == pytest.approx(n @ [0.0, 0.0, 0.05] - slope.plane[3] - reach, abs=1e-12)
    local = turn.T @ (pairs.position[0] - [0.0, 0.0, 0.05])
    assert np.sum((local / AXES) ** 2) == pytest.approx(1.0, abs=1e-12)
    gradient = turn @ (local / np.square(AXES))
    assert gradient / np.linalg.norm(gradient) == pytest.approx(-n, abs=1e-12)


def test_an_ellipsoid_of_three_equal_axes_rolls_as_a_ball():
    ball, ellipsoid = loose_ball(0.1, 1.0), loose_ellipsoid((0.1, 0.1, 0.1), 1.0)
    ends = []
    for robot in (ball, ellipsoid):
        sim = Simulator(robot, 'ncp', friction=0.3)
        sim.reset(at(0.0, 0.0, 0.1), np.array([1.0, 0.2, 0.0, 3.0, 2.0, 1.0]))
        ends.append([sim.step([]).q.copy() for _ in range(300)])
    assert np.abs(np.subtract(*ends)).max() < 1e-9


def test_an_ellipsoid_is_refused_where_it_is_not_exact():
    egg = loose_ellipsoid(AXES, 1.0)
    with pytest.raises(InvalidInput, match=r"'ellipsoid_0' is an ellipsoid, which touches planes"):
        Simulator(egg, 'ncp', GROUNDS['field'])
    with pytest.raises(InvalidInput, match=r"'a/ellipsoid_0' is an ellipsoid.*leave out"):
        joined({'a': egg, 'b': BOX}, against_each_other=True)
    with pytest.raises(InvalidInput, match='semi_axes'):
        loose_ellipsoid((0.1, 0.2), 1.0)
    with pytest.raises(InvalidInput, match='inertia'):
        loose_ellipsoid(AXES, 1.0, inertia=(1.0, 1.0, 1.0))


def test_the_start_of_a_step_is_the_end_of_the_last_one():
    """Of every contact, while contacts of bodies open and close."""
    sim = Simulator(DROPPED['box'], 'ncp', RAIL)
    sim.reset(at(0.0, 0.0, 0.1, 0.5, 0.4, 0.3), np.array([0.0, 0.0, -1.0, 2.0, 3.0, 0.0]))
    counts, before = set(), sim.last_report.record
    for _ in range(400):
        record = sim.step([]).record
        np.testing.assert_array_equal(record.start, before.now)
        counts.add(int((record.feature >= 0.0).sum()))
        before = record
    assert len(counts) > 2


def test_a_robot_of_load_robot_does_not_sink_into_the_floor():
    robot = load_robot('go1')
    assert robot.collisions.grounded
    sim = Simulator(robot, friction=0.8)
    for _ in range(1500):
        report = sim.step(np.zeros(12))
    assert report.q[2] > 0.04  # on its belly
    assert report.pairs.gap.min() > -1e-6
    down = report.contacts.force.sum(axis=0) + report.pairs.force.sum(axis=0)
    assert down == pytest.approx([0.0, 0.0, GRAVITY * robot.total_mass], rel=1e-6, abs=1e-4)


def test_bodies_off_the_ground_change_no_bit_of_a_standing_robot():
    ends = []
    for chosen in (True, False):
        robot = load_robot('go1', body_contacts=chosen)
        sim = Simulator(robot)
        stand = holding(robot.joint_positions(sim.q), *robot.default_gains)
        sim.follow(stand, steps=300)
        ends.append(np.r_[sim.q, sim.v])
    assert np.array_equal(*ends)


@pytest.mark.parametrize('name', ['rails', 'mesh', 'stairs'])
def test_recordings_and_worlds_are_equal_to_the_bit(name, tmp_path):
    robot, terrain = load_robot('go1'), GROUNDS[name]
    sim, worlds = Simulator(robot, 'ncp', terrain), Worlds(robot, 2, 'ncp', terrain)
    with Recorder(sim, tmp_path / 'run.npz'):
        for _ in range(400):
            report = sim.step(np.zeros(12))
    assert len(report.pairs)
    assert repeat(Recording(tmp_path / 'run.npz')).equal
    for _ in range(400):
        worlds.step(np.zeros((2, 12)))
    assert np.array_equal(worlds.q, np.array([report.q] * 2))


def test_a_ball_with_a_low_centre_of_mass_swings_as_it_must():
    """It rolls about its lowest point: ω² = m g d / (I + m (r − d)²) for small angles."""
    r, d, m, inertia, h = 0.1, 0.03, 2.0, 0.006, 5e-4
    ball = loose_ball(r, m, inertia=(inertia,) * 3 + (0.0,) * 3, centre_of_mass=(0.0, 0.0, -d))
    sim = Simulator(ball, friction=1.0, time_step=h)
    q = sim.q.copy()
    q[3:7] = math.sin(0.01), 0.0, 0.0, math.cos(0.01)
    sim.reset(q)
    rates = []
    for _ in range(4000):
        rates.append(sim.step([]).v[3])
    turns = np.flatnonzero(np.diff(np.sign(rates)) != 0)
    period = 2.0 * h * np.diff(turns)[1:].mean()
    rate = math.sqrt(m * 9.81 * d / (inertia + m * (r - d) ** 2))
    assert period == pytest.approx(2.0 * math.pi / rate, rel=2e-3)


def test_a_box_has_the_inertia_it_is_given():
    moments, centre = (0.03, 0.02, 0.04, 0.001, -0.002, 0.003), (0.01, 0.02, -0.03)
    box = loose_box((0.2, 0.1, 0.3), 1.5, inertia=moments, centre_of_mass=centre)
    inertia = box.pinocchio_model.inertias[1]
    assert inertia.mass == 1.5
    assert inertia.lever.tolist() == list(centre)
    ixx, iyy, izz, ixy, ixz, iyz = moments
    expected = [[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]
    np.testing.assert_allclose(inertia.inertia, expected, atol=1e-15)
    with pytest.raises(RobotDescriptionError):
        loose_box((0.2, 0.1, 0.3), 1.5, inertia=(0.1, 0.1, -0.1, 0.0, 0.0, 0.0))
    with pytest.raises(InvalidInput, match='expected 6'):
        loose_ball(0.1, 1.0, inertia=(1.0, 1.0, 1.0))
