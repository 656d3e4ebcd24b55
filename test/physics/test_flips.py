"""Where the nearest face of a block changes under a contact that is deep in it (theory T11)."""

import numpy as np
import pytest
from robots import ball, point_mass, pose

from contact_sim import Planes, Simulator, SphereGround, contact_models
from contact_sim.terrain import HeightField, boxes

BLOCK = boxes([[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]])
DEPTH = 0.1
"""Of the point below the top; it is 5 mm farther from the side."""


@pytest.mark.parametrize('model', contact_models())
def test_a_normal_that_flips_inside_a_block_is_reported_and_forces_stay_finite(model):
    """T11: a point crosses the medial axis: below the top before, behind the side after a step."""
    sim = Simulator(point_mass(1.0), model, BLOCK, friction=0.0, gravity=0.0)
    sim.reset([1.0 - DEPTH - 0.005, 0.5, 1.0 - DEPTH], [60.0, 0.0, 0.0])
    turns, reports = [], []
    for _ in range(20):
        reports.append(sim.step([]))
        turns.append(reports[-1].contacts.turn.max())
        numbers = [reports[-1].q, reports[-1].v, reports[-1].contacts.force]
        assert all(np.isfinite(values).all() for values in numbers)
    if model == 'null_space':  # holds the point where it is
        assert max(turns) == 0.0
        return
    assert turns[0] == pytest.approx(np.pi / 2)
    first, second = (report.record for report in reports[:2])
    assert first.frame_start[0, 2] == pytest.approx([0.0, 0.0, 1.0])
    assert second.frame_start[0, 2] == pytest.approx([1.0, 0.0, 0.0])
    assert first.feature_start[0] != second.feature_start[0]
    largest = max(np.abs(report.contacts.force).max() for report in reports)
    assert largest < 1e6  # taking 0.1 m out in a step of 1 ms would take 1e5 N


def test_normals_that_do_not_flip_do_not_turn():
    flat = HeightField(np.zeros((31, 31)), 0.1, (-1.0, -1.0))
    sim = Simulator(ball(), terrain=flat.as_mesh())
    sim.reset(pose(z=0.1), [1.0, 0.3, 0.0, 0.0, 0.0, 0.0])
    assert max(sim.step([]).contacts.turn.max() for _ in range(300)) < 1e-7
    sim.reset(pose(z=0.15), terrain=Planes())  # two normals at once
    assert max(sim.step([]).contacts.turn.max() for _ in range(300)) < 1e-7


def test_a_ball_that_rolls_over_a_hill_turns_its_normal_as_it_goes():
    sim = Simulator(ball(radius=0.1), terrain=SphereGround((0.0, 0.0, -1.0), 1.0), gravity=30.0)
    sim.reset(pose(z=0.1), [0.5, 0.0, 0.0, 0.0, 5.0, 0.0])
    turn = sum(sim.step([]).contacts.turn[0] for _ in range(100))
    assert turn == pytest.approx(np.arctan2(sim.q[0], sim.q[2] + 1.0), rel=1e-3)


def test_a_contact_that_has_left_the_ground_does_not_turn():
    sim = Simulator(ball(), terrain=BLOCK, gravity=0.0)
    sim.reset([0.5, 0.5, 3.02, 0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 100.0, 0.0, 0.0, 0.0])
    assert [sim.step([]).contacts.turn.max() for _ in range(3)] == [0.0] * 3
