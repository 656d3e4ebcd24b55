"""Policies: trained neural networks as controllers.

A YAML file states what a network in an ONNX or TorchScript file observes, and how its actions a
become targets of joint PD:

    q* = q_pose + scale · f,    f = (1 − s) clip(a) + s f_before,    τ = k_p (q* − q) − k_d q̇

with the smoothing s. The network runs once per control period; τ follows q and q̇ in every call.
The file is read in _policy_file.py. All arithmetic is done for n worlds at once; one robot is a
batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array, IndexArray
from contact_sim._validation import (
    checked,
    closed_attributes,
    count,
    indices,
    real_array,
)
from contact_sim.control._policy_file import (
    HEIGHT_SCAN,
    HeightScanPart,
    Part,
    Phase,
    PolicyFile,
    layout_parts,
    read_policy,
)
from contact_sim.control._policy_network import Network, network_of
from contact_sim.errors import InvalidInput, of_type, shown, summary
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._model import RobotModel
from contact_sim.terrain._grid import SeenFromAbove

Ground = SeenFromAbove | Sequence[SeenFromAbove]
"""One for all robots, or one for each."""

# --- The observation


class Observation:
    """What a policy observes of robots at one instant: its parts one after the other.

    Args:
        robot: the robot.
        joints: joints of the policy, in its order.
        pose: joint positions in which all actions are zero, shape (n joints of the policy,).
        parts: the parts, in order.
        clip: bound of the scaled values.
        phase: the clock of the gait, for the part 'phase'.
        scan: for the part 'height_scan'.
    """

    def __init__(
        self,
        robot: RobotModel,
        joints: tuple[str, ...],
        pose: Array,
        parts: tuple[Part, ...],
        clip: float = np.inf,
        phase: Phase | None = None,
        scan: HeightScanPart | None = None,
    ) -> None:
        self.parts, self.size = parts, sum(part.size for part in parts)
        self._pose, self._clip, self._phase, self._scan = pose, clip, phase, scan
        model = robot.pinocchio_model
        states = [model.joints[model.getJointId(name)] for name in robot.joint_names]
        self._q_index: IndexArray = np.array([joint.idx_q for joint in states], dtype=np.intp)
        self._v_index = robot.joint_velocity_index
        self._turning = np.flatnonzero(robot.continuous_joints)
        self._places = np.array([robot.joint_names.index(name) for name in joints], dtype=np.intp)

    def joint_positions(self, q: Array) -> Array:
        """Return the positions of all driven joints of the robot, (m, n_joints), of q (m, nq)."""
        positions: Array = q[:, self._q_index]
        for i in self._turning:  # (cos, sin) in q
            start = self._q_index[i]
            positions[:, i] = np.arctan2(q[:, start + 1], q[:, start])
        return positions

    def of(
        self,
        q: Array,
        v: Array,
        velocity: Array,
        action: Array,
        time: Array,
        ground: Ground | None = None,
    ) -> Array:
        """Return the observations of m robots, shape (m, size).

        Args:
            q: configurations, (m, nq).
            v: velocities, (m, nv).
            velocity: commanded velocities, (m, 3) [m/s, m/s, rad/s].
            action: last actions, (m, n joints of the policy).
            time: since the start of the policy [s], (m,).
            ground: below the robots, for the part 'height_scan'.
        """
        columns = []
        for part in self.parts:
            if part.name == HEIGHT_SCAN:
                values = self._heights(q, ground)
            else:
                values = self._values(part.name, q, v, velocity, action, time)
            columns.append(part.scale * np.clip(values, -part.clip, part.clip))
        return np.clip(np.concatenate(columns, axis=1), -self._clip, self._clip)

    def _values(
        self, name: str, q: Array, v: Array, velocity: Array, action: Array, time: Array
    ) -> Array:
        """Return one part before clip and scale, (m, its size)."""
        if name == 'base_lin_vel':
            return v[:, :3]
        if name == 'base_ang_vel':
            return v[:, 3:6]
        if name == 'projected_gravity':
            return gravity_direction(q)
        if name == 'commands':
            return velocity
        if name == 'joint_pos':
            return self.joint_positions(q)[:, self._places] - self._pose
        if name == 'joint_vel':
            return v[:, self._v_index[self._places]]
        if name == 'last_action':
            return action
        assert self._phase is not None
        return self._phase.at(time)

    def _heights(self, q: Array, ground: Ground | None) -> Array:
        """Return how far the ground is below the bases around them, (m, points of the grid)."""
        assert self._scan is not None
        assert ground is not None
        x, y, z, w = q[:, 3:7].T
        headings = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        return self._scan.grid.below(ground, q[:, :3], headings) - self._scan.offset


def gravity_direction(q: Array) -> Array:
    """Return −z of the world in the axes of the bases, (m, 3), of q (m, nq)."""
    x, y, z, w = q[:, 3:7].T
    upright = 1.0 - 2.0 * (x * x + y * y)
    return np.stack([2.0 * (w * y - x * z), -2.0 * (y * z + w * x), -upright], axis=1)


def layout_observation(
    layout: str, robot: RobotModel, pose: Array
) -> tuple[Observation, float, float]:
    """Return the observation of a layout, its bound, and the bound of actions.

    All driven joints in the order of the robot, without history; `pose` as of `Observation`.

    Raises:
        UnknownName: a layout that does not exist.
        InvalidInput: a robot whose base is fixed.
    """
    parts, phase, clip, action_clip = layout_parts(layout, robot)
    return Observation(robot, robot.joint_names, pose, parts, clip, phase), clip, action_clip


# --- The controllers


@closed_attributes()
class BatchPolicy:
    """A policy for n robots at once, each with its own clock, memory and history.

    `Policy.for_worlds` makes one. It agrees with n policies of one robot to the rounding of the
    network's numbers. As a function it is the controller of `Worlds.run`; `commands` are joint
    targets for `Worlds.follow`, which evaluates the gains in every step.
    """

    n: int
    """Number of robots."""
    ground: Ground | None
    """Below the robots, for the part 'height_scan'; assignable."""

    def __init__(self, policy: PolicyFile, robot: RobotModel, network: Network, n: int) -> None:
        self._policy = of_type('policy', policy, PolicyFile)
        self._robot = of_type('robot', robot, RobotModel)
        self._network = of_type('network', network, Network)  # type: ignore[type-abstract]
        self.n, self.ground = count('n', n), None
        self._observation = Observation(
            *(robot, policy.joints, policy.pose, policy.parts, policy.clip, policy.phase),
            scan=policy.scan,
        )
        self._turning = np.flatnonzero(robot.continuous_joints)
        self._places = np.array([robot.joint_names.index(name) for name in policy.joints])
        # the joints that the policy does not drive are held in the standing pose
        self._targets = np.tile(
            robot.joint_positions(robot.reference_configuration()), (self.n, 1)
        )
        self._kp, self._kd = robot.default_gains
        self._kp[self._places], self._kd[self._places] = policy.kp, policy.kd
        self._velocity = np.tile(policy.velocity, (self.n, 1))
        shape = (self.n, len(policy.joints))
        self._action, self._filtered = np.zeros(shape), np.zeros(shape)
        self._frames = np.zeros((self.n, policy.history, policy.frame_size))
        self._begin, self._last, self._next = (np.full(self.n, np.nan) for _ in range(3))
        self._memory = network.memory(self.n)

    @property
    def velocity(self) -> Array:
        """Commanded forward and sideways speed [m/s] and turning rate [rad/s], (n, 3).

        Assignable, also with one row (3,) for all.
        """
        return self._velocity.copy()

    @velocity.setter
    def velocity(self, value: ArrayLike) -> None:
        command = real_array('velocity', value)
        if command.shape not in ((3,), (self.n, 3)) or not np.isfinite(command).all():
            raise InvalidInput(
                f'velocity = {shown(value)}: expected forward, sideways [m/s] and turn [rad/s], '
                f'finite, (3,) or ({self.n}, 3)'
            )
        self._velocity[:] = command

    @property
    def action(self) -> Array:
        """Last action of the network, after its clip, shape (n, joints of the policy)."""
        return self._action.copy()

    def reset(self, worlds: ArrayLike | None = None) -> None:
        """Start again: with the next call, all robots or those listed."""
        which = np.arange(self.n) if worlds is None else indices('worlds', worlds, self.n)
        self._restart(which)

    def _restart(self, which: NDArray[np.intp]) -> None:
        for array in (self._action, self._filtered, self._frames):
            array[which] = 0.0
        for clock in (self._begin, self._last, self._next):
            clock[which] = np.nan
        fresh = self._network.memory(len(which))
        for world, memory in zip(which.tolist(), fresh, strict=True):
            self._memory[world] = memory

    @checked
    def __call__(self, time: Array, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m], shape (n, n_joints).

        Args:
            time: [s], shape (n,). A time that goes back starts that robot again.
            q: configurations, shape (n, nq).
            v: velocities, shape (n, nv).
        """
        self._update(time, q, v)
        error = self._targets - self._observation.joint_positions(q)
        turning = self._turning
        if turning.size:  # the short way round
            error[:, turning] = np.mod(error[:, turning] + np.pi, 2.0 * np.pi) - np.pi
        return np.asarray(self._kp * error - self._kd * v[:, self._robot.joint_velocity_index])

    @checked
    def commands(self, time: Array, q: Array, v: Array) -> list[JointCommand]:
        """Return joint targets and gains of every robot, for as long as one control period."""
        self._update(time, q, v)
        zero = np.zeros(self._robot.n_joints)
        return [JointCommand(target, zero, zero, self._kp, self._kd) for target in self._targets]

    def _update(self, time: Array, q: Array, v: Array) -> None:
        """Run the network for the robots whose control period has ended."""
        robot, period = self._robot, self._policy.period
        for name, array, shape in (
            ('time', time, (self.n,)), ('q', q, (self.n, robot.nq)), ('v', v, (self.n, robot.nv)),
        ):  # fmt: skip
            if array.shape != shape:
                raise InvalidInput(f'policy: {name} of shape {array.shape}, expected {shape}')
        if self._policy.scan is not None and self.ground is None:
            raise InvalidInput(
                'policy: it observes the ground around the robot (height_scan): set its `ground`, '
                'policy.ground = sim.terrain'
            )
        back = np.flatnonzero(time < self._last)
        if back.size:
            self._restart(back)
        self._last[:] = time
        new = np.isnan(self._begin)
        self._begin[new] = self._next[new] = time[new]
        due = np.flatnonzero(time >= self._next - 1e-9)
        if not due.size:
            return
        periods = np.floor((time[due] - self._begin[due]) / period + 1e-6) + 1.0
        self._next[due] = self._begin[due] + periods * period
        observations = self._observations(due, new[due], time, q, v)
        raw = self._network.actions(observations, self._memory, due.tolist())
        bound, s = self._policy.action_clip, self._policy.smoothing
        self._action[due] = np.clip(raw, -bound, bound)
        self._filtered[due] = (1.0 - s) * self._action[due] + s * self._filtered[due]
        self._targets[np.ix_(due, self._places)] = (
            self._policy.pose + self._policy.scale * self._filtered[due]
        )

    def _observations(
        self, which: NDArray[np.intp], new: NDArray[np.bool_], time: Array, q: Array, v: Array
    ) -> Array:
        """Return what the network sees of the robots `which`, (m, observation_size)."""
        policy = self._policy
        frame = self._observation.of(
            q[which], v[which], self._velocity[which], self._action[which],
            time[which] - self._begin[which], self._ground_of(which),
        )  # fmt: skip
        frames = np.concatenate([self._frames[which, 1:], frame[:, None]], axis=1)
        if policy.history_start == 'first':
            frames[new] = frame[new, None]
        self._frames[which] = frames
        if policy.history_newest == 'first':
            frames = frames[:, ::-1]
        if policy.history_order == 'by_frame':
            return frames.reshape(len(which), -1)
        edges = np.cumsum([part.size for part in policy.parts])[:-1]
        by_part = [part.reshape(len(which), -1) for part in np.split(frames, edges, axis=2)]
        return np.concatenate(by_part, axis=1)

    def _ground_of(self, which: NDArray[np.intp]) -> Ground | None:
        if not isinstance(self.ground, Sequence):
            return self.ground
        if len(self.ground) != self.n:
            raise InvalidInput(f'ground: {len(self.ground)} given, expected 1 or {self.n}')
        return [self.ground[i] for i in which]

    def __repr__(self) -> str:
        return summary(self, n=self.n, robot=self._robot.name, joints=len(self._policy.joints))


