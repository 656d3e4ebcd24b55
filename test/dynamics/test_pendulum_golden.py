"""The double pendulum of T2 as the simulator has it: equations of motion and what follows.

T1 Lagrange        T2 the numbers of the text      T3 M, C, the quaternion, recursive algorithms
T25 virtual work, d'Alembert, Hamilton, the action, small oscillations      C5 computed torque
"""

import numpy as np
import pinocchio as pin
import pytest
from linkages import double_pendulum
from robots import point_mass, rigid_body
from scipy.linalg import eigh

from contact_sim import Hybrid, Simulator, load_robot
from contact_sim.dynamics import mechanical_energy

Q, V, EFFORT = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([0.5, -0.2])
MASSES, LENGTHS, GRAVITY = (1.0, 2.0), (1.0, 0.5), 9.81
REST = np.zeros(2)
ETA = np.array([1.0, -0.5])
"""Direction of a variation of the path."""


@pytest.fixture(scope='module')
def sim():
    return Simulator(double_pendulum(), time_step=1e-4)


def terms(sim, q, v=REST):
    """Return M and the bias force C v − τ_g of the simulator at a state."""
    sim.reset(q, v)
    report = sim.step(np.zeros(sim.robot.n_joints))
    M = report.problem.inertia.copy()
    return M, -M @ report.acceleration


def coriolis(sim, q, v):
    """Return C(q, v) v."""
    return terms(sim, q, v)[1] - terms(sim, q)[1]


def acceleration(sim, q, v, effort):
    sim.reset(q, v)
    return sim.step(effort).acceleration.copy()


def energy(sim, q, v):
    return mechanical_energy(sim.robot.pinocchio_model, q, v, sim.gravity)


def potential(sim, q):
    return energy(sim, q, REST)


def lagrangian(sim, q, v):
    """Return L = T − U [J]."""
    return energy(sim, q, v) - 2.0 * potential(sim, q)


def gradient(function, x, step=1e-5):
    """Return the derivatives of `function` by central differences, one row each."""
    ways = step * np.eye(len(x))
    return np.array([(function(x + way) - function(x - way)) / (2.0 * step) for way in ways])


# ------------------------------------------------------------------ equations of motion (T1, T2)


def test_t1_lagrange(sim):
    """T1: d/dt ∂L/∂q̇ − ∂L/∂q = τ at the acceleration of the simulator; a particle has f = m a."""
    a, dt = acceleration(sim, Q, V, EFFORT), 1e-4

    def momentum(q, v):
        return gradient(lambda w: lagrangian(sim, q, w), v)

    ahead = momentum(Q + dt * V + 0.5 * dt**2 * a, V + dt * a)
    behind = momentum(Q - dt * V + 0.5 * dt**2 * a, V - dt * a)
    force = gradient(lambda q: lagrangian(sim, q, V), Q)
    assert (ahead - behind) / (2.0 * dt) - force == pytest.approx(EFFORT, abs=2e-5)
    particle = Simulator(point_mass(2.0), gravity=0.0)
    particle.reset(np.array([0.0, 0.0, 5.0]))
    report = particle.step(np.zeros(0), {'point': [3.0, -1.0, 4.0, 0.0, 0.0, 0.0]})
    assert report.acceleration == pytest.approx([1.5, -0.5, 2.0], abs=1e-12)


def test_t2_equations_of_motion(sim):
    """T2: M, C q̇, τ_g, q̈ and E of the text."""
    M, bias = terms(sim, Q, V)
    assert np.array([[5.02968437, 1.26484219], [1.26484219, 0.5]]) == pytest.approx(M, abs=5e-9)
    assert coriolis(sim, Q, V) == pytest.approx([-0.46383673, -0.7795034], abs=5e-9)
    gravity = coriolis(sim, Q, V) - bias
    assert gravity == pytest.approx([-4.87696574, 3.82019394], abs=5e-9)
    found = acceleration(sim, Q, V, EFFORT)
    assert found == pytest.approx([-8.22005712, 29.59354474], abs=5e-9)
    assert energy(sim, Q, V) == pytest.approx(-34.62473274, abs=5e-9)


