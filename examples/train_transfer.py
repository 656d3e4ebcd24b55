"""Train a gait under one contact model, and under randomised ones; test each under all others.

    python examples/train_transfer.py [--generations 25] [--seed 0]

Needs the extras `gym` and `verdict` (cma). A go1 should walk forward at 0.4 m/s. Its gait is a
trot with ten numbers: frequency, amplitudes and offsets of thighs and calves, and gains from the
tilt, the turning rates and the error of the speed. CMA-ES [Hansen 2016] finds them: a generation
is one run of `VectorEnv`, in which every candidate has a few worlds. The fitness is the reward per
second of docs/gym.md; nothing is earned after a fall.

Training takes two to five minutes on two cores. Equal seeds give equal tables.

[Hansen 2016] Hansen. The CMA Evolution Strategy: A Tutorial. arXiv:1604.00772.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cma
import numpy as np
from numpy.typing import NDArray

from contact_sim import Compliant
from contact_sim.gym import Randomisation, VectorEnv

Array = NDArray[np.float64]
COMMAND = (0.4, 0.0, 0.0)
"""Forward [m/s], sideways [m/s], turn [rad/s]."""
SECONDS, PERIOD = 4.0, 0.02
"""Length of an episode, control period [s]."""
ACTION_SCALE = 0.5
"""Change of a joint target by an action of 1 [rad]."""
CANDIDATES = 12
"""Per generation."""
START = Randomisation(joint_start=0.05, velocity_start=0.2)
"""Small differences at the start, so that a gait has to be stable."""
MODELS = ('ncp', 'todorov', 'sap', 'compliant')
SOFT = Compliant(stiffness=3000.0)
"""Feet that sink in by 10 mm under go1's weight."""


@dataclass(frozen=True)
class Setting:
    """Where a gait is trained or tested."""

    name: str
    models: Sequence[Any]
    randomisation: Randomisation = START

    def env(self, worlds: int) -> VectorEnv:
        """Return the environment, its worlds evenly over the models."""
        return VectorEnv(
            worlds, contact_models=list(self.models), randomisation=self.randomisation,
            action_scale=ACTION_SCALE, episode_seconds=SECONDS, autoreset_mode='Disabled',
        )  # fmt: skip


def with_friction(low: float, high: float, **parameters: Any) -> Randomisation:
    """Return the small differences with other friction, and parameters of contact models."""
    return Randomisation(
        joint_start=START.joint_start, velocity_start=START.velocity_start,
        friction=(low, high), parameters=parameters,
    )  # fmt: skip


TRAINED = (
    Setting('ncp', ['ncp']),
    Setting('compliant', ['compliant']),
    Setting('soft', [SOFT]),
    Setting(
        'randomised', MODELS,
        with_friction(0.3, 1.0, compliant={'stiffness': (2e3, 5e4)}),
    ),
)  # fmt: skip
TESTED = (
    *(Setting(name, [name]) for name in MODELS),
    Setting('soft', [SOFT]),
    Setting('ncp μ 0.3', ['ncp'], with_friction(0.3, 0.3)),
)


# --- The gait

NAMES = (
    'frequency', 'thigh', 'thigh phase', 'thigh offset', 'calf', 'calf offset', 'speed', 'pitch',
    'pitch rate', 'roll',
)  # fmt: skip
FIRST = np.array([2.0, 0.1, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0])
"""A weak trot on the spot."""
UNIT = np.array([0.5, 0.1, 0.5, 0.1, 0.15, 0.1, 0.2, 0.5, 0.05, 0.5])
"""By how much CMA-ES changes each number at first."""
DIAGONAL = np.array([0.0, np.pi, np.pi, 0.0])
"""Phase of each leg: FL, FR, RL, RR."""


