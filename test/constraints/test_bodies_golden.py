"""Bodies, a bead and a chain under constraints: C1 to C4, C6, C7; misprints of T5, T6, C2, C3."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import pytest
from linkages import chain, double_pendulum
from robots import centroidal_momentum

from contact_sim import Hybrid, RobotModel, Simulator
from contact_sim.constraints import Baumgarte, Holonomic, LoopClosure, PointAnchor

NO_EFFORT = np.zeros(0)


@dataclass(frozen=True)
class Body:
    """A body of C3 [kg, kg m², m, rad/s]; its joint as seen from its centre."""

    name: str
    mass: float
    inertia: np.ndarray
    joint: np.ndarray
    rate: np.ndarray

    @property
    def gyroscopic(self):
        return -np.cross(self.rate, self.inertia @ self.rate)

    @property
    def centripetal(self):
        return np.cross(self.rate, np.cross(self.rate, self.joint))


ONE = Body('one', 1.0, np.diag([0.1, 0.2, 0.3]), np.array([0.5, 0, 0]), np.array([0.1, 0.2, 1.0]))
TWO = Body(
    'two', 2.0, np.diag([0.4, 0.3, 0.2]), np.array([-0.4, 0.1, 0]), np.array([-0.3, 0.5, 0.2])
)
FALL = np.array([0.0, -9.8, 0.0])
ACCELERATIONS = (
    0.4059308, -9.80346367, 0.01586902, -0.2, 0.06032746, -0.01243945,
    -0.2029654, -9.79826817, -0.00793451, 0.02103275, 0.01884131, 0.12103806,
)  # fmt: skip
"""C3: p̈ and ω̇ of both bodies."""
FORCE = (0.4059308, -0.00346367, 0.01586902)


def two_bodies(stabilisation, model='ncp', time_step=1e-6):
    """Return the simulator of C3: two free bodies whose points coincide, and its velocity."""
    model_of_both = pin.Model()
    for body in (ONE, TWO):
        joint = model_of_both.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), body.name)
        inertia = pin.Inertia(body.mass, np.zeros(3), body.inertia)
        model_of_both.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        model_of_both.addBodyFrame(body.name, joint, pin.SE3.Identity(), 0)
    robot = RobotModel.from_pinocchio(model_of_both, actuated_joints=(), name='two_bodies')
    sim = Simulator(robot, model, time_step=time_step, gravity=FALL)
    level = [0.0, 0.0, 0.0, 1.0]
    second = np.cross(ONE.rate, ONE.joint) - np.cross(TWO.rate, TWO.joint)
    sim.reset(
        np.r_[0.0, 0.0, 5.0, level, ONE.joint - TWO.joint + [0.0, 0.0, 5.0], level],
        np.r_[np.zeros(3), ONE.rate, second, TWO.rate],
    )
    sim.add_constraint(
        LoopClosure(
            'one', 'two', tuple(ONE.joint), tuple(TWO.joint), stabilisation=stabilisation,
            name='ball joint',
        )
    )  # fmt: skip
    return sim


def body_accelerations(report):
    """Return p̈ and ω̇ of both bodies: Pinocchio's, with the rate of the axes added."""
    found = report.acceleration.copy()
    for k in (0, 6):
        found[k : k + 3] += np.cross(report.record.v_start[k + 3 : k + 6],
                                     report.record.v_start[k : k + 3])  # fmt: skip
    return found


def test_c3_two_bodies_and_a_ball_joint():
    """C3: accelerations and the force on body 1 of the simulator; Σ m p̈ = Σ m g."""
    report = two_bodies(Baumgarte(0.0)).step(NO_EFFORT)
    found = body_accelerations(report)
    assert found == pytest.approx(ACCELERATIONS, abs=2e-8)
    assert report.constraints['ball joint'].force == pytest.approx(FORCE, abs=1e-8)
    assert found[:3] + 2.0 * found[6:9] == pytest.approx(3.0 * FALL, abs=1e-9)


def test_c1_the_points_of_a_ball_joint_stay_together():
    """C1: P_1 − P_2 = 0 with its rate and its second rate, while both bodies tumble."""
    sim = two_bodies(Baumgarte(5.0), time_step=1e-4)
    for _ in range(100):
        report = sim.step(NO_EFFORT)
    state, record = report.constraints['ball joint'], report.record
    assert state.drift < 1e-6
    assert state.drift_rate < 1e-4
    points = []
    for k, body in ((0, ONE), (1, TWO)):
        q, v = record.q_start[7 * k : 7 * k + 7], record.v_start[6 * k : 6 * k + 6]
        R = pin.Quaternion(*q[[6, 3, 4, 5]]).matrix()
        a = R @ body_accelerations(report)[6 * k : 6 * k + 3]
        w, dw = R @ v[3:], R @ report.acceleration[6 * k + 3 : 6 * k + 6]
        r = R @ body.joint
        points.append(a + np.cross(dw, r) + np.cross(w, np.cross(w, r)))
    assert points[0] == pytest.approx(points[1], abs=1e-3)  # −2 α ḣ − α² h is left
    assert np.abs(points[0] - FALL).max() > 0.1


