"""Gymnasium environments of velocity tracking: one world, and many in compiled threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array, Mask
from contact_sim._validation import as_tuple, whole
from contact_sim.errors import InvalidInput, UnknownName, known_name, shown, summary
from contact_sim.gym._velocity import VelocityWorlds, one_or_several

try:  # an extra
    import gymnasium
    from gymnasium import spaces
    from gymnasium.utils import seeding
    from gymnasium.vector import AutoresetMode
    from gymnasium.vector.utils import batch_space
except ImportError as error:
    raise ImportError("contact_sim.gym needs gymnasium: pip install 'contact_sim[gym]'") from error

FrameArray = NDArray[np.float32]
OPTIONS = ('velocity', 'reset_mask')
"""Options of a reset."""


def single_spaces(task: VelocityWorlds) -> tuple[Any, Any]:
    """Return the spaces of one observation and one action."""
    bound = task.observation_bound
    return (
        spaces.Box(-bound, bound, (task.observation_size,), np.float32),
        spaces.Box(-1.0, 1.0, (task.robot.n_joints,), np.float32),
    )


def check_render_mode(render_mode: str | None) -> None:
    """Refuse modes of rendering: the viewer and the replays show a run."""
    if render_mode is not None:
        raise InvalidInput(f'render_mode = {shown(render_mode)}: expected None')


def checked_options(options: dict[str, Any] | None, known: Sequence[str]) -> dict[str, Any]:
    """Return the options of a reset."""
    if options is not None and not isinstance(options, Mapping):
        raise InvalidInput(f'options = {shown(options)}: expected options by name')
    for name in options or {}:
        if name not in known:
            raise UnknownName('option of reset', name, known)
    return options or {}


def checked_seed(seed: object) -> int:
    """Return a seed, a whole number of at least 0."""
    number = whole('seed', seed)
    if number < 0:
        raise InvalidInput(f'seed = {number}: expected a whole number of at least 0')
    return number


class Env(gymnasium.Env):
    """Velocity tracking of one robot: `gymnasium.make('contact_sim/Velocity-v0')`.

    With several contact models every reset draws one of them.

    Args:
        render_mode: None.
        contact_models: time-stepping models by name or value, one or several.
        settings: of `VelocityWorlds`, which see.

    Raises:
        InvalidInput, UnknownName: values that are not allowed, by their names.
    """

    metadata: dict[str, Any] = {'render_modes': []}  # noqa: RUF012  as in the base class

    def __init__(
        self, render_mode: str | None = None, contact_models: Any = 'ncp', **settings: Any
    ) -> None:
        check_render_mode(render_mode)
        settings = {'threads': 1} | settings
        self.tasks = [
            VelocityWorlds(1, contact_models=model, **settings)
            for model in one_or_several(contact_models)
        ]
        if not self.tasks:
            raise InvalidInput('contact_models: expected at least one')
        self.task = self.tasks[0]
        self.observation_space, self.action_space = single_spaces(self.task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FrameArray, dict[str, Any]]:
        """Start an episode; see Gymnasium.

        Args:
            seed: of all that is drawn from now on.
            options: `velocity`: the command of the whole episode, (3,) [m/s, m/s, rad/s].
        """
        super().reset(seed=None if seed is None else checked_seed(seed))
        chosen = checked_options(options, OPTIONS[:1])
        generators = [self.np_random]
        if len(self.tasks) > 1:
            self.task = self.tasks[int(self.np_random.integers(len(self.tasks)))]
        if self.task.varied or not self.task.built:
            self.task.build(generators)
        self.task.reset(np.arange(1), generators, chosen.get('velocity'))
        return self.task.observe(np.arange(1), generators)[0], self._info()

    def step(self, action: ArrayLike) -> tuple[FrameArray, float, bool, bool, dict[str, Any]]:
        """Advance by one control period; see Gymnasium.

        The information has the command, the terms of the reward and the contact model.
        """
        if not self.task.built:
            raise InvalidInput('step before the first reset')
        generators = [self.np_random]
        actions = np.asarray(action, dtype=float)[None]
        reward, fell, over, terms = self.task.step(actions, generators, np.zeros(1, dtype=bool))
        info = self._info() | {'reward_terms': {name: float(x[0]) for name, x in terms.items()}}
        observation = self.task.observe(np.arange(1), generators)[0]
        return observation, float(reward[0]), bool(fell[0]), bool(over[0]), info

    def _info(self) -> dict[str, Any]:
        return {
            'velocity': self.task.velocity[0].copy(),
            'contact_model': self.task.model_of(0).name,
        }

    def __repr__(self) -> str:
        return summary(self, task=self.task)


class VectorEnv(gymnasium.vector.VectorEnv):
    """Velocity tracking in many worlds: `gymnasium.make_vec('contact_sim/Velocity-v0', n)`.

    World i has the seed of the reset plus i, and the contact model i mod the number of models.

    Args:
        num_envs: number of worlds.
        render_mode: None.
        autoreset_mode: what happens after the end of an episode: AutoresetMode.NEXT_STEP (the
            next step starts another, its action counts for nothing), SAME_STEP (the same step
            does; the last observation is in infos['final_obs']) or DISABLED (reset with the
            option reset_mask).
        settings: of `VelocityWorlds`, which see.

    Raises:
        InvalidInput, UnknownName: values that are not allowed, by their names.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        'render_modes': [],
        'autoreset_mode': AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 64,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **settings: Any,
    ) -> None:
        check_render_mode(render_mode)
        if isinstance(autoreset_mode, AutoresetMode):
            self._mode = autoreset_mode
        else:
            modes = [mode.value for mode in AutoresetMode]
            self._mode = AutoresetMode(known_name('autoreset_mode', autoreset_mode, modes))
        self.metadata = type(self).metadata | {'autoreset_mode': self._mode}
        self.task = VelocityWorlds(num_envs, **settings)
        self.num_envs = self.task.n
        self.single_observation_space, self.single_action_space = single_spaces(self.task)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._generators: list[np.random.Generator] = []
        self._ended = np.zeros(self.num_envs, dtype=bool)
        self._all = np.arange(self.num_envs)
        self._observation = np.zeros(self.observation_space.shape, np.float32)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[FrameArray, dict[str, Any]]:
        """Start episodes in all worlds; see Gymnasium.

        Args:
            seed: world i has seed + i, or the i-th of a list.
            options: `velocity`: the command of the whole episode, (3,) or one row per world
                [m/s, m/s, rad/s]; `reset_mask`: which worlds, (n,), the others go on.
        """
        chosen = checked_options(options, OPTIONS)
        which = np.flatnonzero(self._mask(chosen.get('reset_mask')))
        if seed is not None or not self._generators:
            if len(which) < self.num_envs:
                raise InvalidInput('reset_mask: expected none with a seed or in the first reset')
            self._generators = [seeding.np_random(own)[0] for own in self._seeds(seed)]
            if self.task.varied or not self.task.built:
                self.task.build(self._generators)
        self.task.reset(which, self._generators, chosen.get('velocity'))
        self._ended[which] = False
        self._observation[which] = self.task.observe(which, self._generators)
        return self._observation.copy(), self._info()

    def step(self, actions: ArrayLike) -> tuple[FrameArray, Array, Mask, Mask, dict[str, Any]]:
        """Advance all worlds by one control period; see Gymnasium.

        The information has the command, and the terms of the reward by name, each (n,).
        """
        if not self._generators:
            raise InvalidInput('step before the first reset')
        if self._mode is AutoresetMode.DISABLED and self._ended.any():
            worlds = np.flatnonzero(self._ended).tolist()
            raise InvalidInput(f'step of worlds {worlds}, whose episodes have ended: reset them')
        idle = self._ended.copy()
        reward, fell, over, terms = self.task.step(actions, self._generators, idle)
        if idle.any():  # their step is the reset
            self.task.reset(np.flatnonzero(idle), self._generators)
            for values in (reward, *terms.values()):
                values[idle] = 0.0
            fell[idle] = over[idle] = False
        observation = self.task.observe(self._all, self._generators)
        info = self._info() | {'reward_terms': terms}
        ended = fell | over
        if self._mode is AutoresetMode.SAME_STEP and ended.any():
            which, final = np.flatnonzero(ended), np.full(self.num_envs, None, dtype=object)
            for i in which:
                final[i] = observation[i].copy()
            info |= {'final_obs': final, '_final_obs': ended.copy()}
            info |= {'final_info': self._info(), '_final_info': ended.copy()}
            self.task.reset(which, self._generators)
            observation[which] = self.task.observe(which, self._generators)
            info |= self._info()
        else:
            self._ended = ended
        self._observation = observation
        return observation.copy(), reward, fell, over, info

    def _info(self) -> dict[str, Any]:
        return {'velocity': self.task.velocity.copy()}

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [checked_seed(seed) + i for i in range(self.num_envs)]
        seeds = as_tuple('seed', seed)
        if len(seeds) != self.num_envs:
            raise InvalidInput(f'seed: {len(seeds)} given, expected one or {self.num_envs}')
        return [None if own is None else checked_seed(own) for own in seeds]

    def _mask(self, mask: Any) -> Mask:
        if mask is None:
            return np.ones(self.num_envs, dtype=bool)
        chosen = np.asarray(mask)
        if chosen.dtype != bool or chosen.shape != (self.num_envs,) or not chosen.any():
            raise InvalidInput(
                f'reset_mask: expected True and False of {self.num_envs} worlds, one True'
            )
        return chosen

    def __repr__(self) -> str:
        return summary(self, task=self.task)


gymnasium.register(
    'contact_sim/Velocity-v0',
    entry_point='contact_sim.gym:Env',
    vector_entry_point='contact_sim.gym:VectorEnv',
)