def actions_of(gaits: Array, observations: NDArray[np.float32], seconds: float) -> Array:
    """Return the actions (n, 12) of gaits (n, 10) that see observations (n, 48)."""
    frequency, thigh, lead, thigh_at, calf, calf_at, speed, pitch, pitch_rate, roll = gaits.T
    forward, turning = observations[:, 0] / 2.0, observations[:, 4] / 0.25
    gravity, command = observations[:, 6:9], observations[:, 9] / 2.0
    phase = 2.0 * np.pi * frequency[:, None] * seconds + DIAGONAL
    correction = speed * (command - forward) + pitch * gravity[:, 0] + pitch_rate * turning
    swing = thigh[:, None] * np.cos(phase + lead[:, None])
    changes = np.empty((len(gaits), 4, 3))
    changes[:, :, 0] = (roll * gravity[:, 1])[:, None]
    changes[:, :, 1] = swing + (thigh_at + correction)[:, None]
    changes[:, :, 2] = calf_at[:, None] - calf[:, None] * np.maximum(0.0, np.sin(phase))
    return changes.reshape(len(gaits), 12) / ACTION_SCALE


def run(env: VectorEnv, gaits: Array, seed: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return reward per second, mean forward speed [m/s] and falls of one gait per world."""
    observations, _ = env.reset(seed=seed, options={'velocity': COMMAND})
    n, steps = env.num_envs, round(SECONDS / PERIOD)
    earned, way, fell = np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool)
    for step in range(steps):
        actions = actions_of(gaits, observations, step * PERIOD)
        observations, reward, now, _, _ = env.step(actions)
        earned += np.where(fell, 0.0, reward)
        way += np.where(fell, 0.0, PERIOD * observations[:, 0] / 2.0)
        fell |= now
        if now.any() and step < steps - 1:  # they go on in episodes that count for nothing
            observations, _ = env.reset(options={'reset_mask': now, 'velocity': COMMAND})
    return earned / SECONDS, way / SECONDS, fell


# --- Training and the table


def train(setting: Setting, generations: int, seed: int) -> tuple[Array, list[float]]:
    """Return the best gait and the mean fitness of every generation."""
    each = len(setting.models) if len(setting.models) > 1 else 2
    env = setting.env(CANDIDATES * each)
    options = {'popsize': CANDIDATES, 'seed': seed + 1, 'verbose': -9}
    search = cma.CMAEvolutionStrategy(np.zeros(len(FIRST)), 0.7, options)
    history = []
    for generation in range(generations):
        candidates = np.array(search.ask())
        gaits = np.repeat(FIRST + UNIT * candidates, each, axis=0)  # neighbours: other models
        earned, _, _ = run(env, gaits, 1000 * seed + CANDIDATES * each * generation)
        fitness = earned.reshape(CANDIDATES, each).mean(axis=1)
        search.tell(list(candidates), (-fitness).tolist())
        history.append(float(fitness.mean()))
    return FIRST + UNIT * search.result.xfavorite, history


def evaluate(gait: Array, setting: Setting, worlds: int = 8) -> tuple[float, float, float]:
    """Return reward per second, forward speed [m/s] and share of falls of a gait."""
    env = setting.env(worlds)
    earned, speed, fell = run(env, np.tile(gait, (worlds, 1)), seed=10_000_000)
    return float(earned.mean()), float(speed.mean()), float(fell.mean())


def main() -> None:
    """Train, test and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--generations', type=int, default=25)
    parser.add_argument('--seed', type=int, default=0)
    options = parser.parse_args()
    gaits = {'untrained': FIRST}
    for setting in TRAINED:
        begin = time.perf_counter()
        gaits[setting.name], history = train(setting, options.generations, options.seed)
        print(
            f'trained under {setting.name}: mean fitness {history[0]:.3f} to {history[-1]:.3f} '
            f'in {len(history)} generations, {time.perf_counter() - begin:.0f} s',
            flush=True,
        )
    print('\nreward per second / forward speed [m/s] (share of falls)')
    print(f'{"trained under":14}' + ''.join(f'{setting.name:>18}' for setting in TESTED))
    for name, gait in gaits.items():
        cells = []
        for setting in TESTED:
            reward, speed, falls = evaluate(gait, setting)
            fallen = f' ({falls:.0%})' if falls else ''
            cells.append(f'{f"{reward:.2f} / {speed:.2f}{fallen}":>18}')
        print(f'{name:14}' + ''.join(cells), flush=True)


if __name__ == '__main__':
    main()
