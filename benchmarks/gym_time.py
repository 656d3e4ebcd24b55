"""Environment steps per second of many worlds, next to `mujoco.rollout` with the same observation.

    python benchmarks/gym_time.py [--robot go1] [--worlds 64] [--threads 2] [--json FILE]

One environment step is a control period of 20 ms: targets of joint PD, 10 time steps of 2 ms with
the gains evaluated in each, and the observation of `contact_sim.gym`, 48 numbers per world. Both
engines get the same random actions, small enough to stay on the feet.

environment  `VectorEnv.step`: with rewards, falls, commands and resets
bare         `Worlds.follow` and the observation alone
rollout      `mujoco.rollout` of PD actuators with the same gains, and the same observation from
             its states; MuJoCo keeps its default options

Calls of a few environment steps alternate between the three. Times are wall times, medians over
the calls; `ratio` is that of environment to rollout, the median over neighbouring calls. The JSON
has the largest tilt of a base at the end, too: nobody has fallen.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import engines
import numpy as np
from engines import HAVE_MUJOCO, write_json
from numpy.typing import NDArray

import contact_sim
from contact_sim.control._policy import layout_observation
from contact_sim.gym import VectorEnv
from contact_sim.robot._actuators import JointCommand

Array = NDArray[np.float64]
FRICTION, TIME_STEP, DECIMATION = 0.8, 2e-3, 10
CALL_STEPS = 10
"""Environment steps per call."""
ACTION, ACTION_SCALE = 0.3, 0.25
"""Largest action [-]; change of a target per action [rad]."""
LAYOUT = 'legged_gym'


class Environment:
    """`VectorEnv`."""

    def __init__(self, robot: contact_sim.RobotModel, n: int, threads: int, model: str) -> None:
        self.env = VectorEnv(
            n, robot=robot, contact_models=model, time_step=TIME_STEP, decimation=DECIMATION,
            action_scale=ACTION_SCALE, layout=LAYOUT, threads=threads,
        )  # fmt: skip
        self.observation = self.env.reset(seed=0)[0]

    def step(self, actions: Array) -> None:
        """Take one environment step."""
        self.observation = self.env.step(actions)[0]


class Peer:
    """What environments of both engines have in common without rewards: targets, observation."""

    def __init__(self, robot: contact_sim.RobotModel, n: int) -> None:
        self.robot, self.n = robot, n
        self.pose = robot.joint_positions(robot.reference_configuration())
        self.kp, self.kd = robot.default_gains
        self._layout, self._bound, _ = layout_observation(LAYOUT, robot, self.pose)
        self._velocity, self._action = np.zeros((n, 3)), np.zeros((n, robot.n_joints))
        self.observation = np.zeros((n, self._layout.size), np.float32)

    def observe(self, q: Array, v: Array, actions: Array) -> None:
        """Keep the observation of states (n, nq), (n, nv) after these actions."""
        frame = self._layout.of(q, v, self._velocity, actions, np.zeros(self.n))
        self.observation = frame.astype(np.float32)


class Bare(Peer):
    """`Worlds.follow` and the observation."""

    def __init__(self, robot: contact_sim.RobotModel, n: int, threads: int, model: str) -> None:
        super().__init__(robot, n)
        self._worlds = contact_sim.Worlds(
            robot, n, model, friction=FRICTION, time_step=TIME_STEP, threads=threads
        )

    def step(self, actions: Array) -> None:
        """Take one environment step."""
        zero = np.zeros(self.robot.n_joints)
        targets = self.pose + ACTION_SCALE * actions
        commands = [JointCommand(target, zero, zero, self.kp, self.kd) for target in targets]
        end = self._worlds.follow(commands, DECIMATION)
        self.observe(end.q[-1], end.v[-1], actions)


class Theirs(Peer):
    """`mujoco.rollout` in a pool of threads that stays, and the observation."""

    def __init__(self, robot: contact_sim.RobotModel, n: int, threads: int) -> None:
        super().__init__(robot, n)
        import mujoco
        from mujoco.rollout import Rollout

        self._peer = engines.MujocoPeer(robot, FRICTION, TIME_STEP, (self.kp, self.kd))
        model, kind = self._peer.model, mujoco.mjtState.mjSTATE_FULLPHYSICS
        self._data = [mujoco.MjData(model) for _ in range(threads)]
        self._peer.reset(robot.reference_configuration(), self.pose)
        row = np.zeros(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, self._peer.data, row, kind)
        self._state = np.tile(row, (n, 1))
        self._out = np.zeros((n, DECIMATION, len(row)))
        self._pool = Rollout(nthread=threads if threads > 1 else 0)
        joints = [model.joint(name) for name in robot.joint_names]
        self._places = 1 + np.array([joint.qposadr[0] for joint in joints])
        self._dofs = 1 + model.nq + np.array([joint.dofadr[0] for joint in joints])
        self._base_velocity = 1 + model.nq + np.arange(6)

    def step(self, actions: Array) -> None:
        """Take one environment step."""
        targets = self.pose + ACTION_SCALE * actions
        self._pool.rollout(
            self._peer.model, self._data, self._state, targets[:, None].copy(),
            nstep=DECIMATION, state=self._out, skip_checks=False,
        )  # fmt: skip
        self._state = self._out[:, -1].copy()
        self.observe(*self.states, actions)

    @property
    def states(self) -> tuple[Array, Array]:
        """Configurations (n, nq) and velocities (n, nv) in Pinocchio's conventions."""
        rows, joints = self._state, self.robot.joint_velocity_index
        q = np.concatenate([rows[:, [1, 2, 3, 5, 6, 7, 4]], rows[:, self._places]], axis=1)
        base = rows[:, self._base_velocity]
        v = np.zeros((self.n, self.robot.nv))
        v[:, :3] = turned_back(q[:, 3:7], base[:, :3])
        v[:, 3:6] = base[:, 3:]
        v[:, joints] = rows[:, self._dofs]
        return q, v


