"""Lockstep: each step waits for its command; imports no ROS.

Every `lockstep.period` steps there is an instant t. The step from t is taken when every joint in
question has a command, or an acknowledgement, stamped at or after t. Per joint the first such
command acts, however late or early it came: the trajectory depends on stamps alone, not on delays.
"""

from __future__ import annotations

import enum
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contact_sim._types import Mask
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.parameters import Settings
from contact_sim.robot._several_robots import SEPARATOR
from contact_sim.ros._commands import (
    ALL,
    SECOND,
    CommandBuffer,
    PartialCommand,
    TrajectoryCommand,
    new_numbers,
    renumbered,
)
from contact_sim.ros._lockstep_socket import LockstepSocket
from contact_sim.ros._parameters import LockstepParameters

LARGEST_LEAD = SECOND
"""Simulated time [ns] by which a stamp may be ahead; more is of a clock that has been reset."""
LONGEST_QUEUE = 1000
"""Messages kept for later instants."""
ROUNDING = 1000
"""Simulated time [ns] by which rounding may move an instant."""
SLICE = 0.02
"""Wall seconds after which a waiting loop looks at other things."""
HANDOVER = 1e-3
"""Wall seconds for which the callback thread leaves the interpreter to a loop that can go on."""


class Verdict(enum.Enum):
    """Next action of the loop."""

    STEP = enum.auto()
    WAIT = enum.auto()
    PAUSE = enum.auto()


@dataclass(frozen=True, eq=False)
class Arrival:
    """A message: a command or an acknowledgement of some joints, and its stamp."""

    stamp: int | None  # [ns]; None for the next instant, whichever that is
    joints: Mask
    command: PartialCommand | TrajectoryCommand | None  # None: an acknowledgement

    def is_for(self, instant: int) -> bool:
        """Return whether it counts for an instant [ns]."""
        return self.stamp is None or self.stamp >= instant


def owned_joints(settings: Settings, joint_names: Sequence[str]) -> dict[str, Mask]:
    """Return which joints each controller of `lockstep.controllers` owns, masks (n_joints,)."""
    names = list(joint_names)
    owned: dict[str, Mask] = {}
    taken: dict[str, str] = {}
    for controller in settings['lockstep'].controllers:
        place = f'lockstep.{controller}.joints'
        # a controller that is named after one of several robots owns all joints of it
        of_robot = [name for name in names if name.startswith(f'{controller}{SEPARATOR}')]
        joints = settings[f'lockstep.{controller}'].joints or of_robot
        if not joints:
            raise InvalidInput(f'{place} is empty: name the joints that {controller!r} commands')
        for joint in joints:
            if joint not in names:
                raise UnknownName(f'joint in {place}', joint, names)
            if joint in taken:
                raise InvalidInput(f'{place}: joint {joint!r} belongs to {taken[joint]!r} too')
            taken[joint] = controller
        owned[controller] = np.isin(names, joints)
    return owned