@closed_attributes()
class Policy:
    """A policy as the controller of one robot; `load_policy` makes it."""

    def __init__(self, policy: PolicyFile, robot: RobotModel) -> None:
        self._policy, self._robot = policy, robot
        self._network = network_of(policy)
        self._one = self.for_worlds(1)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints that the policy drives, in its order."""
        return self._policy.joints

    @property
    def period(self) -> float:
        """Time from one action to the next [s]."""
        return self._policy.period

    @property
    def velocity(self) -> Array:
        """Commanded forward and sideways speed [m/s], turning rate [rad/s]; assignable, (3,)."""
        return np.asarray(self._one.velocity[0])

    @velocity.setter
    def velocity(self, value: ArrayLike) -> None:
        self._one.velocity = value

    @property
    def action(self) -> Array:
        """Last action of the network, after its clip, shape (joints of the policy,)."""
        return np.asarray(self._one.action[0])

    @property
    def ground(self) -> Ground | None:
        """Below the robot, for policies that observe it (height_scan); assignable."""
        return self._one.ground

    @ground.setter
    def ground(self, ground: Ground | None) -> None:
        self._one.ground = ground

    def reset(self) -> None:
        """Start again with the next call: clock, history and memory."""
        self._one.reset()

    @checked
    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m] for the state q (nq,), v (nv,) at `time` [s].

        The network runs in the first call and whenever a control period has ended; the gains act
        in every call. A time that goes back starts again. Shape (n_joints,).
        """
        return np.asarray(self._one(np.array([time]), q[None], v[None])[0])

    @checked
    def command(self, time: float, q: Array, v: Array) -> JointCommand:
        """Return joint targets and gains, for as long as one control period; as `effort`."""
        return self._one.commands(np.array([time]), q[None], v[None])[0]

    def for_worlds(self, n: int) -> BatchPolicy:
        """Return the same policy for n robots at once."""
        return BatchPolicy(self._policy, self._robot, self._network, n)

    def __repr__(self) -> str:
        return summary(
            self, robot=self._robot.name, joints=len(self.joint_names), period=self.period
        )


@checked
def load_policy(path: str | Path, robot: RobotModel) -> Policy:
    """Return the policy described by a YAML file, as a controller of `robot`.

    The file is described in docs/policies.md. Joints of the robot that the policy does not drive
    are held in the robot's standing pose with its default gains.

    Raises:
        InvalidInput: a file that is missing or no YAML, ONNX or TorchScript; keys that are missing
            or values that are not allowed; a network whose input or output does not fit;
            onnxruntime, or torch, is not installed.
        UnknownName: a key, layout, part of the observation or joint that does not exist.
    """
    of_type('robot', robot, RobotModel)
    return Policy(read_policy(Path(path), robot), robot)
