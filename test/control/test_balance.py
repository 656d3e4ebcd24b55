"""Balance on soles: its program against the equations of motion, and robots that are pushed."""

import numpy as np
import pinocchio as pin
import pytest
from legged import biped
from scipy.spatial import ConvexHull

from contact_sim import InvalidInput, Simulator, UnknownName, load_robot
from contact_sim.control import Balance, BalanceTuning, cannot_balance
from contact_sim.control._balance import shares_of_centre
from contact_sim.control._inverse_dynamics import STILL
from contact_sim.robot import RobotModel

SOLES = ('sole_l', 'sole_r')
SIDE = 0.5 / np.sqrt(2.0)
G = 9.81


@pytest.fixture(scope='module')
def robot():
    return load_robot(biped(), feet=SOLES)


@pytest.fixture
def controller(robot):
    return Balance(robot)


def centre_of(robot, q, v=None):
    model = robot.pinocchio_model
    data = model.createData()
    pin.centerOfMass(model, data, q, np.zeros(robot.nv) if v is None else v)
    return data.com[0].copy(), data.vcom[0].copy()


def random_state(robot, seed, size):
    rng = np.random.default_rng(seed)
    q = pin.integrate(
        robot.pinocchio_model, robot.reference_configuration(), size * rng.normal(size=robot.nv)
    )
    return q, size * rng.normal(size=robot.nv)


