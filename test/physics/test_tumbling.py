"""How deep a tumbling body may end a step: what a turn takes its corners off their tangents."""

import numpy as np
import pinocchio as pin
from robots import cube, pose

from contact_sim import Simulator

RADIUS = 0.1 * np.sqrt(3.0)
"""Distance of the corners from the origin that the cube turns about [m]."""


def thrown(seed, h):
    rng = np.random.default_rng(seed)
    sim = Simulator(cube(), friction=0.6, time_step=h)
    q = pose(z=0.4)
    q[3:] = pin.Quaternion(pin.exp3(rng.standard_normal(3))).coeffs()
    sim.reset(q, rng.standard_normal(6) * [2, 2, 2, 4, 4, 4])
    return sim


def tumble(seed, h):
    """Return per step: gaps at the end, those linear in h, and ½ |h ω|² r [m]."""
    sim, ends, linear, turns = thrown(seed, h), [], [], []
    for _ in range(round(1.0 / h)):
        report = sim.step(np.zeros(0))
        record = report.record
        ends.append(report.contacts.gap.copy())
        linear.append(record.gap_start + h * record.u_next[2::3])
        turns.append(0.5 * RADIUS * h**2 * record.v_next[3:6] @ record.v_next[3:6])
    return np.array(ends), np.array(linear), np.array(turns)


def test_a_corner_ends_a_step_where_its_tangent_says_but_for_the_turn():
    # theory 2.0: φ(q⁺) = φ + h u_n + ½ h² n·(ω × (ω × r)) + …; |exp(θ) r − r − θ × r| ≤ ½ |θ|² r
    for seed in range(4):
        ends, linear, turns = tumble(seed, 1e-3)
        off = np.abs(ends - linear).max(axis=1)
        assert (off <= turns + 1e-12).all()
        assert off.max() >= 0.3 * turns.max()


def test_a_tumbling_cube_is_as_deep_as_baumgarte_leaves_it_and_no_deeper():
    # each step adds at most d = ½ h² |ω|² r and takes out the share β: depth ≤ d/β, of order h²
    deepest = {}
    for h in (1e-3, 5e-4):
        depths = []
        for seed in range(4):
            ends, _, turns = tumble(seed, h)
            depths.append(max(-ends.min(), 0.0))
            assert depths[-1] <= turns.max() / thrown(seed, h).baumgarte
        deepest[h] = max(depths)
    assert deepest[1e-3] >= 5e-5
    assert 3.0 <= deepest[1e-3] / deepest[5e-4] <= 5.0
