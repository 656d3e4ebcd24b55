"""The package's own controllers under the test kit: same bits in every run, no falls."""

import numpy as np
import pytest

from contact_sim import load_robot
from contact_sim.control._stance import Stance
from contact_sim.control._trot import Trot
from contact_sim.replay import Recording

GO1 = load_robot('go1')


def trotting(robot=GO1):
    controller = Trot(robot)
    controller.velocity = [0.3, 0.0, 0.1]
    return controller


def test_equal_states_get_equal_efforts():
    """To the bit, wherever memory happens to lie: a QP solver alone does not keep that."""
    rng, q = np.random.default_rng(0), GO1.reference_configuration()
    states = [0.3 * rng.standard_normal(GO1.nv) for _ in range(12)]
    runs, litter = set(), []
    for size in rng.integers(1, 999, 12):
        litter.append(np.zeros(size))
        controller = trotting()
        efforts = [controller.effort(0.02 * k, q, v) for k, v in enumerate(states)]
        runs.add(np.array(efforts).tobytes())
    assert len(runs) == 1


@pytest.mark.parametrize('model', ['ncp', 'sap'])
def test_the_trot_is_pushed_and_goes_on_the_same_in_every_run(trial, model):
    digests = set()
    for _ in range(2):
        run = trial(trotting(), robot=GO1, contact_model=model, control_steps=2)
        run.advance(1.2)
        run.push('trunk', force=(0.0, 20.0, 0.0), seconds=0.1)
        run.advance(0.8)
        run.close()
        digests.add(Recording(run.recording).digest)
    assert len(digests) == 1
    track = run.trajectory
    track.assert_never_fell(height=0.8, tilt=0.3)
    track.assert_torque_within(1.0)
    assert track.q[-1, 0] > 0.2  # it did walk


def test_the_stance_stands_a_push_without_a_slip(trial):
    run = trial(Stance(GO1), robot=GO1, control_steps=2)
    run.advance(0.5)
    run.push('trunk', force=(10.0, 15.0, 0.0), seconds=0.1)
    run.advance(1.5)
    track = run.trajectory
    track.assert_never_fell(height=0.9, tilt=0.1)
    track.assert_no_slip(over=1e-4)
    track.assert_forces_inside_cone()
    track.assert_torque_within(1.0)
    track.assert_settled_by(1.5)
