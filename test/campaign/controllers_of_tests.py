"""Controllers for tests of campaigns: good ones, and each way of being bad."""

import ctypes
import os
import time

import numpy as np

from contact_sim import load_robot
from contact_sim.control import Stance
from contact_sim.robot._actuators import holding

GO1 = load_robot('go1')
POSE = GO1.joint_positions(GO1.reference_configuration())
KP, KD = GO1.default_gains


def pd(time, q, v):
    """The built-in `hold`, written by hand."""
    return KP * (POSE - q[7:]) - KD * v[6:]


def targets(time, q, v):
    return holding(POSE, KP, KD)


def many(time, q, v):
    return KP * (POSE - q[:, 7:]) - KD * v[:, 6:]


many.batch = True


def differs_in_batches(time, q, v):
    return many(time, q, v) + 1e-9 * len(q)


differs_in_batches.batch = True


class WithSensors:
    """Stands with the gravity that it measured at its reset, and reads the last report."""

    def __init__(self, robot):
        self.inner, self.sim, self.loads = Stance(robot), None, []

    def reset(self, sim):
        self.sim = sim

    def effort(self, time, q, v):
        self.loads.append(self.sim.last_report.contacts.normal_force.sum())
        return self.inner.effort(time, q, v)


class Crouches:
    """Holds the pose in which it starts, lower than the standing pose."""

    def __init__(self, robot):
        self.start_pose = POSE * np.tile([1.0, 1.2, 1.2], 4)
        self.robot = robot

    def effort(self, time, q, v):
        error = self.start_pose - self.robot.joint_positions(q)
        return KP * error - KD * self.robot.joint_velocities(v)


class StartsNowhere(Crouches):
    def __init__(self, robot):
        super().__init__(robot)
        self.start_pose = self.start_pose[1:]


class Late:
    """Good for 20 ms, then `act`."""

    def __init__(self, robot):
        self.robot, self.kept = robot, None

    def reset(self):
        self.kept = []

    def effort(self, time, q, v):
        return pd(time, q, v) if time < 0.0195 else self.act()


class Raises(Late):
    def act(self):
        raise KeyError('no plan')


class NotANumber(Late):
    def act(self):
        return np.full(12, np.nan)


class WrongShape(Late):
    def act(self):
        return np.zeros(3)


class Quits(Late):
    def act(self):
        raise SystemExit(2)


class Exits(Late):
    def act(self):
        os._exit(3)


class Faults(Late):
    def act(self):
        ctypes.string_at(0)


class Hangs(Late):
    def act(self):
        time.sleep(1e4)


class Leaks(Late):
    def act(self):
        while True:
            self.kept.append(np.ones(10_000_000))


class Freezes(Late):
    """Repeats one answer, whatever happens."""

    def act(self):
        return np.zeros(12)


class Pushes(Late):
    """All knees at their limits."""

    def act(self):
        effort = np.zeros(12)
        effort[2::3] = 1e3
        return effort
