"""Two pendulums of which one follows the other by a <mimic>: the motion of one coordinate."""

import numpy as np
import pytest
from urdf_texts import joint, link, robot

from contact_sim import Simulator, contact_models, load_robot

RATIO, OFFSET = -2.0, 0.1
INERTIA = 0.02 + 1.0 * 0.1**2  # of each link about its joint [kg m²]
WEIGHT = 9.81 * 1.0 * 0.1  # largest torque of gravity about it [N m]
REFLECTED = INERTIA * (1.0 + RATIO**2)
PENDULUMS = robot(
    link('base'), link('a'), link('b'), joint('left', 'base', 'a'),
    joint('right', 'base', 'b',
          more=f'<mimic joint="left" multiplier="{RATIO}" offset="{OFFSET}"/>'),
)  # fmt: skip
H = 1e-3


def both(angle):
    return np.array([angle, RATIO * angle + OFFSET])


def expected(angle, effort, torque):
    """Return q̈ of the leader under an effort of its own and a torque on the follower's link."""
    gravity = -WEIGHT * np.sin(both(angle))
    return (effort + gravity[0] + RATIO * (gravity[1] + torque)) / REFLECTED


@pytest.mark.parametrize('name', contact_models())
def test_inertia_weight_and_force_of_the_follower_are_reflected(name):
    sim = Simulator(load_robot(PENDULUMS, floating_base=False), name, time_step=H)
    sim.reset(both(0.3))
    report = sim.step([0.4], {'b': np.array([0.0, 0.0, 0.0, 0.0, 0.25, 0.0])})
    acceleration = expected(0.3, 0.4, 0.25)
    close = {'rel': 1e-4 if name == 'hybrid' else 1e-9}  # it goes along an arc
    assert report.acceleration == pytest.approx([acceleration, RATIO * acceleration], **close)
    force = INERTIA * RATIO * acceleration + WEIGHT * np.sin(both(0.3)[1]) - 0.25
    assert report.constraints['right (mimic)'].force == pytest.approx([force], **close)


@pytest.mark.parametrize('name', contact_models())
def test_the_offset_is_held_while_they_swing(name):
    """They swing for 2 s as the single coordinate does, by Runge and Kutta; O(h) for most."""
    sim = Simulator(load_robot(PENDULUMS, floating_base=False), name, time_step=H)
    sim.reset(both(0.2))
    angle, speed, drift = 0.2, 0.0, 0.0
    for _ in range(1000):
        report = sim.step([0.05])
        k1 = speed, expected(angle, 0.05, 0.0)
        k2 = speed + H / 2 * k1[1], expected(angle + H / 2 * k1[0], 0.05, 0.0)
        k3 = speed + H / 2 * k2[1], expected(angle + H / 2 * k2[0], 0.05, 0.0)
        k4 = speed + H * k3[1], expected(angle + H * k3[0], 0.05, 0.0)
        angle += H / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
        speed += H / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
        drift = max(drift, abs(report.q[1] - RATIO * report.q[0] - OFFSET))
    assert drift < 1e-12
    assert report.q[0] == pytest.approx(angle, abs=1e-8 if name == 'hybrid' else 2e-3)
    assert abs(angle - 0.2) > 0.02