def test_c2_acceleration_of_a_point():
    """C2: P̈ = P̈_0 + ω̇ × r + ω × (ω × r), by differences of a tumbling body; not Ṗ, as printed."""
    h, r = 1e-3, TWO.joint
    sim = two_bodies(Baumgarte(0.0), Hybrid(max_substep=h), h)
    sim.remove_constraint('ball joint')
    places, velocities = [], []
    for _ in range(3):
        R = pin.Quaternion(*sim.q[[13, 10, 11, 12]]).matrix()
        places.append(sim.q[7:10] + R @ r)
        velocities.append((R @ sim.v[6:9], R @ sim.v[9:12], R))
        sim.step(NO_EFFORT)
    w, R = velocities[1][1:]
    spin = (velocities[2][1] - velocities[0][1]) / (2.0 * h)
    base = (velocities[2][0] - velocities[0][0]) / (2.0 * h)
    expected = base + np.cross(spin, R @ r) + np.cross(w, np.cross(w, R @ r))
    found = (places[2] - 2.0 * places[1] + places[0]) / h**2
    assert found == pytest.approx(expected, abs=1e-6)
    assert base == pytest.approx(FALL, abs=1e-6)
    rate = (places[2] - places[0]) / (2.0 * h)
    assert np.abs(rate - expected).max() > 1.0


def system_of_c3(first, second):
    """Return the matrix of C3 with `first`, `second` before ω̇_1 and ω̇_2 in its last row."""
    one, none = np.eye(3), np.zeros((3, 3))
    return np.block([
        [ONE.mass * one, none, none, none, -one],
        [none, ONE.inertia, none, none, -pin.skew(ONE.joint)],
        [none, none, TWO.mass * one, none, one],
        [none, none, none, TWO.inertia, pin.skew(TWO.joint)],
        [one, first, -one, second, none],
    ])  # fmt: skip


def opening(x):
    """Return P̈_1 − P̈_2 at the accelerations x of both bodies."""
    first = x[:3] + np.cross(x[3:6], ONE.joint) + ONE.centripetal
    return first - (x[6:9] + np.cross(x[9:12], TWO.joint) + TWO.centripetal)


def test_c3_the_rows_as_printed_open_the_joint():
    """C3: [I, −r̃_1, −I, r̃_2] and its right side; ω̃ for r̃ or the other sign open the joint."""
    right = np.concatenate([
        ONE.mass * FALL, ONE.gyroscopic, TWO.mass * FALL, TWO.gyroscopic,
        TWO.centripetal - ONE.centripetal,
    ])  # fmt: skip
    r1, r2 = pin.skew(ONE.joint), pin.skew(TWO.joint)
    x = np.linalg.solve(system_of_c3(-r1, r2), right)
    assert x[:12] == pytest.approx(ACCELERATIONS, abs=1e-8)
    assert x[12:] == pytest.approx(FORCE, abs=1e-8)
    assert opening(x) == pytest.approx(np.zeros(3), abs=1e-12)
    w1, w2 = pin.skew(ONE.rate), pin.skew(TWO.rate)
    for printed in (system_of_c3(-w1, w2), system_of_c3(-r1, -r2), system_of_c3(r1, r2)):
        assert np.abs(opening(np.linalg.solve(printed, right))).max() > 0.01
    flipped = right * np.r_[np.ones(12), -np.ones(3)]
    assert np.abs(opening(np.linalg.solve(system_of_c3(-r1, r2), flipped))).max() > 0.1


def test_c4_the_multiplier_is_minus_the_force():
    """C4: M q̈ + Jᵀ F = F_ext, J q̈ = c gives −F on body 1; taken as +F it opens the joint."""
    sim = two_bodies(Baumgarte(0.0))
    report = sim.step(NO_EFFORT)
    M, J = report.problem.inertia, report.record.bilateral_jacobian
    external = M @ (report.acceleration - np.linalg.solve(M, J.T @ np.array(FORCE)))
    right = np.concatenate([external, J @ report.acceleration])
    x = np.linalg.solve(np.block([[M, J.T], [J, np.zeros((3, 3))]]), right)
    assert -x[12:] == pytest.approx(report.constraints['ball joint'].force, abs=1e-7)
    assert -x[12:] == pytest.approx(FORCE, abs=1e-7)
    wrong = np.linalg.solve(M, external + J.T @ x[12:])
    assert np.abs(J @ (wrong - report.acceleration)).max() > 0.5