def swing(model, steps=10_000):
    """Return the simulator after 10 s at 1 ms, and the energies on the way less the first."""
    sim = Simulator(double_pendulum(), model, time_step=1e-3)
    sim.reset(Q, V)
    energies = [energy(sim, sim.q, sim.v)]
    for _ in range(steps):
        sim.step(REST)
        energies.append(energy(sim, sim.q, sim.v))
    return sim, np.array(energies) - energies[0]


def test_t2_ten_seconds_of_runge_kutta():
    """T2: hybrid in flight takes the classical steps of 4th order: drift −3.8e-10 J."""
    sim, energies = swing(Hybrid(max_substep=1e-3))
    assert energies[-1] == pytest.approx(-3.8e-10, abs=1e-11)
    assert [*sim.q, *sim.v] == pytest.approx(
        [0.13764278, 0.8032905, -0.44390936, 0.41300351], abs=5e-9
    )


def test_t2_ten_seconds_of_semi_implicit_steps():
    """T2: the energy stays in [−0.2017, 0.0074] J."""
    _, energies = swing('ncp')
    assert [energies.min(), energies.max()] == pytest.approx([-0.2017, 0.0074], abs=5e-5)


# ------------------------------------------------------------------ structure (T3)


def christoffel(sim, q, v):
    """Return Christoffel's C and Ṁ, from differences of M."""
    by_joint = gradient(lambda x: terms(sim, x)[0], q)  # [k, i, j] = ∂M_ij/∂q_k
    C = 0.5 * sum(
        v[k] * (by_joint[k] + by_joint[:, :, k].T - by_joint[:, k, :]) for k in range(len(q))
    )
    return C, np.tensordot(v, by_joint, 1)


def printed_coriolis(q, v):
    """Return the C that Tedrake prints for the double pendulum."""
    factor = MASSES[1] * LENGTHS[0] * LENGTHS[1] * np.sin(q[1])
    rate = 2.0 * v[0] + v[1]
    return factor * np.array([[0.0, -rate], [0.5 * rate, -0.5 * v[0]]])


def test_t3_what_is_skew_and_what_is_not(sim):
    """T3: Ṁ − 2 C is skew for Christoffel's C; M − 2 C is not, nor is the printed C such a C."""
    C, rate = christoffel(sim, Q, V)
    skewed = rate - 2.0 * C
    assert np.abs(skewed + skewed.T).max() <= 1e-8
    for choice in (C, printed_coriolis(Q, V)):
        assert choice @ V == pytest.approx(coriolis(sim, Q, V), abs=1e-8)
    misprint = terms(sim, Q)[0] - 2.0 * C
    assert np.linalg.norm(misprint + misprint.T) > 1.0
    printed = rate - 2.0 * printed_coriolis(Q, V)
    assert np.linalg.norm(printed + printed.T) == pytest.approx(2.9465, abs=6e-5)


def test_t3_rate_of_a_quaternion():
    """T3: ω = 2 H̄ d(quaternion)/dt, for the base that the simulator turns."""
    half, omega = 1e-5, np.array([0.7, -1.1, 0.4])
    sim = Simulator(rigid_body('top', 1.0, np.eye(3), []), gravity=0.0, time_step=half)
    start = np.array([0.0, 0.0, 1.0, 0.1, -0.5, 0.3, np.sqrt(0.65)])
    ends = []
    for sign in (1.0, -1.0):
        sim.reset(start, np.array([0.0, 0.0, 0.0, *(sign * omega)]))
        sim.step(np.zeros(0))
        ends.append(sim.q[3:])
    x, y, z, w = start[3:]
    H = np.array([[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z]])
    rate = (ends[0] - ends[1]) / (2.0 * half)
    assert 2.0 * H @ rate == pytest.approx(omega, abs=1e-9)
    assert sim.robot.nq == sim.robot.nv + 1


