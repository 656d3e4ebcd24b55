"""todorov without parameters is MuJoCo without parameters: step by step, and running free.

MuJoCo gets the robot, friction and time step; its solver is told to be exact, nothing else.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from contact_sim import Simulator, Todorov, load_robot

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'benchmarks'))
mujoco = pytest.importorskip('mujoco', reason='the peer MuJoCo is not installed')
from motions import MOTIONS  # noqa: E402
from mujoco_peer import MujocoPeer  # noqa: E402

FRICTION, TIME_STEP, STEPS = 0.8, 1e-3, 500
TOLERANCE = 1e-8
"""Largest difference over the largest velocity, and over the largest force."""
ROBOTS = ('go1', 'anymal_b')


class Twin:
    """The same robot here and in MuJoCo, which solves to the last digit."""

    def __init__(self, name, model, friction=FRICTION):
        # as the peer has it: feet only, no limits of velocity
        robot = load_robot(name, body_contacts=False).with_actuators(velocity_limit=np.inf)
        self.robot = robot
        self.sim = Simulator(robot, model, friction=friction, time_step=TIME_STEP)
        self.peer = MujocoPeer(robot, friction, TIME_STEP)
        self.model, self.data = self.peer.model, self.peer.data
        options = self.model.opt
        options.iterations, options.ls_iterations = 50, 50
        options.tolerance, options.ls_tolerance = 0.0, 1e-14

    def start(self, height=-1e-6, velocity=(0.0, 0.0, 0.0)):
        """Start both from the standing configuration, lifted and with a velocity of the base.

        Not at height 0, where rounding decides whether a foot touches.
        """
        q, v = self.sim.standing_configuration().copy(), np.zeros(self.robot.nv)
        q[2] += height
        v[:3] = velocity
        self.sim.reset(q, v)
        self.peer.reset(q, self.robot.joint_positions(q))
        self.data.qvel[:3] = velocity

    def peer_step(self, effort):
        """Step MuJoCo under `effort`; return v⁺ and the contact forces by foot, in world axes."""
        before = self.sim.last_report.record.position_start[: self.sim.sizes.n_ground]
        self.peer.set_effort(effort)
        self.peer.step()
        return self.peer.state(self.robot)[1], self.forces(before)

    def forces(self, position):
        """Contact forces of MuJoCo in world axes, by the nearest of our contacts, (feet, 3)."""
        found, wrench = np.zeros((len(position), 3)), np.zeros(6)
        for k in range(self.data.ncon):
            mujoco.mj_contactForce(self.model, self.data, k, wrench)
            contact = self.data.contact[k]
            floor_first = self.model.geom_type[contact.geom1] == mujoco.mjtGeom.mjGEOM_PLANE
            foot = np.argmin(np.linalg.norm(position - contact.pos, axis=1))
            sign = 1.0 if floor_first else -1.0
            found[foot] += sign * contact.frame.reshape(3, 3).T @ wrench[:3]
        return found


def largest_difference(report, v, forces):
    """Return the largest difference of v⁺ and of the forces over their sizes (force: ≥ 1 N)."""
    speed = np.abs(report.v - v).max() / np.abs(v).max()
    force = np.abs(report.contacts.force - forces).max() / max(np.abs(forces).max(), 1.0)
    return max(speed, force)


def compare_steps(twin, effort, steps=STEPS):
    """Compare `steps` steps, each from MuJoCo's state; return those with load on the feet."""
    loaded = 0
    for k in range(steps):
        q, v = twin.peer.state(twin.robot)
        twin.sim.reset(q, v)
        report = twin.sim.step(effort(k * TIME_STEP, q, v))
        v_next, forces = twin.peer_step(report.effort)
        assert largest_difference(report, v_next, forces) <= TOLERANCE, k
        loaded += np.abs(forces).max() > 0.0
    return loaded


@pytest.mark.parametrize('motion', ['stand', 'trot'])
@pytest.mark.parametrize('name', ROBOTS)
def test_every_step_equals_mujoco_under_its_defaults(name, motion):
    twin = Twin(name, 'todorov')
    twin.start()
    assert compare_steps(twin, MOTIONS[motion](twin.robot).effort) > 0.9 * STEPS


def limp(robot):
    """Standing gains so low that a robot that lands sinks in, turns and slides."""
    stand = MOTIONS['stand'](robot)
    stand.kp, stand.kd = 0.3 * np.asarray(stand.kp), 0.3 * np.asarray(stand.kd)
    return stand.effort


@pytest.mark.parametrize('friction', [0.0, 0.2, FRICTION])
@pytest.mark.parametrize('name', ROBOTS)
def test_every_step_of_a_drop_equals_mujoco_under_its_defaults(name, friction):
    twin = Twin(name, 'todorov', friction)
    twin.start(0.02, (0.4, 0.2, -0.5))
    assert compare_steps(twin, limp(twin.robot)) > STEPS // 3


@pytest.mark.parametrize('name', ROBOTS)
def test_every_step_of_a_drop_equals_mujoco_with_the_elliptic_cone(name):
    twin = Twin(name, Todorov(cone='elliptic', tolerance=1e-14))
    twin.model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    twin.start(0.02, (0.4, 0.2, -0.5))
    assert compare_steps(twin, limp(twin.robot)) > STEPS // 3


@pytest.mark.parametrize('start', [(-1e-6, (0.0, 0.0, 0.0)), (0.02, (0.4, 0.2, -0.5))])
@pytest.mark.parametrize('motion', ['stand', 'trot'])
@pytest.mark.parametrize('name', ROBOTS)
def test_it_stays_with_mujoco_running_free(name, motion, start):
    twin = Twin(name, 'todorov')
    twin.start(*start)
    ours, theirs = MOTIONS[motion](twin.robot), MOTIONS[motion](twin.robot)
    for k in range(STEPS):
        report = twin.sim.step(ours.effort(k * TIME_STEP, twin.sim.q, twin.sim.v))
        q, v = twin.peer.state(twin.robot)
        effort = np.clip(
            theirs.effort(k * TIME_STEP, q, v), -twin.robot.effort_limit, twin.robot.effort_limit
        )
        assert largest_difference(report, *twin.peer_step(effort)) <= TOLERANCE, k


def test_stiffness_and_damping_in_solref_are_a_time_and_a_ratio():
    """Negative solref, −k and −b: τ = 2/b, ζ = b/(2 √k), never clamped (refsafe)."""
    k, b, solimp = 4e4, 1.5e3, (0.8, 0.97, 0.002, 0.4, 3.0)  # τ = 1.33 ms < 2 h
    names = 'start', 'end', 'width', 'midpoint', 'power'
    model = Todorov(
        time_constant=2.0 / b, damping_ratio=b / (2.0 * np.sqrt(k)), refsafe=False,
        **{f'impedance_{name}': value for name, value in zip(names, solimp, strict=True)},
    )  # fmt: skip
    twin = Twin('go1', model)
    theirs = twin.model
    for solref in (theirs.geom_solref, theirs.jnt_solref, theirs.dof_solref):
        solref[:] = -k, -b
    for impedance in (theirs.geom_solimp, theirs.jnt_solimp, theirs.dof_solimp):
        impedance[:] = solimp
    twin.start(0.005, (0.1, 0.0, -0.3))
    assert compare_steps(twin, limp(twin.robot), 200) > 100