@pytest.mark.parametrize(
    ('gains', 'error'), [({'alpha': 0.0}, 0.05126847), ({'kp': 100.0, 'kd': 20.0}, 0.00124113)]
)
def test_c6_radius_of_a_bead_on_a_circle(gains, error):
    """C6: explicit Euler with the simulator's accelerations, h = 0.01, after 10 s."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelTranslation(), pin.SE3.Identity(), 'bead')
    model.appendBodyToJoint(joint, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    robot = RobotModel.from_pinocchio(model, actuated_joints=(), name='bead')
    sim = Simulator(robot, time_step=0.01, gravity=0.0)
    q, v = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    sim.reset(q, v)
    sim.add_constraint(
        Holonomic(
            lambda q: np.array([0.5 * (q @ q - 1.0)]), lambda q: q[None, :].copy(), 1,
            stabilisation=Baumgarte(**gains),
        )
    )  # fmt: skip
    for _ in range(1000):
        sim.reset(q, v)
        acceleration = sim.step(NO_EFFORT).acceleration
        q, v = q + 0.01 * v, v + 0.01 * acceleration
    assert np.linalg.norm(q) - 1.0 == pytest.approx(error, abs=1e-8)


def test_c7_reduced_chain_from_rest():
    """C7: five rods, pinned and horizontal: accelerations of the links and force of the pin."""
    sim = Simulator(chain(5), time_step=1e-4)
    sim.reset(np.zeros(5), np.zeros(5))
    report = sim.step(np.zeros(5))
    angles = np.cumsum(report.acceleration)  # joints are relative to the link before
    expected = [-12.43864641, 3.33323204, -0.89428177, 0.24389503, -0.08129834]
    assert angles == pytest.approx(expected, abs=5e-9)
    momentum = centroidal_momentum(
        sim.robot.pinocchio_model, np.zeros(5), 1e-4 * report.acceleration
    )
    pin_force = momentum[:3] / 1e-4 + 5.0 * np.array([0.0, 0.0, 9.81])
    assert pin_force[[0, 2]] == pytest.approx([0.0, 2.83189227], abs=5e-8)


# ------------------------------------------------------------------ misprints of T5 and T6

Q, V, EFFORT = np.array([0.3, -0.7]), np.array([1.1, -0.4]), np.array([0.5, -0.2])


def held_tip(stabilisation):
    """Return M, v̇ without and with the tip of T2's pendulum held, H, Ḣ v and the force."""
    sim = Simulator(double_pendulum(), time_step=1e-4)
    sim.reset(Q, V)
    free = sim.step(EFFORT).acceleration.copy()
    sim.reset(Q, V)
    sim.add_constraint(PointAnchor('tip', stabilisation=stabilisation, name='tip'))
    report = sim.step(EFFORT)
    x_and_z = [0, 2]
    H = report.record.bilateral_jacobian[x_and_z].copy()
    model = sim.robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, Q, V, np.zeros(2))
    pin.updateFramePlacements(model, data)
    tip = model.getFrameId('tip')
    drift = pin.getFrameClassicalAcceleration(model, data, tip, pin.LOCAL_WORLD_ALIGNED).linear
    force = report.constraints['tip'].force[x_and_z]
    return report.problem.inertia, free, report.acceleration, H, drift[x_and_z], force


def test_t5_the_dual_as_printed_pushes_the_wrong_way():
    """T5: the minimum of ½ λᵀ A λ − λᵀ ḧ is −λ, which doubles the error it should take away."""
    M, free, held, H, drift, force = held_tip(Baumgarte(0.0))
    error = H @ free + drift
    printed = np.linalg.solve(H @ np.linalg.solve(M, H.T), error)
    assert printed == pytest.approx(-force, abs=1e-6)
    assert H @ held + drift == pytest.approx([0.0, 0.0], abs=1e-9)
    moved = free + np.linalg.solve(M, H.T @ printed)
    assert H @ moved + drift == pytest.approx(2.0 * error, abs=1e-6)
    assert np.abs(error).max() > 1.0


def test_t6_without_the_transpose_the_speed_is_not_reached():
    """T6: W M⁻¹ Wᵀ gives ḣ_v = −α h_v; W M⁻¹ W, as printed, does not."""
    alpha = 3.0
    M, free, held, W, drift, force = held_tip(Baumgarte(kp=0.0, kd=alpha))
    error = W @ free + drift + alpha * W @ V
    right = -np.linalg.solve(W @ np.linalg.solve(M, W.T), error)
    assert force == pytest.approx(right, abs=1e-6)
    assert W @ held + drift == pytest.approx(-alpha * W @ V, abs=1e-9)
    printed = -np.linalg.solve(W @ np.linalg.solve(M, W), error)
    moved = free + np.linalg.solve(M, W.T @ printed)
    assert np.abs(W @ moved + drift + alpha * W @ V).max() > 1.0
