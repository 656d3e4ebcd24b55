"""Where constraints hold that name no place: after resets, snapshots and changes of their own."""

import numpy as np
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.constraints import Baumgarte, FrameAnchor, JointLock, PointAnchor
from contact_sim.constraints._constraint_rows import constraint_from_dict, constraint_to_dict
from contact_sim.errors import InvalidInput
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.simulation._resuming import resume

STAND = FrameAnchor('trunk', name='stand')


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def lifted(sim, height):
    """Return the configuration at hand, higher."""
    q = sim.q.copy()
    q[2] += height
    return q


def stepped(sim, steps=5):
    for _ in range(steps):
        sim.step(np.zeros(sim.robot.n_joints))
    return sim.q


def test_a_reset_leaves_the_place_of_before(go1):
    """What was held a metre higher stands on the ground after a reset, and is held there."""
    sim = Simulator(go1)
    standing = sim.q
    sim.reset(lifted(sim, 1.0))
    sim.add_constraint(STAND)
    sim.reset()
    assert sim.q == pytest.approx(standing, abs=1e-12)
    assert sim.constraints[0].at[:3] == pytest.approx(standing[:3], abs=1e-12)


def test_a_place_that_is_named_stays_at_a_reset(go1):
    sim = Simulator(go1)
    at = tuple(lifted(sim, 0.5)[:7])
    sim.reset(lifted(sim, 0.5))
    sim.add_constraint(FrameAnchor('trunk', at))
    sim.reset()
    assert sim.q[:7] == pytest.approx(at, abs=1e-11)


def test_a_reset_that_is_refused_changes_nothing(go1):
    """One of two would hold elsewhere, the other cannot: the next step is as without."""
    sim = Simulator(go1)
    foot = PointAnchor('FL_foot', tuple(sim.frame_placement('FL_foot').translation))
    runs = []
    for refused in (False, True):
        sim = Simulator(go1, constraints=[STAND, foot])
        stepped(sim)
        if refused:
            before = sim.constraints, sim.snapshot().buffer.tobytes()
            with pytest.raises(InvalidInput, match='its error is 1 m'):
                sim.reset(lifted(sim, 1.0))
            assert (sim.constraints, sim.snapshot().buffer.tobytes()) == before
        runs.append(stepped(sim).tobytes())
    assert runs[0] == runs[1]


def test_assembling_a_pose_changes_nothing(go1):
    sim = Simulator(go1, constraints=[STAND])
    stepped(sim)
    before = sim.constraints, sim.snapshot().buffer.tobytes()
    higher = lifted(sim, 1.0)
    assert sim.assembled(higher) == pytest.approx(higher, abs=1e-12)
    assert (sim.constraints, sim.snapshot().buffer.tobytes()) == before


def test_another_law_of_the_same_constraint_is_taken_at_its_place(go1):
    sim = Simulator(go1, constraints=[JointLock('RL_calf_joint', name='knee')])
    place = sim.constraints[0].at
    soft = Baumgarte(5.0)
    sim.constraints = [JointLock('RL_calf_joint', name='knee', stabilisation=soft)]
    assert sim.constraints[0].stabilisation == soft
    assert sim.constraints[0].at == place
    sim.constraints = [JointLock('FL_hip_joint', name='knee')]  # holds something else
    hip = go1.joint_positions(sim.q)[go1.joint_names.index('FL_hip_joint')]
    assert sim.constraints[0].at == pytest.approx(hip, abs=1e-12)


def test_a_recording_of_resets_with_constraints_is_repeated(go1, tmp_path):
    sim = Simulator(go1, constraints=[STAND])
    with Recorder(sim, tmp_path / 'run.npz'):
        stepped(sim)
        sim.reset(lifted(sim, 1.0))
        stepped(sim)
        sim.reset()
        stepped(sim)
    outcome = repeat(Recording(tmp_path / 'run.npz'))
    assert (outcome.steps, outcome.equal) == (15, True)


def test_an_attitude_said_again_has_the_same_bits():
    """What a recording tells is what held."""
    random = np.random.default_rng(0)
    for _ in range(500):
        quaternion = random.normal(size=4)
        unit = quaternion / np.linalg.norm(quaternion)
        once = FrameAnchor('trunk', (0.0, 0.0, 0.0, *unit * (1.0 + 1e-8)))
        assert np.linalg.norm(once.at[3:]) == pytest.approx(1.0, abs=1e-15)
        assert constraint_from_dict(constraint_to_dict(once)) == once


def test_going_back_keeps_the_constraints_of_now_where_they_held_then(go1):
    """The state of before comes back with the place it was held at, not with that of now."""
    sim = Simulator(go1, constraints=[STAND])
    stepped(sim)
    kept, expected = sim.snapshot(), stepped(sim).tobytes()
    sim.reset(lifted(sim, 1.0))
    sim.add_constraint(JointLock('RL_calf_joint', name='knee'))
    stepped(sim)
    resume(sim, kept, 3.0)
    assert [one.name for one in sim.constraints] == ['stand', 'knee']
    assert sim.constraints[0] == kept.constraints[0]
    sim.remove_constraint('knee')
    resume(sim, kept, 4.0)
    assert stepped(sim).tobytes() == expected
    sim.reset()
    assert [one.at for one in sim.given_constraints] == [None]


def test_a_state_in_which_constraints_do_not_hold_is_not_gone_back_to(go1):
    sim = Simulator(go1)
    kept = sim.snapshot()
    sim.reset(lifted(sim, 1.0))
    sim.add_constraint(FrameAnchor('trunk', tuple(sim.q[:7])))
    before = sim.q, sim.constraints
    with pytest.raises(InvalidInput, match='its error is 1 m'):
        resume(sim, kept, 3.0)
    assert np.array_equal(sim.q, before[0])
    assert sim.constraints == before[1]
