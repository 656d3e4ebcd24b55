"""The efforts of the controllers, against the same law written down without any elimination.

The law is one quadratic program in accelerations, efforts and forces, with matrices of the support
analysis. It is convex, so its optimality conditions say that an answer is the right one.
"""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import linprog, nnls

from contact_sim import load_robot
from contact_sim.control import Stance, Trot
from contact_sim.control._inverse_dynamics import STILL, InverseDynamicsQP, LeggedDynamics
from contact_sim.control._stance import (
    BaseGains,
    BaseReference,
    base_acceleration,
    rotation_vector,
    turned,
)
from contact_sim.control._trot import footholds
from contact_sim.errors import InvalidInput, SingularLegs
from contact_sim.support import stance_dynamics

ROBOTS = ('go1', 'anymal_b', 'solo12', 'hyq')
FRICTION = 0.5
STANDING = [[True] * 4, [True, False, False, True], [False, True, True, True]]


def random_state(robot, seed, size=0.3):
    rng = np.random.default_rng(seed)
    change = size * rng.normal(size=robot.nv)
    q = pin.integrate(robot.pinocchio_model, robot.reference_configuration(), change)
    return q, size * rng.normal(size=robot.nv), rng


def friction_cones(n, least):
    """Return C and top of |f_x|, |f_y| ≤ μ f_z / √2 and f_z ≥ least as C f ≤ top."""
    side = FRICTION / np.sqrt(2.0)
    rows, top = [], []
    for i in range(n):
        x, y, z = np.eye(3 * n)[3 * i : 3 * i + 3]
        rows += [x - side * z, -x - side * z, y - side * z, -y - side * z, -z]
        top += [0.0, 0.0, 0.0, 0.0, -least]
    return np.array(rows), np.array(top)


