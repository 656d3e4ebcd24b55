"""Pushes: wrenches on links for a while of simulated time; imports no ROS."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import finite_array, positive, shaped
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.ros._parameters import PushParameters
from contact_sim.simulation._simulator import Simulator
from contact_sim.topics._table import nanoseconds
from contact_sim.view._session import Spring

LARGEST = 1e6
"""Bound of every number of a wrench [N], [N m]."""
MAX_PUSHES = 100
"""Pushes that may be under way or waiting for their time."""


@dataclass(frozen=True, eq=False)
class Push:
    """A wrench at the origin of a frame, from `start` until before `end` [ns]."""

    frame: str
    wrench: Array
    """Force [N] and torque [N m], shape (6,)."""
    in_world: bool
    """Whether its axes are the world's; otherwise they turn with the frame."""
    start: int
    end: int | None
    """None: until the next push on this frame."""


class Pushes:
    """Wrenches that act; one per frame, a later one replaces an earlier one.

    Args:
        sim: the simulation.
        prefix: the parameter frame_prefix.
        world_frames: frame ids of the world; a push needs a link.

    Attributes:
        links: names of the links that can be pushed.
        accepted: messages taken.
        refused: messages with anything wrong.
    """

    def __init__(self, sim: Simulator, prefix: str, world_frames: Sequence[str]) -> None:
        self._sim, self._prefix, self._world_frames = sim, prefix, tuple(world_frames)
        self._lock = threading.Lock()
        self._pushes: tuple[Push, ...] = ()
        self._spring: Spring | None = None
        bodies = [f.name for f in sim.robot.pinocchio_model.frames if f.type == pin.FrameType.BODY]
        self.links = tuple(name for name in bodies if name != 'universe')
        self.accepted = self.refused = 0

    def configure(self, parameters: PushParameters) -> None:
        """Take pushes with other parameters from now on."""
        self._parameters = parameters

    def take(
        self,
        frame_id: str,
        stamp: int,
        force: Sequence[float],
        torque: Sequence[float],
        owner: str = '',
    ) -> str | None:
        """Take a push from `stamp` [ns] on, or at once; return why it is refused, or None.

        `owner` is the prefix of the links of the robot that is pushed, such as 'a/'; it may be
        left out of `frame_id`.
        """
        try:
            frame = owner + frame_id.removeprefix(self._prefix).removeprefix(owner)
            wrench = np.array([*force, *torque], dtype=float)
            self._check(frame_id, frame, wrench)
            start = max(stamp, nanoseconds(self._sim.time))
            duration = nanoseconds(self._parameters.duration)
            end = start + duration if duration else None
            self._add(Push(frame, wrench, self._parameters.axes == 'world', start, end))
        except (InvalidInput, UnknownName) as error:
            self.refused += 1
            return str(error)
        self.accepted += 1
        return None

    def push(
        self, frame: str, force: Sequence[float], torque: Sequence[float], duration: float
    ) -> None:
        """Push a link from the next step on for a `duration` [s] of simulated time.

        Force [N] and torque [N m] are in world axes, (3,).
        """
        wrench = np.array([*force, *torque], dtype=float)
        self._check(frame, frame, wrench)
        start = nanoseconds(self._sim.time)
        end = start + max(1, nanoseconds(positive('duration', duration, 's')))
        self._add(Push(frame, wrench, True, start, end))

    def drag(self, link: str, target: Sequence[float] | None) -> None:
        """Pull the origin of a link with a spring to `target` [m], world, (3,); None: let go.

        It is called between two steps.
        """
        if target is None:
            self._spring = None
            return
        end = shaped('target', finite_array('target', target), 3)
        if self._spring is None or self._spring.frame != link:
            self._spring = Spring(self._sim.robot, link, end, self._sim.q)
        self._spring.target = end

    def _add(self, push: Push) -> None:
        with self._lock:
            if len(self._pushes) >= MAX_PUSHES:
                raise InvalidInput(f'{MAX_PUSHES} pushes are under way or wait for their time')
            self._pushes = (*self._pushes, push)

    def _check(self, frame_id: str, frame: str, wrench: Array) -> None:
        if frame_id in self._world_frames and frame not in self.links:
            raise InvalidInput(f'push on {frame_id!r}: header.frame_id has to name a link')
        if frame not in self.links:
            raise UnknownName('link in external_wrench', frame_id, self.links)
        if not (np.abs(wrench) <= LARGEST).all():  # NaN too
            raise InvalidInput(
                f'push on {frame_id!r} = {wrench.tolist()}: expected finite numbers, at most '
                f'{LARGEST:g}'
            )

    def clear(self) -> None:
        """End all pushes, and let go."""
        with self._lock:
            self._pushes = ()
        self._spring = None

    def acting(self, now: int) -> Mapping[str, Array]:
        """Return frame to force and torque in world axes (6,) in the step from `now` [ns]."""
        if not self._pushes and self._spring is None:
            return {}
        wrenches = self._pushing(now)
        if self._spring is not None:
            link, pull = self._spring.frame, self._spring.wrench(self._sim.q, self._sim.v)
            wrenches[link] = wrenches.get(link, 0.0) + pull
        return wrenches

    def _pushing(self, now: int) -> dict[str, Array]:
        with self._lock:
            last = {push.frame: push for push in self._pushes if push.start <= now}
            self._pushes = tuple(
                push
                for push in self._pushes
                if push.start > now
                or (last[push.frame] is push and (push.end is None or now < push.end))
            )
            active = [push for push in self._pushes if push.start <= now]
        return {push.frame: self._in_world(push) for push in active if push.wrench.any()}

    def _in_world(self, push: Push) -> Array:
        if push.in_world:
            return push.wrench
        rotation = self._sim.frame_placement(push.frame).rotation
        return np.concatenate([rotation @ push.wrench[:3], rotation @ push.wrench[3:]])
