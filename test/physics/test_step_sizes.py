"""Forces converge as h → 0 (4 to 0.25 ms): no spikes, and what is an impulse stays one."""

from functools import cache

import numpy as np
import pytest
from robots import StandingController

from contact_sim import Sap, Simulator, Todorov, contact_models, load_robot
from contact_sim.support import impulse_transfer, stance_dynamics

GRAVITY = 9.81
ROBOTS = ('go1', 'anymal_b', 'solo12', 'solo8')
STEPS = (4e-3, 1e-3, 0.25e-3)
WINDOW = STEPS[0]
DROP = 0.02
AS_TESTED = {
    'todorov': Todorov(cone='elliptic', diagonal='exact'),
    'sap': Sap(
        approximation='sap', stiffness=1e5, relaxation_time=0.02, weight='delassus',
        acts_ahead=True,
    ),
}  # fmt: skip
"""MuJoCo's own defaults are a little softer than what is asked for here; lagged friction is a step
late: at 4 ms a step changes 0.23 weights of anymal_b, a landing of solo12 misses 0.012 s.
"""
TOUCH_DOWN = np.sqrt(2 * DROP / GRAVITY)

pytestmark = pytest.mark.parametrize(
    ('model', 'name'),
    [(model, ROBOTS[i % len(ROBOTS)]) for i, model in enumerate(contact_models())],
)


@cache
def force(name, model, h, drop, duration):
    """Return the total contact force over the weight in every step, shape (steps, 3).

    The robot drops, or stands and is pushed: 15 % of its weight, which come and go smoothly.
    """
    robot = load_robot(name)
    sim = Simulator(robot, AS_TESTED.get(model, model), time_step=h)
    controller = StandingController(sim)
    controller.damping = controller.damping * 0.25  # explicit: stable at 4 ms
    q = sim.q.copy()
    q[2] += drop
    sim.reset(q)
    weight, base = robot.total_mass * GRAVITY, robot.pinocchio_model.names[1]
    forces = []
    for k in range(round(duration / h)):
        push = np.zeros(6)
        if drop == 0.0:
            push[0] = 0.15 * weight * np.sin(np.pi * (k + 0.5) * h / duration) ** 2
        forces.append(sim.step(controller(sim), {base: push}).contacts.force.sum(axis=0))
    return np.array(forces) / weight


def in_windows(forces, h):
    """Return the mean force over windows as long as the longest step, shape (windows, 3)."""
    return forces.reshape(-1, round(WINDOW / h), 3).mean(axis=1)


def standing(name, model, h):
    return force(name, model, h, 0.0, 0.2)


def landing(name, model, h):
    return force(name, model, h, DROP, 0.2)


def test_standing_forces_are_continuous(model, name):
    """What one step changes goes down with the step; a spike would stay, or grow as 1/h."""
    for h in STEPS:
        change = np.abs(np.diff(standing(name, model, h), axis=0)).max()
        # 1/h per second: the legs give way at first; 0.08: slips begin, soft contacts close
        assert change <= 0.08 + 30.0 * h


def test_standing_forces_converge(model, name):
    coarse, middle, fine = (in_windows(standing(name, model, h), h) for h in STEPS)
    error = np.abs(middle - fine).max()
    assert error <= 0.07
    assert error <= 0.6 * np.abs(coarse - fine).max()  # first order would give 0.2


def test_a_landing_has_one_impulse_and_no_spikes(model, name):
    """No step brings more than the plastic impact of all feet (E12) and forces of 4.2 weights."""
    robot = load_robot(name)
    sim, v = Simulator(robot, model), np.zeros(robot.nv)
    v[2] = -GRAVITY * TOUCH_DOWN
    impact = impulse_transfer(stance_dynamics(robot, sim.q, v, range(4))).impulse[2::3].sum()
    impact /= robot.total_mass * GRAVITY
    for h in STEPS:
        impulses = h * landing(name, model, h)[:, 2]
        assert impulses.max() <= impact + 4.2 * h
        later = round((TOUCH_DOWN + 0.01) / h)
        assert impulses[later:].max() <= 4.2 * h
    if model == 'hybrid':
        assert impulses.max() == pytest.approx(impact, abs=0.5 * h)  # that impact exactly


def test_the_impulse_of_a_landing_converges(model, name):
    """As a function of time, in s of weight: to what one step may bring, 4 h and the impact."""
    coarse, middle, fine = (
        WINDOW * np.cumsum(in_windows(landing(name, model, h), h), axis=0) for h in STEPS
    )
    assert fine[-1, 2] > 0.1
    error = np.abs(middle - fine).max()
    assert error <= 0.01
    assert error <= 0.3 * np.abs(coarse - fine).max() + 0.004