@pytest.mark.parametrize('name', ['solo12', 'anymal_b'])
def test_t3_recursive_algorithms(name):
    """T3: a step in the air is ABA, its inverse RNEA; M is definite and sparse by branch."""
    robot, rng = load_robot(name), np.random.default_rng(3)
    model, h = robot.pinocchio_model, 1e-4
    data = model.createData()
    q = pin.integrate(model, robot.reference_configuration(), 0.05 * rng.normal(size=robot.nv))
    q[2] += 5.0
    v, effort = rng.normal(size=robot.nv), 5.0 * rng.normal(size=robot.n_joints)
    sim = Simulator(robot, time_step=h)
    sim.reset(q, v)
    report = sim.step(effort)
    found, M = report.acceleration, report.problem.inertia
    damping = np.asarray(model.damping)
    tau = np.r_[np.zeros(6), effort] - damping * (v + h * found)  # viscous: at the end of the step
    scale = np.abs(found).max()
    assert found == pytest.approx(pin.aba(model, data, q, v, tau), abs=1e-11 * scale)
    assert pin.rnea(model, data, q, v, found) == pytest.approx(tau, abs=1e-11 * scale)
    bare = model.copy()
    bare.armature = np.zeros(robot.nv)
    kinetic = 0.5 * v @ (M - np.diag(model.armature + h * damping)) @ v
    assert kinetic == pytest.approx(pin.computeKineticEnergy(bare, data, q, v), rel=1e-12)
    assert np.linalg.eigvalsh(M)[0] > 0.0
    legs = np.kron(np.eye(4), np.ones((3, 3)))
    assert np.array_equal(M[6:, 6:] != 0.0, legs != 0.0)


# ------------------------------------------------------------------ variational statements (T25)


def test_t25_virtual_work(sim):
    """T25: forces of gravity through their Jacobians are −∂U/∂q; u = −τ_g holds still."""
    model = sim.robot.pinocchio_model
    data = model.createData()
    pin.computeJointJacobians(model, data, Q)
    virtual = np.zeros(2)
    for joint in (1, 2):
        J = pin.getJointJacobian(model, data, joint, pin.LOCAL)
        bob = model.inertias[joint]
        down = data.oMi[joint].rotation.T @ np.array([0.0, 0.0, -bob.mass * GRAVITY])
        virtual += J[:3].T @ down + J[3:].T @ np.cross(bob.lever, down)
    assert virtual == pytest.approx([-4.87696574, 3.82019394], abs=5e-9)
    assert -gradient(lambda q: potential(sim, q), Q) == pytest.approx(virtual, abs=1e-7)
    holding = np.array([4.87696574, -3.82019394])
    assert acceleration(sim, Q, REST, holding) == pytest.approx(REST, abs=1e-6)


def test_t25_sign_of_the_inertial_force(sim):
    """T25, d'Alembert: −M q̈ − C q̇ balances gravity and effort; the opposite sign doubles them."""
    M, bias = terms(sim, Q, V)
    applied = coriolis(sim, Q, V) - bias + EFFORT
    inertial = M @ acceleration(sim, Q, V, EFFORT) + coriolis(sim, Q, V)
    assert applied - inertial == pytest.approx(REST, abs=1e-9)
    assert np.abs(applied + inertial).max() > 7.0


def test_t25_hamilton():
    """T25: ṗ = ½ ∂(q̇ᵀ M q̇)/∂q + τ_g + u is the rate of p = M q̇ along the motion."""
    dt = 1e-3
    sim = Simulator(double_pendulum(), Hybrid(max_substep=dt), time_step=dt)
    momenta = []
    for sign in (1.0, -1.0):  # the way back is the motion of −v
        sim.reset(Q, sign * V)
        sim.step(EFFORT)
        q, v = sim.q.copy(), sign * sim.v
        momenta.append(terms(sim, q)[0] @ v)
    rate = (momenta[0] - momenta[1]) / (2.0 * dt)
    assert rate == pytest.approx([-4.37696574, 4.11624156], abs=5e-4)
    by_position = gradient(lambda q: energy(sim, q, V) - potential(sim, q), Q)
    gravity = -gradient(lambda q: potential(sim, q), Q)
    assert by_position + gravity + EFFORT == pytest.approx([-4.37696574, 4.11624156], abs=1e-7)


