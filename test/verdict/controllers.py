"""Controllers whose failure has a known cause."""

from __future__ import annotations

import os
import time as clock
from collections import deque

import numpy as np

from contact_sim.control import Stance


class Hold:
    """Joint PD about the standing pose: sound, as long as its commands come in time."""

    def __init__(self, robot):
        self.robot = robot
        self.pose = robot.joint_positions(robot.reference_configuration('standing'))
        self.gains = robot.default_gains

    def effort(self, time, q, v):
        kp, kd = self.gains
        error = self.pose - self.robot.joint_positions(q)
        return kp * error - kd * self.robot.joint_velocities(v)


class WrongSign(Hold):
    """Pushes the joints away from the pose."""

    def effort(self, time, q, v):
        kp, kd = self.gains
        error = self.pose - self.robot.joint_positions(q)
        return -kp * error - kd * self.robot.joint_velocities(v)


class Late(Hold):
    """Hands on its commands after 20 calls, and tells nobody."""

    def reset(self, sim):
        self.waiting = deque([np.zeros(self.robot.n_joints)] * 20)

    def effort(self, time, q, v):
        self.waiting.append(super().effort(time, q, v))
        return self.waiting.popleft()


class DeclaredLate(Hold):
    """Says that its commands come 20 ms late, and looks at the clock instead of counting calls."""

    delay = 0.02

    def reset(self, sim):
        self.waiting = deque()

    def effort(self, time, q, v):
        self.waiting.append((time, super().effort(time, q, v)))
        while len(self.waiting) > 1 and self.waiting[1][0] <= time - self.delay + 1e-9:
            self.waiting.popleft()
        begin, effort = self.waiting[0]
        return effort if begin <= time - self.delay + 1e-9 else np.zeros(self.robot.n_joints)


class Spreads(Hold):
    """Spreads the feet by 10 mm/s without lifting them, and gives up where they do not follow.

    Feet that stick cannot follow: its protection against overload trips, and it lets go.
    """

    speed, tolerance = 0.04, 0.03

    def __init__(self, robot):
        super().__init__(robot)
        self.hips = np.array([
            (1.0 if name.startswith(('FL', 'RL')) else -1.0) * ('hip' in name)
            for name in robot.joint_names
        ])  # fmt: skip
        self.standing = self.pose.copy()

    def reset(self, sim):
        self.tripped = False

    def effort(self, time, q, v):
        self.pose = self.standing + self.speed * time * self.hips
        error = (self.pose - self.robot.joint_positions(q)) * self.hips
        self.tripped = self.tripped or error.sum() > 4.0 * self.tolerance
        return np.zeros(len(self.pose)) if self.tripped else super().effort(time, q, v)


class MotorModel:
    """A stance whose efforts pass a model of the motors that takes explicit Euler steps.

    Its time constant is 2.2 ms: steps above 4.4 ms make it unstable.
    """

    time_constant = 2.2e-3

    def __init__(self, robot):
        self.stance = Stance(robot)

    def reset(self, sim):
        self.effort_now, self.last = None, None

    def effort(self, time, q, v):
        wanted = self.stance.effort(time, q, v)
        if self.last is None:
            self.effort_now = wanted
        else:
            rate = (wanted - self.effort_now) / self.time_constant
            self.effort_now = self.effort_now + (time - self.last) * rate
        self.last = time
        return self.effort_now


class Coin(Hold):
    """Lets go, or does not, by the last digits of the state at its start: nothing else decides."""

    def reset(self, sim):
        self.lets_go = None

    def effort(self, time, q, v):
        if self.lets_go is None:
            digits = round(1e9 * float(np.abs(self.robot.joint_positions(q)).sum()))
            self.lets_go = digits % 2 == 1
        return 0.0 * self.pose if self.lets_go else super().effort(time, q, v)


class Raises(Hold):
    def effort(self, time, q, v):
        if time > 0.1:
            raise ZeroDivisionError('no foot on the ground')
        return super().effort(time, q, v)


class NotANumber(Hold):
    def effort(self, time, q, v):
        return super().effort(time, q, v) * (np.nan if time > 0.1 else 1.0)


class Hangs(Hold):
    def effort(self, time, q, v):
        while time > 0.1:
            clock.sleep(0.01)
        return super().effort(time, q, v)


class Dies(Hold):
    def effort(self, time, q, v):
        if time > 0.1:
            os._exit(3)
        return super().effort(time, q, v)


class Good:
    """The stance controller of the package."""

    def __init__(self, robot):
        self.effort = Stance(robot).effort