def straightforward(robot, q, v, base, feet, standing):
    """Return cost, gradient, A, b, C, d of: least ½ xᵀ cost x + gᵀ x, A x = b, C x ≤ d.

    All that moves is an unknown, all that holds is an equation: x is of v̇, τ/m and f/m.
    """
    mass = robot.total_mass
    nv, nj = robot.nv, robot.n_joints
    analysis = stance_dynamics(robot, q, v, range(4))
    world = np.zeros((12, 12))
    for i in range(4):
        world[3 * i : 3 * i + 3, 3 * i : 3 * i + 3] = analysis.frame[i].T
    J, drift = world @ analysis.contact_jacobian, world @ analysis.drift
    Jf = J[np.repeat(standing, 3)]
    n = len(Jf)
    speed = robot.joint_velocities(v)
    passive = robot.joint_damping[6:] * speed + robot.joint_friction[6:] * np.tanh(speed / STILL)
    h = analysis.nonlinear_effects + robot.selection_matrix.T @ passive
    A = np.block([
        [analysis.inertia / mass, -robot.selection_matrix.T, -Jf.T],
        [J, np.zeros((12, nj)), np.zeros((12, n))],
    ])  # fmt: skip
    b = np.concatenate([-h / mass, feet.reshape(-1) - drift])
    weights = np.array([1.0, 1.0, 1.0, 0.3, 0.3, 0.3]) ** 2
    cost = np.concatenate([weights, np.zeros(nv - 6 + nj), np.full(n, 1e-4)])
    linear = np.concatenate([-weights * base, np.zeros(nv - 6 + nj + n)])
    rows, top = friction_cones(n // 3, 0.02 * 9.81 / 4)
    limit = robot.effort_limit / mass
    C = np.zeros((2 * nj + len(rows), nv + nj + n))
    C[:nj, nv : nv + nj], C[nj : 2 * nj, nv : nv + nj] = np.eye(nj), -np.eye(nj)
    C[2 * nj :, nv + nj :] = rows
    return cost, linear, A, b, C, np.concatenate([limit, limit, top])


def feasible(A, b, C, d):
    """Return whether there is an x with A x = b, C x ≤ d."""
    return linprog(np.zeros(A.shape[1]), C, d, A, b, bounds=(None, None)).status == 0


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('standing', STANDING, ids=['four', 'two', 'three'])
def test_efforts_are_those_of_the_law(name, standing):
    """Wanted accelerations up to several g: often limits of forces and efforts are active."""
    robot, standing = load_robot(name), np.array(standing)
    dynamics = LeggedDynamics(robot)
    inverse = InverseDynamicsQP(dynamics, FRICTION)
    compared, limits = 0, 0
    for seed in range(12):
        q, v, rng = random_state(robot, seed)
        base = rng.normal(size=6) * 10.0 ** rng.uniform(-1.0, 1.3)
        feet = np.where(standing[:, None], 0.0, 5.0 * rng.normal(size=(4, 3)))
        cost, linear, A, b, C, d = straightforward(robot, q, v, base, feet, standing)
        dynamics.update(q, v)
        answer = inverse.solve(base, feet, standing)
        assert answer.solved == feasible(A, b, C, d)
        if not answer.solved:
            continue
        force = answer.force[standing].reshape(-1)
        mass = robot.total_mass
        x = np.concatenate([answer.acceleration, answer.effort / mass, force / mass])
        size = 1.0 + np.abs(x).max()
        np.testing.assert_allclose(A @ x, b, atol=1e-9 * size)
        assert (C @ x <= d + 1e-8 * size).all()
        active = C[C @ x >= d - 1e-7]
        # stationary: − gradient is a sum of equations and, with z ≥ 0, of active limits
        _, residual = nnls(np.vstack([A, -A, active]).T, -(cost * x + linear))
        assert residual <= 1e-9 * (1.0 + np.abs(linear).max())
        compared, limits = compared + 1, limits + len(active)
        assert not answer.force[~standing].any()
    assert compared >= 4
    assert limits >= compared


def test_where_no_forces_keep_the_limits_the_answer_says_so_and_is_the_same_every_time():
    robot = load_robot('go1')
    q, v, _ = random_state(robot, 0)
    base = np.zeros(6)
    feet = np.zeros((4, 3))
    feet[2:, 2] = 3e3  # legs thrown up faster than any motor can
    standing = np.array([True, True, False, False])
    assert not feasible(*straightforward(robot, q, v, base, feet, standing)[2:])
    answers = []
    for _ in range(2):
        dynamics = LeggedDynamics(robot)
        dynamics.update(q, v)
        inverse = InverseDynamicsQP(dynamics, FRICTION)
        answers += [inverse.solve(base, feet, standing) for _ in range(2)]
    for answer in answers:
        assert not answer.solved
        assert (np.abs(answer.effort) <= robot.effort_limit).all()
        assert np.array_equal(answer.effort, answers[0].effort)
        forces = answer.force[standing].reshape(-1)
        rows, top = friction_cones(2, 0.02 * 9.81 * robot.total_mass / 4)
        assert (rows @ forces <= top + 1e-5).all()


def test_an_answer_does_not_depend_on_what_was_asked_before():
    robot = load_robot('anymal_b')
    states = [random_state(robot, seed, 0.1)[:2] for seed in range(20)]
    old = Stance(robot, 'sway')
    old.reference(0.0)
    place = old._begin
    for k, (q, v) in enumerate(states):
        first = old.effort(0.01 * k, q, v)
        fresh = Stance(robot, 'sway')
        fresh._begin = place
        for again in (old, fresh, fresh):
            assert again.effort(0.01 * k, q, v).tobytes() == first.tobytes()


def test_a_new_trot_repeats_the_efforts_of_an_old_one():
    robot = load_robot('go1')
    used, new = Trot(robot), Trot(robot)
    rng = np.random.default_rng(5)
    for k in range(50):
        used.effort(7.0 + 0.002 * k, *random_state(robot, k, 0.05)[:2])
    q = robot.reference_configuration()
    for k in range(400):
        v = 0.01 * rng.normal(size=robot.nv)
        efforts = [trot.effort(0.002 * k, q, v).tobytes() for trot in (used, new, new)]
        assert efforts[0] == efforts[1] == efforts[2]


def test_the_efforts_of_many_trots_are_those_of_each():
    robot, n = load_robot('go1'), 5
    many, alone = Trot(robot), [Trot(robot) for _ in range(n)]
    for trot in (many, *alone):
        trot.velocity = 0.3, 0.1, -0.2
    for k in range(300):
        states = [random_state(robot, n * k + i, 0.05)[:2] for i in range(n)]
        times = 0.002 * k + 0.1 * np.arange(n) + (1.0 if k > 150 else 0.0)  # all start anew
        found = many.efforts(times, *map(np.array, zip(*states, strict=True)))
        expected = [t.effort(float(times[i]), *states[i]) for i, t in enumerate(alone)]
        assert found.tobytes() == np.array(expected).tobytes()
    with pytest.raises(InvalidInput, match=r'shapes \(4,\), \(5, 19\) and \(5, 18\), expected'):
        many.efforts(times[:4], *map(np.array, zip(*states, strict=True)))
    with pytest.raises(InvalidInput, match='has joints that follow others'):
        Trot(load_robot('four_bar_quadruped')).efforts(
            np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1))
        )