def test_t25_stationary_action():
    """T25: along a motion the first variation of the action vanishes against the second.

    The text's reference has −3.6e-6 against 8.31 for a variation of its own. Along the motion of
    another effort, which is none of L = T − U, it does not vanish.
    """
    dt, size = 1e-3, 1e-3
    t = dt * np.arange(1001)
    weight = dt * np.r_[0.5, np.ones(999), 0.5]
    shape, rate = np.sin(np.pi * t), np.pi * np.cos(np.pi * t)
    variations = []
    for effort in (REST, EFFORT):
        sim = Simulator(double_pendulum(), Hybrid(max_substep=dt), time_step=dt)
        sim.reset(Q, V)
        path = [(sim.q, sim.v)]
        for _ in t[1:]:
            sim.step(effort)
            path.append((sim.q, sim.v))
        actions = [
            weight @ [
                lagrangian(sim, q + s * share * ETA, v + s * speed * ETA)
                for (q, v), share, speed in zip(path, shape, rate, strict=True)
            ]
            for s in (size, 0.0, -size)
        ]  # fmt: skip
        first = (actions[0] - actions[2]) / (2.0 * size)
        variations.append((first, (actions[0] - 2.0 * actions[1] + actions[2]) / size**2))
    assert abs(variations[0][0]) <= 1e-5
    assert variations[0][1] > 1.0
    # δS = ∫ u·η dt less: the effort does the work that L does not know
    assert variations[1][0] == pytest.approx(-(weight @ shape) * EFFORT @ ETA, abs=1e-5)


def test_t25_equilibria_and_small_oscillations(sim):
    """T25: hanging is a minimum of U, upright a maximum; two modes about the first."""

    def hessian(q):
        return gradient(lambda x: gradient(lambda y: potential(sim, y), x, 1e-4), q, 1e-4)

    stable = np.linalg.eigvalsh(hessian(REST))
    assert stable == pytest.approx([6.83977098, 42.21022894], abs=1e-5)
    assert (np.linalg.eigvalsh(hessian(np.array([np.pi, 0.0]))) < 0.0).all()
    squares, modes = eigh(hessian(REST), terms(sim, REST)[0])
    assert np.sqrt(squares) == pytest.approx([2.66703245, 9.00982451], abs=1e-6)
    for rate, mode in zip((2.66703245, 9.00982451), modes.T, strict=True):
        period = 2.0 * np.pi / rate  # after a quarter the mode is all speed, after one it is back
        swinging = Simulator(double_pendulum(), 'hybrid', time_step=period / 800)
        swinging.reset(1e-5 * mode, REST)
        for step in range(1, 801):
            swinging.step(REST)
            if step == 200:
                assert swinging.v == pytest.approx(-1e-5 * rate * mode, rel=1e-6)
        assert swinging.q == pytest.approx(1e-5 * mode, rel=1e-6)


# ------------------------------------------------------------------ computed torque (C5)


def test_c5_computed_torque_makes_the_error_critically_damped():
    """C5: K_p = 100, K_d = 20: e(0.1 s) = 2/e · e_0, from e_0 = (0.1, −0.2); error O(h)."""
    robot, misses = double_pendulum(), []
    model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
    for h in (1e-3, 5e-4):
        sim = Simulator(robot, time_step=h)
        sim.reset(Q - np.array([0.1, -0.2]), REST)  # at rest: e = q_d − q, ė = 0
        for _ in range(round(0.1 / h)):
            wanted = 20.0 * (REST - sim.v) + 100.0 * (Q - sim.q)
            sim.step(pin.rnea(model, data, sim.q, sim.v, wanted))
        misses.append(Q - sim.q - np.array([0.07357589, -0.14715178]))
    assert np.abs(misses).max() <= 2e-3
    extrapolated = 2.0 * misses[1] - misses[0]
    assert extrapolated == pytest.approx(REST, abs=1e-5)
