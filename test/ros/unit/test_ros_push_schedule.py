"""Pushes: which wrench acts when, in which axes, and what is refused; no network."""

import math
import re

import pinocchio as pin
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.errors import ContactSimError
from contact_sim.ros._commands import MAX_PUSHES, Pushes
from contact_sim.ros._parameters import PushParameters

SECOND = 1_000_000_000
STEP = SECOND // 1000
ROBOT = load_robot('go1')
FORCE, TORQUE = (10.0, 20.0, 30.0), (1.0, 2.0, 3.0)


@pytest.fixture
def sim():
    sim = Simulator(ROBOT)
    q = ROBOT.reference_configuration().copy()
    q[:7] = 0.0, 0.0, 1.0, *pin.Quaternion(pin.rpy.rpyToMatrix(0.3, -0.2, 1.1)).coeffs()
    sim.reset(q, time=1.0)
    return sim


def pushes_of(sim, **parameters):
    pushes = Pushes(sim, 'dog/', ('odom', 'world'))
    pushes.rules = PushParameters(**parameters)
    return pushes


def test_a_push_acts_for_its_duration_from_the_next_step_on(sim):
    pushes = pushes_of(sim, duration=0.003, axes='world')
    assert pushes.take('dog/FL_foot', 0, FORCE, TORQUE) is None
    acting = [pushes.acting(SECOND + k * STEP) for k in range(-1, 5)]
    assert [list(wrenches) for wrenches in acting] == [[], *[['FL_foot']] * 3, [], []]
    assert acting[1]['FL_foot'].tolist() == [*FORCE, *TORQUE]


def test_a_push_waits_for_its_stamp(sim):
    pushes = pushes_of(sim, duration=0.002)
    pushes.take('dog/base', SECOND + 3 * STEP, FORCE, TORQUE)
    assert [bool(pushes.acting(SECOND + k * STEP)) for k in range(6)] == [
        False, False, False, True, True, False,
    ]  # fmt: skip


def test_axes_are_those_of_the_link_unless_the_world_is_asked_for(sim):
    pushes = pushes_of(sim)
    pushes.take('dog/base', 0, FORCE, TORQUE)
    rotation = sim.frame_placement('base').rotation
    wrench = pushes.acting(SECOND)['base']
    assert wrench == pytest.approx([*(rotation @ FORCE), *(rotation @ TORQUE)], abs=1e-12)


def test_a_later_push_replaces_an_earlier_one_on_the_same_link_only(sim):
    pushes = pushes_of(sim, duration=0.0, axes='world')
    pushes.take('dog/base', 0, FORCE, TORQUE)
    pushes.take('dog/FL_foot', 0, FORCE, TORQUE)
    assert set(pushes.acting(SECOND)) == {'base', 'FL_foot'}
    pushes.take('dog/base', 0, TORQUE, FORCE)
    assert pushes.acting(100 * SECOND)['base'].tolist() == [*TORQUE, *FORCE]
    assert pushes.acting(200 * SECOND)['FL_foot'].tolist() == [*FORCE, *TORQUE]
    pushes.take('dog/base', 0, (0.0,) * 3, (0.0,) * 3)  # how a push without end is ended
    assert set(pushes.acting(300 * SECOND)) == {'FL_foot'}
    pushes.clear()
    assert pushes.acting(300 * SECOND) == {}


@pytest.mark.parametrize(
    ('frame', 'force', 'reason'),
    [
        ('', FORCE, "''.*known: (.*, )?base,"),
        ('dog/tail', FORCE, "link in external_wrench 'dog/tail'"),
        ('world', FORCE, "'world': header.frame_id has to name a link"),
        ('dog/base', (math.nan, 0.0, 0.0), 'finite numbers'),
        ('dog/base', (0.0, math.inf, 0.0), 'finite numbers'),
        ('dog/base', (0.0, 0.0, -1e7), 'at most 1e.06'),
    ],
)
def test_a_push_with_anything_wrong_is_refused_as_a_whole(sim, frame, force, reason):
    pushes = pushes_of(sim)
    assert re.search(reason, pushes.take(frame, 0, force, TORQUE))
    assert (pushes.accepted, pushes.refused) == (0, 1)
    assert pushes.acting(SECOND) == {}


def test_a_flood_of_pushes_is_bounded(sim):
    pushes = pushes_of(sim, duration=0.0)
    answers = [pushes.take('dog/base', 0, FORCE, TORQUE) for _ in range(MAX_PUSHES + 10)]
    assert answers.count(None) == MAX_PUSHES
    pushes.acting(SECOND)  # only the last one is left
    assert pushes.take('dog/base', 0, FORCE, TORQUE) is None


def test_a_push_of_the_page_has_world_axes_and_a_duration_of_its_own(sim):
    pushes = pushes_of(sim, duration=1.0, axes='link')
    pushes.push('base', FORCE, TORQUE, 0.003)
    acting = [pushes.acting(SECOND + k * STEP) for k in range(5)]
    assert [list(wrenches) for wrenches in acting] == [*[['base']] * 3, [], []]
    assert acting[0]['base'].tolist() == [*FORCE, *TORQUE]
    for wrong in ({'frame': 'odom'}, {'force': (math.nan, 0.0, 0.0)}, {'duration': 0.0}):
        given = {'frame': 'base', 'force': FORCE, 'torque': TORQUE, 'duration': 0.1} | wrong
        with pytest.raises(ContactSimError):
            pushes.push(**given)
    assert (pushes.accepted, pushes.refused) == (0, 0)  # these count messages


def test_a_link_is_drawn_towards_a_point_until_it_is_let_go(sim):
    """The spring is at rest where the link is, and pulls along the way to the point."""
    pushes = pushes_of(sim)
    place = sim.frame_placement('base').translation
    pushes.drag('base', place)
    assert pushes.acting(SECOND)['base'] == pytest.approx([0.0] * 6, abs=1e-9)
    pushes.drag('base', place + [0.0, 0.1, 0.0])
    pull = pushes.acting(SECOND)['base']
    assert pull[1] > 1.0
    assert pull[[0, 2, 3, 4, 5]] == pytest.approx([0.0] * 5, abs=1e-9)
    pushes.push('base', FORCE, TORQUE, 0.003)
    assert pushes.acting(SECOND)['base'] == pytest.approx(pull + [*FORCE, *TORQUE], abs=1e-9)
    pushes.drag('base', None)
    assert pushes.acting(SECOND)['base'].tolist() == [*FORCE, *TORQUE]
    pushes.drag('base', place)
    pushes.clear()
    assert pushes.acting(SECOND) == {}
    with pytest.raises(ContactSimError, match='nose'):
        pushes.drag('nose', place)