@pytest.mark.parametrize('size', [0.0, 1e-9, 1e-4, 1.0, 3.0, np.pi - 1e-7])
def test_the_rotation_vector_is_that_of_pinocchio(size):
    rng = np.random.default_rng(8)
    for _ in range(50):
        axis = rng.normal(size=3)
        vector = size * axis / np.linalg.norm(axis)
        np.testing.assert_allclose(rotation_vector(pin.exp3(vector)), vector, atol=3e-9)
        if size < 3.1:
            np.testing.assert_allclose(rotation_vector(pin.exp3(vector)), vector, atol=1e-14)


def test_efforts_do_not_change_when_the_caller_reuses_its_arrays():
    robot = load_robot('go1')
    controller = Stance(robot)
    q, v = robot.reference_configuration(), np.zeros(robot.nv)
    answer = controller.answer(0.0, q, v)
    kept, targets = answer.effort.copy(), controller.joint_targets(0.01)
    q[7:], v[:] = 0.0, 9.0
    again = controller.joint_targets(0.01)
    assert np.array_equal(answer.effort, kept)
    assert np.array_equal(again, targets)


def test_straight_legs_are_an_error_that_can_be_caught():
    """A leg whose foot lies on the axes of its joints cannot move it."""
    robot = load_robot('go1')
    dynamics = LeggedDynamics(robot)
    dynamics.jacobian = np.zeros_like(dynamics.jacobian)
    with pytest.raises(SingularLegs, match='legs'):
        InverseDynamicsQP(dynamics).solve(np.zeros(6), np.zeros((4, 3)), np.ones(4, dtype=bool))


def test_the_wanted_acceleration_of_the_base():
    """Feed-forward and PD, in matrices; p along the wanted heading."""
    robot = load_robot('go1')
    dynamics = LeggedDynamics(robot)
    q, v, rng = random_state(robot, 4)
    dynamics.update(q, v)
    gains = BaseGains((1.0, 2.0, 3.0), (0.4, 0.5, 0.6), 7.0, 0.8)
    p, dp, ddp = rng.normal(size=(3, 3))
    answer = base_acceleration(dynamics, BaseReference(p, 0.4, dp, ddp, 0.3), gains)
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    H = pin.rpy.rpyToMatrix(0.0, 0.0, 0.4)
    np.testing.assert_allclose(turned(0.4), H, atol=1e-15)
    wanted = ddp + H @ np.diag(gains.p) @ H.T @ (p - q[:3])
    wanted += H @ np.diag(gains.d) @ H.T @ (dp - R @ v[:3])
    linear = R.T @ wanted - np.cross(v[3:6], v[:3])
    angular = 7.0 * pin.log3(R.T @ H) + 0.8 * (R.T @ [0.0, 0.0, 0.3] - v[3:6])
    np.testing.assert_allclose(answer, [*linear, *angular], atol=1e-12)


def test_footholds_are_those_of_raibert():
    rng = np.random.default_rng(6)
    R = pin.rpy.rpyToMatrix(0.1, -0.2, 0.9)
    centre, v, speed, place = (rng.normal(size=s) for s in (3, 18, 3, (4, 3)))
    share = np.array([0.0, 0.3, 0.8, 1.0])
    landing = footholds(centre, R, v, speed, place, share, (0.9, 0.2), (0.16, 0.11), 0.05)
    for i in range(4):
        ahead = (1.0 - share[i]) * 0.16 + 0.11
        turn = pin.rpy.rpyToMatrix(0.0, 0.0, 0.9 + ahead * 0.2)
        expected = centre + ahead * R @ v[:3] + turn @ place[i] + 0.05 * (R @ v[:3] - speed)
        np.testing.assert_allclose(landing[i], expected, atol=1e-13)