def point_jacobian(robot, q, v, points):
    """Return J (3 n, nv) and J̇ v of the lowest points, and the points, by Pinocchio alone."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(robot.nv))
    pin.computeJointJacobians(model, data, q)
    axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    rows, drift, places = [], [], []
    for p in points:
        joint = model.getJointId(p.joint)
        J = pin.getJointJacobian(model, data, joint, axes)
        arm = data.oMi[joint].rotation @ p.offset
        below = arm - [0.0, 0.0, p.radius]
        rows.append(J[:3] - pin.skew(below) @ J[3:])
        spatial = pin.getClassicalAcceleration(model, data, joint, axes)
        omega = pin.getVelocity(model, data, joint, axes).angular
        turning = np.cross(omega, np.cross(omega, arm))
        drift.append(spatial.linear + np.cross(spatial.angular, below) + turning)
        places.append(data.oMi[joint].translation + below)
    return np.vstack(rows), np.concatenate(drift), np.array(places)


# ---------------------------------------------------------------- the program


@pytest.mark.parametrize('seed', range(6))
def test_answers_satisfy_the_equations_of_motion_and_all_limits(robot, controller, seed):
    q, v = random_state(robot, seed, 0.05)
    answer = controller.answer(0.0, q, v)
    assert answer.solved
    J, _, _ = point_jacobian(robot, q, v, controller.points)
    model = robot.pinocchio_model
    speed = v * (np.arange(robot.nv) >= 6)
    passive = robot.joint_damping * speed + robot.joint_friction * np.tanh(speed / STILL)
    left = pin.rnea(model, model.createData(), q, v, answer.acceleration) + passive
    right = robot.selection_matrix.T @ answer.effort + J.T @ answer.force.reshape(-1)
    weight = G * robot.total_mass
    np.testing.assert_allclose(left, right, atol=1e-8 * weight)
    f = answer.force
    assert (np.abs(f[:, :2]) <= SIDE * f[:, 2:] + 1e-8 * weight).all()
    assert (f[:, 2] >= 0.02 * weight / len(f) - 1e-8 * weight).all()
    assert (np.abs(answer.effort) <= robot.effort_limit).all()


@pytest.mark.parametrize('seed', range(3))
def test_soles_are_braked_as_rigid_bodies(robot, controller, seed):
    """Of each sole the mean of its points; the turn of a sole is small to second order."""
    q, v = random_state(robot, seed, 0.05)
    answer = controller.answer(0.0, q, v)
    J, drift, _ = point_jacobian(robot, q, v, controller.points)
    found = (J @ answer.acceleration + drift).reshape(-1, 3)
    rate = controller.tuning.foot_rate * np.sqrt(G / controller._height)
    wanted = -rate * (J @ v).reshape(-1, 3)
    for joint in {p.joint for p in controller.points}:
        of_foot = [p.joint == joint for p in controller.points]
        mean = found[of_foot].mean(axis=0), wanted[of_foot].mean(axis=0)
        np.testing.assert_allclose(*mean, atol=1e-7)
        np.testing.assert_allclose(found[of_foot], wanted[of_foot], atol=0.05)


def test_optimality_no_feasible_change_costs_less(robot, controller):
    """The cost is convex: along ways to other feasible points it does not fall."""
    q, v = random_state(robot, 3, 0.05)
    best = controller.answer(0.0, q, v)
    places = point_jacobian(robot, q, v, controller.points)[2]
    centre, speed = centre_of(robot, q, v)
    model, m, z = robot.pinocchio_model, robot.total_mass, controller._height
    t, omega = controller.tuning, np.sqrt(G / controller._height)
    data = model.createData()
    pin.computeCentroidalMomentum(model, data, q, v)
    L = data.hg.angular.copy()
    off = centre - shares_of_centre(places[:, :2]) @ places - [0.0, 0.0, z]
    # the middle of the soles is fixed by its shares in the standing pose
    off[:2] = centre[:2] - (controller._share @ places)[:2]
    off[2] = centre[2] - (controller._share @ places)[2] - z
    k, up = t.rate * omega, t.height_rate * omega
    wanted_centre = -(omega + k) * speed - omega * k * off
    wanted_centre[2] = -2.0 * up * speed[2] - up**2 * off[2]
    moment = np.hstack([pin.skew(p - centre) for p in places])
    reference = robot.reference_configuration()
    R, R0 = (pin.XYZQUATToSE3(c[:7]).rotation for c in (q, reference))
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    heading = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    wanted = np.zeros(robot.nv)
    wanted[:3] = R.T @ wanted_centre - np.cross(v[3:6], v[:3])
    a, p = t.attitude_rate * omega, t.posture_rate * omega
    wanted[3:6] = a**2 * pin.log3(R.T @ heading @ R0) - 2.0 * a * v[3:6]
    wanted[6:] = p**2 * (reference - q)[7:] - 2.0 * p * v[6:]
    weights = np.full(robot.nv, t.posture / omega**4)
    weights[:3], weights[3:6] = 1e-4 / G**2, t.attitude / omega**4

    def cost(acceleration, force):
        f = force.reshape(-1)
        push = force.sum(axis=0) / (m * G) - (wanted_centre + [0.0, 0.0, G]) / G
        spin = (moment @ f + t.momentum_rate * omega * L) / (m * G * z)
        return 0.5 * (
            t.centre * push @ push + t.momentum * spin @ spin + t.load * f @ f / (m * G) ** 2
            + weights @ (acceleration - wanted) ** 2
        )  # fmt: skip

    # other feasible points: answers of controllers that want something else
    others = [BalanceTuning(rate=r, posture=w, load=load) for r, w, load in
              ((0.2, 0.01, 1e-3), (2.0, 1.0, 1e-2), (1.0, 10.0, 1e-1))]  # fmt: skip
    lowest = cost(best.acceleration, best.force)
    for tuning in others:
        other = Balance(robot, tuning=tuning).answer(0.0, q, v)
        assert other.solved
        assert lowest < cost(other.acceleration, other.force)
        way = 1e-4
        near = (
            best.acceleration + way * (other.acceleration - best.acceleration),
            best.force + way * (other.force - best.force),
        )
        assert lowest <= cost(*near) * (1.0 + 1e-12)


def test_the_middle_is_that_of_the_soles():
    points = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 1.0], [0.0, 1.0], [0.1, 0.5]])
    shares = shares_of_centre(points)
    assert shares.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(shares @ points, [1.0, 0.5], atol=1e-12)


def test_equal_calls_have_equal_bits(robot):
    q, v = random_state(robot, 1, 0.05)
    first, second = Balance(robot).answer(0.0, q, v), Balance(robot).answer(0.0, q, v)
    assert (first.effort == second.effort).all()
    assert (first.force == second.force).all()


# ---------------------------------------------------------------- simulations


def run(robot, model, impulse, seconds, way=(1.0, 0.0), at=0.5, controller=None):
    """Push the trunk for 0.1 s; return what remains of the height, and the states."""
    sim = Simulator(robot, model, friction=0.8)
    controller = controller or Balance(robot)
    force = np.array([*way, 0.0]) * impulse / 0.1
    start, states = centre_of(robot, sim.q)[0][2], []
    for k in range(round(seconds / sim.time_step)):
        pushed = at <= k * sim.time_step < at + 0.1
        answer = controller.answer(sim.time, sim.q, sim.v)
        report = sim.step(
            answer.effort, {robot.base_frame: [*force, 0.0, 0.0, 0.0]} if pushed else None
        )
        states.append((answer, report, sim.q.copy(), sim.v.copy()))
        if centre_of(robot, sim.q)[0][2] < 0.5 * start:
            break
    return centre_of(robot, sim.q)[0][2] / start, states


def bearable(controller, way):
    """Return the impulse that a robot without arms and steps bears, m ω d [N s]."""
    footing = controller.footing()
    return controller.dynamics.robot.total_mass * footing.omega * footing.edge[way]


@pytest.mark.parametrize('model', ['ncp', 'sap', 'todorov'])
def test_a_pushed_biped_stands_and_returns(robot, model):
    """Pushed by 0.6 of what its soles can bear, forward and then to the left."""
    controller = Balance(robot)
    impulse = 0.6 * bearable(controller, 0)
    height, states = run(robot, model, impulse, 5.0, controller=controller)
    assert len(states) == 5000
    assert height == pytest.approx(1.0, abs=0.01)
    # the push was felt: the centre of mass moved by some v/ω on the way
    way = [centre_of(robot, q)[0][0] for _, _, q, _ in states[::50]]
    assert np.ptp(way) > 0.3 * impulse / robot.total_mass / controller.footing().omega
    # at the end it is over the middle of the soles, at rest
    _, _, q, v = states[-1]
    controller.dynamics.update(q, v)
    middle = controller._share @ controller.dynamics.foot
    centre, speed = centre_of(robot, q, v)
    np.testing.assert_allclose(centre[:2], middle[:2], atol=5e-3)
    np.testing.assert_allclose(speed, 0.0, atol=1e-2)
    # at rest the ground carries the weight, and the controller knows it
    answer, report, _, _ = states[-1]
    weight = robot.total_mass * G
    np.testing.assert_allclose(
        report.contacts.force.sum(axis=0), [0, 0, weight], atol=0.01 * weight
    )
    np.testing.assert_allclose(answer.force.sum(axis=0), [0, 0, weight], atol=0.01 * weight)


def test_planned_forces_press_inside_the_soles(robot):
    """In the worst of a push too: the centre of pressure of each sole is in the hull of it."""
    controller = Balance(robot)
    _, states = run(
        robot, 'ncp', 0.9 * bearable(controller, 2), 1.5, (0, 1), controller=controller
    )
    for answer, _, q, v in states[::20]:
        places = point_jacobian(robot, q, v, controller.points)[2]
        for joint in {p.joint for p in controller.points}:
            of_foot = [p.joint == joint for p in controller.points]
            f, corners = answer.force[of_foot], places[of_foot][:, :2]
            pressure = f[:, 2] @ corners / f[:, 2].sum()
            faces = ConvexHull(corners).equations
            assert (faces[:, :2] @ pressure + faces[:, 2] <= 1e-9).all()


def test_pushes_are_bearable_up_to_what_soles_can_do(robot):
    """The pendulum on soles says m ω d; arms and trunk may add a little, nothing doubles it."""
    controller = Balance(robot)
    for way, direction in ((0, (1, 0)), (2, (0, 1))):
        limit = bearable(controller, way)
        assert run(robot, 'ncp', 0.8 * limit, 4.0, direction)[0] > 0.95
        assert run(robot, 'ncp', 2.5 * limit, 4.0, direction)[0] < 0.6


def test_weak_ankles_bear_less(robot):
    """Ankles of torque τ at height a shift the pressure back by d: 2 τ = m g d − F_x a.

    The ground then pushes forward with F_x = m g d/z, the force that goes through the centre of
    mass.
    """
    weak = {f'ankle_{side}': 4.0 for side in 'lr'}
    feeble = robot.with_actuators(effort_limit=weak)
    strong, footing = Balance(robot).footing(), Balance(feeble).footing()
    np.testing.assert_allclose(strong.edge, footing.edge, atol=1e-12)
    np.testing.assert_allclose(strong.reach, strong.edge, rtol=0.05)
    span = footing.reach[0] + footing.reach[1]
    ankle, z = 0.07, G / footing.omega**2
    assert span == pytest.approx(4 * 4.0 / (robot.total_mass * G * (1.0 - ankle / z)), rel=0.02)


def test_a_robot_too_weak_says_that_it_cannot_carry_itself(robot):
    weak = robot.with_actuators(effort_limit=1.0)
    controller = Balance(weak)
    footing = controller.footing()
    assert not footing.carries
    assert (footing.reach == 0.0).all()
    assert Balance(robot).footing().carries
    q, v = weak.reference_configuration(), np.zeros(weak.nv)
    answer = controller.answer(0.0, q, v)
    assert (np.abs(answer.effort) <= 1.0).all()
    assert answer.acceleration[2] < -1.0  # it sinks


def test_joints_keep_away_from_their_limits(robot):
    """A knee at its limit that moves on into it is stopped."""
    q, v = robot.reference_configuration(), np.zeros(robot.nv)
    controller = Balance(robot)
    knee = robot.joint_names.index('knee_l')
    q[7 + knee] = robot.lower_position_limit[knee] + 1e-3
    v[6 + knee] = -1.0
    answer = controller.answer(0.0, q, v)
    # within 0.1 s it must turn round: q + q̇ Δ + q̈ Δ²/2 ≥ q_min, or as hard as is sensible
    needed = 2.0 / 0.1**2 * (-1e-3 + 0.1)
    most = 5.0 * G / controller._height
    assert answer.acceleration[6 + knee] >= min(needed, most) - 1e-6


@pytest.mark.parametrize('name', ['go1', 'solo8'])
def test_quadrupeds_stand_too(name):
    robot = load_robot(name)
    height, states = run(robot, 'ncp', 0.2 * robot.total_mass, 2.0)
    assert height > 0.98
    assert all(answer.solved for answer, _, _, _ in states)


def test_a_robot_on_one_foot_stands(robot):
    """A leg alone, on one sole: its pose is searched for by hand."""
    text = biped()
    one = load_robot(text, feet=['sole_l'])
    reason = cannot_balance(one)
    # its other leg hangs; the pose puts the centre of mass beside the sole, not outside all reach
    assert reason == ''
    controller = Balance(one)
    assert {p.joint for p in controller.points} == {'tilt_l'}
    answer = controller.answer(0.0, one.reference_configuration(), np.zeros(one.nv))
    assert np.isfinite(answer.effort).all()


# ---------------------------------------------------------------- refusals


def test_robots_that_cannot_balance_are_refused(robot):
    for other, why in (
        (load_robot('go1', floating_base=False), 'its base is fixed'),
        (load_robot(biped(), feet=()), 'no contact points'),
        (load_robot(biped(), feet=SOLES, actuated_joints=()), 'no joint is driven'),
    ):
        assert why in cannot_balance(other)
        with pytest.raises(InvalidInput, match=f'balance of robot {other.name}: .*{why}'):
            Balance(other)


def test_robots_on_points_are_refused():
    text = biped(spheres=True).replace('<sphere radius="0.005"/>', '<sphere radius="0.0051"/>', 1)
    # one ball of one foot is lower than all others: two feet on points cannot be held
    robot = load_robot(text, feet=SOLES)
    points = RobotModel.from_pinocchio(robot.pinocchio_model, ['sole_l', 'sole_r'])
    assert 'enclose no area' in cannot_balance(points)
    with pytest.raises(InvalidInput, match='has to step'):
        Balance(points)


def test_bad_arguments_are_refused(robot, controller):
    with pytest.raises(UnknownName, match='standing'):
        Balance(robot, 'standin')
    with pytest.raises(InvalidInput, match='friction'):
        Balance(robot, friction=0.0)
    with pytest.raises(InvalidInput, match=r'BalanceTuning\.centre'):
        BalanceTuning(centre=0.0)
    with pytest.raises(InvalidInput, match='smallest_force'):
        BalanceTuning(smallest_force=1.0)
    with pytest.raises(InvalidInput):
        controller.answer(0.0, np.zeros(3), np.zeros(robot.nv))
    with pytest.raises(InvalidInput):
        controller.effort(np.nan, robot.reference_configuration(), np.zeros(robot.nv))