def turned_back(quaternions: Array, vectors: Array) -> Array:
    """Return Rᵀ x for quaternions x, y, z, w (n, 4) and vectors (n, 3)."""
    axis, real = -quaternions[:, :3], quaternions[:, 3:]
    twice = 2.0 * np.cross(axis, vectors)
    return np.asarray(vectors + real * twice + np.cross(axis, twice))


def tilt(observations: NDArray[np.float32]) -> float:
    """Return the largest tilt of a base [rad]: gravity is at places 6 to 8."""
    sideways = np.hypot(observations[:, 6], observations[:, 7])
    return float(np.arctan2(sideways, -observations[:, 8]).max())


def alternate(
    steps: Sequence[Callable[[Array], None]], actions: Array, calls: int
) -> list[list[float]]:
    """Return the wall seconds of calls of `CALL_STEPS` steps of each, taken in turn."""
    times = [[0.0] * calls for _ in steps]
    for call in range(-2, calls):  # two to settle
        for step, found in zip(steps, times, strict=True):
            begin = time.perf_counter()
            for k in range(CALL_STEPS):
                step(actions[(CALL_STEPS * call + k) % len(actions)])
            if call >= 0:
                found[call] = time.perf_counter() - begin
    return times


def measure(
    robot: contact_sim.RobotModel, n: int, threads: int, calls: int, model: str
) -> dict[str, Any]:
    """Return the figures."""
    random = np.random.default_rng(0)
    actions = random.uniform(-ACTION, ACTION, (100, n, robot.n_joints))
    environment, bare = Environment(robot, n, threads, model), Bare(robot, n, threads, model)
    theirs = Theirs(robot, n, threads) if HAVE_MUJOCO else None
    runs: list[Callable[[Array], None]] = [environment.step, bare.step]
    if theirs is not None:
        runs.append(theirs.step)
    seconds = alternate(runs, actions, calls)
    names = ('environment', 'bare', 'rollout')
    row: dict[str, Any] = {
        'robot': robot.name, 'contact_model': model, 'worlds': n, 'threads': threads,
        'rollout': None,
    }  # fmt: skip
    for name, found in zip(names, seconds, strict=False):
        row[name] = n * CALL_STEPS / statistics.median(found)
    row['tilt'] = {'environment': tilt(environment.observation), 'bare': tilt(bare.observation)}
    if theirs is not None:
        row['tilt']['rollout'] = tilt(theirs.observation)
        pairs = zip(seconds[0], seconds[2], strict=True)
        row['ratio'] = statistics.median(their / own for own, their in pairs)
    return row


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--robot', default='go1', help='name in the catalogue')
    parser.add_argument('--worlds', type=int, default=64)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--models', nargs='+', default=['ncp'], help='contact models')
    parser.add_argument('--calls', type=int, default=20)
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    robot = contact_sim.load_robot(options.robot)
    print(
        f'{options.worlds} worlds of {robot.name} in {options.threads} threads, environment steps '
        f'per second, {os.cpu_count()} cores'
    )
    print(f'{"model":12}{"environment":>13}{"bare":>9}{"rollout":>9}{"ratio":>8}')
    rows = []
    for model in options.models:
        row = measure(robot, options.worlds, options.threads, options.calls, model)
        rows.append(row)
        cells = f'{row["environment"]:13.0f}{row["bare"]:9.0f}'
        if row['rollout'] is not None:
            cells += f'{row["rollout"]:9.0f}{row["ratio"]:8.2f}'
        print(f'{model:12}{cells}', flush=True)
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
