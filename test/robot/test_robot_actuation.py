"""Joint commands: the PD law with feed-forward."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contact_sim.errors import InvalidInput
from contact_sim.robot._actuators import JointCommand, holding

FIELDS = ('position', 'velocity', 'effort', 'stiffness', 'damping')
vectors = st.lists(st.floats(-10.0, 10.0), min_size=3, max_size=3).map(np.array)


# a loaded machine is no failure
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def command(**changes):
    values = {field: np.zeros(2) for field in FIELDS} | changes
    return JointCommand(**values)


def test_the_law():
    pd = command(
        position=[1.0, 2.0],
        velocity=[0.5, 0.0],
        effort=[3.0, -1.0],
        stiffness=[10.0, 20.0],
        damping=[2.0, 4.0],
    )
    # 3 + 10 (1 - 0.2) + 2 (0.5 - 0.1) and -1 + 20 (2 - 2.5) + 4 (0 + 0.25)
    effort = pd.effort_at(np.array([0.2, 2.5]), np.array([0.1, -0.25]))
    assert effort == pytest.approx([11.8, -10.0])


@patient
@given(vectors, vectors, vectors)
def test_no_effort_at_the_target(position, stiffness, damping):
    pd = holding(position, np.abs(stiffness), np.abs(damping))
    assert not pd.effort_at(position, np.zeros(3)).any()


@patient
@given(vectors, vectors, vectors)
def test_without_gains_only_the_feed_forward_acts(effort, position, velocity):
    zero = np.zeros(3)
    pd = JointCommand(zero, zero, effort, zero, zero)
    assert np.array_equal(pd.effort_at(position, velocity), effort)


def test_continuous_joints_take_the_short_way_round():
    pd = command(position=[3.0, 3.0], stiffness=[10.0, 10.0])
    effort = pd.effort_at(np.array([-3.0, -3.0]), np.zeros(2), np.array([True, False]))
    assert effort == pytest.approx([10 * (6.0 - 2 * np.pi), 60.0])


@patient
@given(st.floats(-10.0, 10.0), st.floats(-3.1, 3.1))
def test_the_short_way_is_at_most_half_a_turn(target, angle):
    pd = command(position=[target, 0.0], stiffness=[1.0, 0.0])
    effort = pd.effort_at(np.array([angle, 0.0]), np.zeros(2), np.array([True, False]))
    assert abs(effort[0]) <= np.pi + 1e-12
    assert np.cos(angle + effort[0]) == pytest.approx(np.cos(target), abs=1e-9)


def test_a_command_is_a_value():
    position = np.ones(2)
    pd = holding(position, np.ones(2), np.ones(2))
    position[:] = 5.0
    assert pd.position.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match='read-only'):
        pd.position[0] = 2.0


@pytest.mark.parametrize('field', FIELDS)
def test_values_have_to_be_finite_numbers_of_one_length(field):
    with pytest.raises(InvalidInput, match=f'JointCommand.{field}: entry 1 is nan, not finite'):
        command(**{field: [0.0, np.nan]})
    with pytest.raises(InvalidInput, match=f'JointCommand.{field} = .*: expected real numbers'):
        command(**{field: ['a', 'b']})
    if field != 'position':
        with pytest.raises(InvalidInput, match=rf'JointCommand.{field}: shape \(3,\), expected'):
            command(**{field: np.zeros(3)})


@pytest.mark.parametrize('field', ['stiffness', 'damping'])
def test_negative_gains(field):
    with pytest.raises(
        InvalidInput, match=rf'{field} = \[0.0, -1.0\]: expected gains of at least 0'
    ):
        command(**{field: [0.0, -1.0]})