class Lockstep:
    """Holds commands until their instant, and the loop until its commands.

    Callbacks call `take` (through the command buffer) and `acknowledge`, the loop everything else.
    `owned` has the joints by controller; it is empty for one nameless controller of all joints.
    `log` is called with a line when commands do not come in time.
    """

    def __init__(
        self,
        commands: CommandBuffer,
        joint_names: Sequence[str],
        owned: Mapping[str, Mask],
        log: Callable[[str], None],
    ) -> None:
        self._commands, self._names = commands, tuple(joint_names)
        self._owned, self._log = owned, log
        n = len(self._names)
        self._all = np.ones(n, dtype=bool)
        self._needed: Mask = np.any(list(owned.values()), axis=0) if owned else self._all
        self._heard = np.zeros(n, dtype=bool)  # joints with a command or acknowledgement
        self._lost = np.zeros(n, dtype=bool)  # joints whose controller is not waited for
        lock = threading.RLock()
        self._news, self._at_rest = threading.Condition(lock), threading.Condition(lock)
        self._queue: list[Arrival] = []
        # states before resets that controllers may still answer: stamps after, up to [ns]
        self._before_resets: deque[tuple[int, int]] = deque(maxlen=8)
        self._now = self._horizon = 0
        self._served = -1  # the last instant that was stepped from
        self._waiting_since: float | None = None
        self.enabled = False  # commands are waited for
        self.timeouts = 0  # how often they did not come in time
        self.late = 0  # messages whose step had been taken without them
        self.socket: LockstepSocket | None = None  # where controllers may come without DDS
        self.newcomer = False  # one has come there just now: it knows no state yet
        self._loop_thread = 0

    def configure(self, parameters: LockstepParameters, now: int) -> None:
        """Follow other parameters from simulated time `now` [ns] on."""
        self.parameters = parameters
        if parameters.enabled and not self.enabled:
            self.restart(now)
        self.enabled = parameters.enabled
        if self.enabled:
            self._commands.deliver = self.take
        else:
            self._commands.deliver_at_once()

    def replace_joints(self, joint_names: Sequence[str], owned: Mapping[str, Mask]) -> None:
        """Wait for commands of other joints; what came for those that stay is kept."""
        with self._news:
            numbers = new_numbers(self._names, joint_names)
            stay, n = numbers >= 0, len(joint_names)

            def moved(mask: Mask) -> Mask:
                other = np.zeros(n, dtype=bool)
                other[numbers[stay]] = mask[stay]
                return other

            self._queue = [
                Arrival(
                    arrival.stamp, moved(arrival.joints),
                    None if arrival.command is None else renumbered(arrival.command, numbers),
                )
                for arrival in self._queue
            ]  # fmt: skip
            self._heard, self._lost = moved(self._heard), moved(self._lost)
            self._names, self._owned = tuple(joint_names), owned
            self._all = np.ones(n, dtype=bool)
            self._needed = np.any(list(owned.values()), axis=0) if owned else self._all

    def take(self, command: PartialCommand | TrajectoryCommand, stamp: int | None) -> None:
        """Keep a command for its instant; a stamp of 0 means the next one."""
        joints = np.zeros(len(self._names), dtype=bool)
        joints[command.joints] = True
        foreign = np.flatnonzero(joints & ~self._needed)
        if len(foreign):
            raise InvalidInput(
                f'joint {self._names[foreign[0]]!r} belongs to no controller in '
                'lockstep.controllers'
            )
        self._keep(Arrival(stamp or None, joints, command))

    def acknowledge(self, controller: str, stamp: int | None, joints: slice = ALL) -> None:
        """Take note that a controller leaves its joints as they are until `stamp` [ns].

        '' stands for all controllers that own any of `joints`, 0 or None for the next instant.
        """
        if not self.enabled:
            return
        if controller and controller not in self._owned:
            raise UnknownName('controller in lockstep_ack', controller, list(self._owned))
        acknowledged = np.zeros(len(self._names), dtype=bool)
        acknowledged[joints] = self._needed[joints]
        self._keep(Arrival(stamp or None, self._owned.get(controller, acknowledged), None))

    def wake(self) -> None:
        """Have a waiting loop look at other things now."""
        with self._news:
            self._notify()

    def _notify(self) -> None:
        self._news.notify()
        if self.socket is not None and threading.get_ident() != self._loop_thread:
            self.socket.wake()

    def _keep(self, arrival: Arrival) -> None:
        stamp = arrival.stamp
        with self._news:
            if stamp is not None and stamp > self._now + LARGEST_LEAD:
                raise InvalidInput(
                    f'stamped {stamp / SECOND:.9g} s at t = {self._now / SECOND:.9g} s: more than '
                    f'{LARGEST_LEAD / SECOND:g} s ahead'
                )
            self._heard |= arrival.joints
            self._lost &= ~arrival.joints  # it is alive: wait for it from now on
            if stamp is not None:
                # late, or the answer to a state from before time was set back
                before = any(after < stamp <= upto for after, upto in self._before_resets)
                if stamp <= self._served or (before and stamp > self._horizon):
                    self.late += 1
                    return
            if len(self._queue) == LONGEST_QUEUE:
                raise InvalidInput(f'{LONGEST_QUEUE} commands are waiting for their instant')
            self._queue.append(arrival)
            self._notify()
            if threading.get_ident() == self._loop_thread:
                return  # it came on the socket
            if self._waiting_since is not None and not self._missing().any():
                self._at_rest.wait(HANDOVER)

    def is_instant(self, tick: int) -> bool:
        """Return whether the step after the `tick`-th needs commands."""
        return self.enabled and tick % self.parameters.period == 0

    @property
    def period(self) -> int:
        """Steps between two instants, 0 where there are none."""
        return self.parameters.period if self.enabled else 0

    def restart(self, now: int, published: int = 0) -> None:
        """Forget commands: the state was set anew, at simulated time `now` [ns].

        Where time goes back, answers that are under way to states that were published before, up
        to the stamp `published` [ns], are no commands ahead of time.
        """
        with self._news:
            self._queue.clear()
            self._before_resets.append((self._served, published))
            self._horizon = now
            self._now, self._served, self._waiting_since = now, now - 1, None

    def verdict(self, now: int, tick: int) -> Verdict:
        """Return whether the step from `now` [ns] may be taken; waits a little for commands."""
        self._loop_thread, self.newcomer = threading.get_ident(), False
        with self._news:
            self._now, self._horizon = now, now + now // max(tick, 1) + ROUNDING
            if not self.is_instant(tick):
                return Verdict.STEP
            missing, patience = self._missing(), 0.0
            if missing.any():
                if self._waiting_since is None:
                    self._waiting_since = time.perf_counter()
                self._at_rest.notify_all()
                patience = min(SLICE, max(self._left(), 0.0))
                if self.socket is None:
                    self._news.wait(patience)
        if self.socket is not None:  # without the lock: answers may come on topics, too
            self.newcomer = self.socket.serve(patience)
        with self._news:
            missing = self._missing()
            if not missing.any():
                self._serve()
                return Verdict.STEP
            if self._left() > 0.0:
                return Verdict.WAIT
            return self._give_up(missing)

    @property
    def waited(self) -> float:
        """Wall seconds for which the loop has waited for the present instant."""
        since = self._waiting_since
        return 0.0 if since is None else time.perf_counter() - since

    @property
    def misses_somebody(self) -> bool:
        """Whether a controller that is waited for has sent nothing yet, or nothing again."""
        return bool((self._needed & ~self._heard & ~self._lost).any())

    @property
    def lost_joints(self) -> tuple[str, ...]:
        """Joints whose commands are no longer waited for."""
        return self._named(self._lost)

    @property
    def silent_joints(self) -> tuple[str, ...]:
        """Joints whose controller sent nothing in time, and nothing since."""
        return self._named(self._needed & ~self._heard) if self.timeouts and self.enabled else ()

    @property
    def awaited_joints(self) -> tuple[str, ...]:
        """Joints whose commands the loop is waiting for."""
        if self._waiting_since is None:
            return ()
        with self._news:
            return self._named(self._missing())

    def _named(self, chosen: Mask) -> tuple[str, ...]:
        return tuple(self._names[k] for k in np.flatnonzero(chosen))

    def _missing(self) -> Mask:
        """Return the joints that the step from now still needs a command for."""
        missing = self._needed & ~self._lost
        for arrival in self._queue:
            if arrival.is_for(self._now):
                missing &= ~arrival.joints
        return missing

    def _left(self) -> float:
        """Return the wall seconds for which the loop goes on waiting."""
        patience = self.parameters.timeout
        if self.misses_somebody and self.parameters.start_timeout:
            patience = self.parameters.start_timeout
        return patience - self.waited

    def _serve(self) -> None:
        """Let the commands for now act."""
        open_joints = self._all.copy()
        for arrival in self._queue:
            joints = arrival.joints & open_joints
            if arrival.is_for(self._now) and joints.any():
                open_joints &= ~joints
                if arrival.command is not None:
                    self._commands.apply(arrival.command.only(joints))
        self._queue = [a for a in self._queue if a.stamp is not None and a.stamp > self._now]
        self._served, self._waiting_since = self._now, None

    def _give_up(self, missing: Mask) -> Verdict:
        """Follow the policy for joints whose commands did not come in time."""
        self.timeouts += 1
        self._heard &= ~missing
        waited, self._waiting_since = self.waited, None
        self._log(
            f'lockstep: no command for {", ".join(self._named(missing))} within {waited:.3g} s '
            f'at t = {self._now / SECOND:.9g} s: {self.parameters.policy}'
        )
        if self.parameters.policy == 'pause':
            return Verdict.PAUSE
        self._lost |= missing
        if self.parameters.policy == 'zero':
            self._commands.release(missing)
        self._serve()
        return Verdict.STEP
