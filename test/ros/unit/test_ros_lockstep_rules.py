"""The rules of lockstep: which command acts when, whatever arrives when; no network."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contact_sim import load_robot
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.ros._commands import CommandBuffer
from contact_sim.ros._lockstep import SLICE, Lockstep, Verdict, owned_joints
from contact_sim.ros._parameters import ControllerParameters, LockstepParameters

SECOND = 1_000_000_000
STEP = SECOND // 1000
JOINTS = list(load_robot('go1').joint_names)
N = len(JOINTS)
FRONT = [name for name in JOINTS if name.startswith('F')]
HIND = [name for name in JOINTS if name.startswith('R')]


class Rig:
    """An buffer and its lockstep, as the loop and the callbacks of the node use them."""

    def __init__(self, owned=None, **parameters):
        self.buffer = CommandBuffer(JOINTS, np.zeros(N), np.full(N, 50.0), np.full(N, 2.0))
        self.said = []
        settings = {'lockstep': LockstepParameters(controllers=tuple(owned or ()))}
        for name, joints in (owned or {}).items():
            settings[f'lockstep.{name}'] = ControllerParameters(joints=tuple(joints))
        masks = owned_joints(settings, JOINTS)
        self.lockstep = Lockstep(self.buffer, JOINTS, masks, self.said.append)
        values = {'enabled': True, 'timeout': 0.05, **parameters}
        self.lockstep.configure(LockstepParameters(**values), 0)

    def command(self, stamp, effort, joints=JOINTS):
        return self.buffer.take_joint_state(joints, [], [], [effort] * len(joints), stamp)

    def verdict(self, now, tick=0):
        return self.lockstep.verdict(now, tick)

    def patiently(self, now):
        """Return the verdict once it is no longer to wait."""
        while (verdict := self.verdict(now)) is Verdict.WAIT:
            pass
        return verdict

    @property
    def effort(self):
        return self.buffer.current.effort.tolist()


def test_nothing_is_stepped_without_its_command():
    rig = Rig(timeout=10.0)
    begin = time.perf_counter()
    assert rig.verdict(5) is Verdict.WAIT
    assert 0.9 * SLICE < time.perf_counter() - begin < 1.0
    rig.command(4, 1.0)  # an older one will not do
    assert rig.verdict(5) is Verdict.WAIT
    assert rig.effort == [0.0] * N  # nor does it act
    rig.command(5, 2.0)
    assert rig.verdict(5) is Verdict.STEP
    assert rig.effort == [2.0] * N
    assert rig.lockstep.timeouts == 0


def test_a_command_ends_the_wait_at_once():
    rig = Rig(timeout=10.0)
    quickest = SLICE
    for now in range(1, 11):
        timer = threading.Timer(0.3 * SLICE, rig.command, (now, 1.0))
        timer.start()
        begin = time.perf_counter()
        assert rig.patiently(now) is Verdict.STEP
        quickest = min(quickest, time.perf_counter() - begin)
        timer.join()
    assert quickest < 0.8 * SLICE


def test_only_every_period_needs_a_command():
    rig = Rig(period=3, timeout=10.0)
    assert [rig.verdict(5, tick) for tick in range(4)] == [
        Verdict.WAIT, Verdict.STEP, Verdict.STEP, Verdict.WAIT,
    ]  # fmt: skip


def test_every_joint_of_every_controller_is_needed():
    rig = Rig({'front': FRONT, 'hind': HIND[:5]}, timeout=10.0)
    rig.command(5, 1.0, FRONT)
    assert rig.verdict(5) is Verdict.WAIT
    assert set(rig.lockstep.awaited_joints) == set(HIND[:5])
    rig.command(5, 2.0, HIND[:2])
    assert rig.verdict(5) is Verdict.WAIT
    rig.command(7, 3.0, HIND[2:5])
    assert rig.verdict(5) is Verdict.STEP
    assert rig.effort == [1.0] * 6 + [2.0, 2.0, 3.0, 3.0, 3.0, 0.0]


def test_a_command_ahead_of_time_serves_until_its_stamp():
    rig = Rig(timeout=10.0)
    rig.command(7, 1.0)
    rig.command(8, 2.0)
    efforts = []
    for now in (5, 6, 7, 8):
        assert rig.verdict(now) is Verdict.STEP
        efforts.append(rig.effort[0])
    assert efforts == [1.0, 1.0, 1.0, 2.0]
    assert rig.verdict(9) is Verdict.WAIT


def test_the_first_command_of_an_instant_acts_and_a_repetition_does_not():
    """A second one may come before or after the step: neither may make a difference."""
    rig = Rig(timeout=10.0)
    rig.command(5, 1.0)
    rig.command(5, 2.0)
    assert rig.verdict(5) is Verdict.STEP
    rig.command(5, 3.0)
    assert rig.effort == [1.0] * N
    assert rig.verdict(6) is Verdict.WAIT
    assert rig.lockstep.late == 1


@st.composite
def arrivals(draw):
    """Draw an order in which the commands of two controllers for four instants may arrive.

    Each controller's own commands keep their order, as the network guarantees it.
    """
    who = draw(st.permutations([FRONT] * 4 + [HIND] * 4))
    sent = {id(FRONT): 0, id(HIND): 0}
    order = []
    for joints in who:
        sent[id(joints)] += 1
        order.append((joints, sent[id(joints)]))
    return order


@given(arrivals())
def test_what_acts_does_not_depend_on_the_order_of_arrival(order):
    rig = Rig({'front': FRONT, 'hind': HIND}, timeout=100.0)
    waiting, efforts = list(order), []
    for now in (1, 2, 3, 4):
        while not {(tuple(FRONT), now), (tuple(HIND), now)} <= {
            (tuple(joints), stamp) for joints, stamp in order[: len(order) - len(waiting)]
        }:
            joints, stamp = waiting.pop(0)
            rig.command(stamp, stamp + (0.5 if joints is HIND else 0.0), joints)
        assert rig.verdict(now) is Verdict.STEP
        efforts.append(rig.effort)
    assert efforts == [[float(k)] * 6 + [k + 0.5] * 6 for k in (1, 2, 3, 4)]


def test_an_acknowledgement_leaves_the_command_in_force():
    rig = Rig({'front': FRONT, 'hind': HIND}, timeout=10.0)
    rig.command(5, 1.0, FRONT)
    rig.command(5, 1.0, HIND)
    assert rig.verdict(5) is Verdict.STEP
    rig.command(6, 2.0, FRONT)
    rig.lockstep.acknowledge('hind', 6)
    assert rig.verdict(6) is Verdict.STEP
    assert rig.effort == [2.0] * 6 + [1.0] * 6
    rig.lockstep.acknowledge('', 9)  # for everybody
    assert [rig.verdict(now) for now in (7, 8, 9, 10)] == [Verdict.STEP] * 3 + [Verdict.WAIT]
    with pytest.raises(UnknownName, match=r"'tail'.*front, hind"):
        rig.lockstep.acknowledge('tail', 9)


def test_a_message_without_a_stamp_is_for_the_next_instant():
    rig = Rig(timeout=10.0)
    assert rig.buffer.take_efforts([4.0] * N) is None
    assert rig.verdict(5) is Verdict.STEP
    assert rig.effort == [4.0] * N
    assert rig.verdict(6) is Verdict.WAIT
    rig.command(0, 5.0)
    assert rig.verdict(6) is Verdict.STEP
    assert rig.effort == [5.0] * N


@pytest.mark.parametrize(('policy', 'expected'), [('hold', 1.0), ('zero', 0.0)])
def test_after_the_timeout_the_policy_holds_until_the_controller_speaks_again(policy, expected):
    rig = Rig({'front': FRONT, 'hind': HIND}, policy=policy, timeout=0.1)
    for joints in (FRONT, HIND):
        rig.buffer.take_joint_state(joints, [0.2] * 6, [], [1.0] * 6, 5)
    assert rig.verdict(5) is Verdict.STEP
    begin = time.perf_counter()
    rig.command(6, 3.0, FRONT)
    assert rig.patiently(6) is Verdict.STEP
    assert 0.1 <= time.perf_counter() - begin < 0.6
    assert rig.effort == [3.0] * 6 + [expected] * 6
    assert rig.buffer.current.stiffness.tolist() == [0.0] * 6 + [50.0 * expected] * 6
    assert rig.lockstep.lost_joints == rig.lockstep.silent_joints == tuple(HIND)
    assert len(rig.said) == 1
    assert 'no command for RL_hip_joint' in rig.said[0]
    assert policy in rig.said[0]
    for now in (7, 8, 9):
        assert rig.verdict(now) is Verdict.WAIT  # the other one is still waited for
        rig.command(now, 4.0, FRONT)
        assert rig.verdict(now) is Verdict.STEP
    rig.command(7, 9.0, HIND)  # late, so it does not act; but it is back
    assert rig.lockstep.late == 1
    assert rig.lockstep.lost_joints == rig.lockstep.silent_joints == ()
    assert rig.effort == [4.0] * 6 + [expected] * 6
    rig.command(10, 5.0, FRONT)
    assert rig.verdict(10) is Verdict.WAIT
    rig.command(10, 6.0, HIND)
    assert rig.verdict(10) is Verdict.STEP
    assert rig.effort == [5.0] * 6 + [6.0] * 6
    assert rig.lockstep.timeouts == 1


def test_the_policy_pause_takes_no_step():
    rig = Rig(policy='pause')
    assert rig.patiently(5) is Verdict.PAUSE
    assert rig.lockstep.silent_joints == tuple(JOINTS)
    assert rig.patiently(5) is Verdict.PAUSE  # asked again, it waits again
    rig.command(5, 1.0)
    assert rig.verdict(5) is Verdict.STEP
    assert rig.lockstep.silent_joints == ()


def test_a_controller_that_has_not_spoken_yet_may_take_its_time():
    rig = Rig(timeout=0.03, start_timeout=0.2)
    begin = time.perf_counter()
    assert rig.patiently(5) is Verdict.STEP
    assert 0.2 <= time.perf_counter() - begin < 0.7
    rig.command(6, 1.0)
    assert rig.verdict(6) is Verdict.STEP
    begin = time.perf_counter()
    assert rig.patiently(7) is Verdict.STEP
    assert 0.03 <= time.perf_counter() - begin < 0.19


def test_a_restart_forgets_commands_and_refuses_those_of_another_time():
    rig = Rig(timeout=10.0)
    assert rig.verdict(10 * SECOND) is Verdict.WAIT
    rig.command(10 * SECOND, 1.0)
    rig.lockstep.restart(STEP)  # time was set back
    assert 'ahead' in rig.command(10 * SECOND + 1, 2.0)
    assert rig.verdict(STEP) is Verdict.WAIT
    rig.command(STEP, 3.0)
    assert rig.verdict(STEP) is Verdict.STEP
    assert rig.effort == [3.0] * N


def test_an_answer_from_before_a_reset_of_time_is_no_command_ahead_of_time():
    """It would act at every instant until time gets there; one of the time to come does."""
    rig = Rig(timeout=10.0)
    rig.command(8 * STEP, 1.0)
    assert rig.verdict(8 * STEP, 8) is Verdict.STEP
    rig.lockstep.restart(10 * STEP, published=9 * STEP)  # the state of 9 is being answered
    rig.lockstep.restart(STEP, published=10 * STEP)  # that of 10, too
    for late, stamp in enumerate((9, 10), start=1):
        assert rig.command(stamp * STEP, 2.0) is None
        assert rig.lockstep.late == late
    assert rig.verdict(2 * STEP, 2) is Verdict.WAIT
    rig.command(7 * STEP, 3.0)  # ahead of time
    for tick in range(2, 8):
        assert rig.verdict(tick * STEP, tick) is Verdict.STEP
        assert rig.effort == [3.0] * N
    assert rig.command(9 * STEP, 4.0) is None  # early, as answers to what has not been told are
    assert rig.verdict(8 * STEP, 8) is Verdict.WAIT
    rig.command(9 * STEP, 5.0)
    assert rig.verdict(8 * STEP, 8) is Verdict.STEP
    assert rig.effort == [5.0] * N


def test_switched_off_commands_act_at_once():
    rig = Rig(timeout=10.0)
    rig.command(5, 1.0)
    rig.lockstep.configure(LockstepParameters(enabled=False), 3)
    assert rig.effort == [0.0] * N
    rig.command(0, 2.0)
    assert rig.effort == [2.0] * N
    rig.lockstep.configure(LockstepParameters(enabled=True, timeout=10.0), 4)
    assert rig.verdict(4) is Verdict.WAIT  # what was there before does not count


def test_garbage_is_refused_and_nobody_waits_less():
    rig = Rig({'front': FRONT}, timeout=10.0)
    assert "'RL_hip_joint' belongs to no controller" in rig.command(5, 1.0)
    assert 'nan' in rig.command(5, np.nan, FRONT)
    assert 'unknown joint' in rig.command(5, 1.0, ['tail'])
    assert rig.buffer.dropped == 3
    assert rig.verdict(5) is Verdict.WAIT


def test_a_flood_is_bounded():
    rig = Rig(timeout=10.0)
    refusals = [rig.command(5 + k, 1.0) for k in range(1100)]
    assert refusals[:1000] == [None] * 1000
    assert all('waiting for their instant' in refusal for refusal in refusals[1000:])


@pytest.mark.parametrize(
    ('owned', 'error', 'reason'),
    [
        ({'legs': ['FL_knee']}, UnknownName, 'lockstep.legs.joints.*FL_knee'),
        ({'legs': []}, InvalidInput, 'lockstep.legs.joints is empty'),
        ({'a': FRONT, 'b': FRONT[:1]}, InvalidInput, "b.joints: joint 'FL_hip_joint'.*'a' too"),
    ],
)
def test_ownership_that_makes_no_sense_is_refused(owned, error, reason):
    with pytest.raises(error, match=reason):
        Rig(owned)
