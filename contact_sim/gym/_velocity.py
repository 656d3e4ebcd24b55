"""Velocity tracking: commands, observation, rewards, falls and what is randomised, in n worlds.

An action is the change of the joint targets from the standing pose over `action_scale`, one number
in [−1, 1] per joint. The gains act in every time step, the action holds for one control period of
`decimation` time steps. The observation is a layout of `contact_sim.control` (docs/policies.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array, Mask
from contact_sim._validation import (
    LARGEST,
    as_tuple,
    checked,
    checked_fields,
    count,
    indices,
    number_within,
    positive,
    real_array,
)
from contact_sim.collision._terrain import Plane, Terrain, TerrainLike, as_terrain
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel
from contact_sim.control._policy import gravity_direction, layout_observation
from contact_sim.errors import InvalidInput, UnknownName, summary
from contact_sim.parameters import declared_parameters
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._state import standing_on
from contact_sim.simulation._worlds import Worlds

Range = tuple[float, float]
"""Least and largest value of what is drawn uniformly."""
Generator = np.random.Generator
NOISE = {
    'base_lin_vel': 0.1, 'base_ang_vel': 0.2, 'projected_gravity': 0.05, 'joint_pos': 0.01,
    'joint_vel': 1.5,
}  # fmt: skip
"""Bounds of the noise of parts of the observation before they are scaled, with `noise` = 1 [m/s,
rad/s, -, rad, rad/s]; as legged_gym has them."""


# --- Settings


@checked_fields
@dataclass(frozen=True)
class Commands:
    """Which velocities are commanded, in the axes of the base.

    Raises:
        InvalidInput: a range whose ends are not finite and in order.
    """

    forward: Range = (-1.0, 1.0)
    """[m/s]."""
    sideways: Range = (-0.5, 0.5)
    """[m/s]."""
    turn: Range = (-1.0, 1.0)
    """[rad/s]."""
    seconds: float = 10.0
    """Time from one command to the next [s]."""
    still: float = 0.1
    """Probability of a command to stand still [-]."""

    def __post_init__(self) -> None:
        for name in ('forward', 'sideways', 'turn'):
            check_range(f'Commands.{name}', getattr(self, name), -LARGEST)
        positive('Commands.seconds', self.seconds, 's')
        number_within('Commands.still', self.still, 1.0)


@checked_fields
@dataclass(frozen=True)
class Rewards:
    """Weights of the terms of the reward; all but the last are multiplied by the control period.

    c is the command, v and ω are of the base in its own axes, g is the direction of gravity there.
    """

    tracking_lin_vel: float = 1.0
    """exp(−((c_x − v_x)² + (c_y − v_y)²) / 0.25)."""
    tracking_ang_vel: float = 0.5
    """exp(−(c_ω − ω_z)² / 0.25)."""
    lin_vel_z: float = -2.0
    """v_z² [m²/s²]."""
    ang_vel_xy: float = -0.05
    """ω_x² + ω_y² [rad²/s²]."""
    orientation: float = -1.0
    """g_x² + g_y² [-]."""
    torques: float = -1e-5
    """Sum of squared efforts at the end of the period [N² m²]."""
    dof_acc: float = -2.5e-7
    """Sum of squared mean accelerations of the joints in the period [rad²/s⁴]."""
    action_rate: float = -0.01
    """Sum of squared changes of the action [-]."""
    termination: float = -1.0
    """1 in the step of a fall."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            if not np.isfinite(getattr(self, entry.name)):
                raise InvalidInput(f'Rewards.{entry.name}: expected a finite number')


@checked_fields
@dataclass(frozen=True, eq=False)
class Randomisation:
    """What differs from world to world and from episode to episode; by default nothing.

    Friction, masses and parameters of the contact model are drawn with the seed: in `VectorEnv`
    for each world by `reset(seed=...)`, in `Env` also by every other reset. The rest is drawn
    anew in every episode.

    Raises:
        InvalidInput: ranges whose ends are not finite and in order.
    """

    friction: Range = (0.8, 0.8)
    """Coulomb coefficient of the ground [-]."""
    mass_scale: Range = (1.0, 1.0)
    """Factor of the mass and inertia of each body, one for each [-]."""
    parameters: Mapping[str, Mapping[str, Range]] = field(default_factory=dict)
    """Ranges of parameters by the name of the contact model; drawn evenly in the logarithm where
    both ends are above 0."""
    push: Range = (0.0, 0.0)
    """Horizontal impulses on the base, in any direction [N s]."""
    push_interval: Range = (4.0, 8.0)
    """Time between two pushes [s]."""
    push_seconds: float = 0.1
    """Time that a push lasts, rounded to control periods [s]."""
    noise: float = 0.0
    """Noise of the observation over that of legged_gym [-]."""
    joint_start: float = 0.0
    """Largest change of a joint at the start [rad]; the base is lifted as much over its height."""
    velocity_start: float = 0.0
    """Largest velocity of the base at the start, along each axis [m/s]."""
    heading: bool = False
    """Whether the robot starts in any heading."""

    def __post_init__(self) -> None:
        for name, least in (('friction', 0.0), ('push', 0.0), ('push_interval', 0.0)):
            check_range(f'Randomisation.{name}', getattr(self, name), least)
        check_range('Randomisation.mass_scale', self.mass_scale, 1e-3)
        positive('Randomisation.push_seconds', self.push_seconds, 's')
        for name in ('noise', 'joint_start', 'velocity_start'):
            number_within(f'Randomisation.{name}', getattr(self, name), 10.0)

    @property
    def of_worlds(self) -> bool:
        """Whether worlds differ in what they are made of."""
        ranges = [self.friction, self.mass_scale]
        ranges += [own for values in self.parameters.values() for own in values.values()]
        return any(low != high for low, high in ranges)


def check_range(name: str, value: Any, least: float) -> Range:
    """Return least and largest value if they are finite and in order."""
    numbers = real_array(name, value)
    if numbers.shape != (2,) or not (least <= numbers[0] <= numbers[1] <= LARGEST):
        raise InvalidInput(
            f'{name} = {value}: expected two finite numbers in order'
            + (f', from {least:g}' if least > -LARGEST else '')
        )
    return float(numbers[0]), float(numbers[1])


USUAL = Randomisation(
    friction=(0.4, 1.2),
    mass_scale=(0.9, 1.1),
    push=(0.0, 6.0),
    noise=1.0,
    joint_start=0.1,
    velocity_start=0.2,
    heading=True,
)
"""Randomisation of about the size that legged_gym uses."""


# --- The worlds


class VelocityWorlds:
    """n worlds in which a robot tracks velocities; `Env` and `VectorEnv` are made of it.

    World i has the contact model i mod the number of models: the worlds of one model are one
    `Worlds`.

    Args:
        n: number of worlds.
        robot: a robot, its name or the path of its URDF.
        contact_models: time-stepping models by name or value, one or several.
        terrain: a ground, or several, of which every episode draws one.
        time_step: h [s].
        decimation: time steps per control period.
        gains: kp [N m/rad] and kd [N m s/rad], numbers or one per joint; None: the robot's own.
        action_scale: change of a joint target by an action of 1 [rad], a number or one per joint.
        layout: layout of the observation.
        commands: which velocities are commanded.
        rewards: weights of the terms of the reward.
        randomisation: what is drawn.
        episode_seconds: length of an episode [s].
        tilt_limit: tilt of the base that counts as a fall [rad].
        height_limit: height of the base over the ground that counts as a fall, over its standing
            height [-].
        threads: number of threads; None: the number of cores.

    Raises:
        InvalidInput, UnknownName: values that are not allowed, by their names.
    """

    @checked
    def __init__(
        self,
        n: int,
        robot: str | RobotModel = 'go1',
        contact_models: str | ContactModel | Sequence[str | ContactModel] = 'ncp',
        terrain: TerrainLike | Sequence[TerrainLike] = 'plane',
        time_step: float = 2e-3,
        decimation: int = 10,
        gains: tuple[ArrayLike, ArrayLike] | None = None,
        action_scale: float | ArrayLike = 0.25,
        layout: str = 'legged_gym',
        commands: Commands | None = None,
        rewards: Rewards | None = None,
        randomisation: Randomisation | None = None,
        episode_seconds: float = 20.0,
        tilt_limit: float = np.pi / 3,
        height_limit: float = 0.5,
        threads: int | None = None,
    ) -> None:
        self.n = count('num_envs', n)
        self.robot = load_robot(robot) if isinstance(robot, str) else robot
        if not self.robot.floating_base or not self.robot.n_joints:
            raise InvalidInput(f'robot {self.robot.name}: expected driven joints, a floating base')
        models = one_or_several(contact_models)
        if not 1 <= len(models) <= self.n:
            raise InvalidInput(f'contact_models: {len(models)} of them, expected 1 to {self.n}')
        self.models = [as_contact_model(model) for model in models]
        self._terrains = [as_terrain(ground) for ground in one_or_several(terrain)]
        if not self._terrains:
            raise InvalidInput('terrain: expected at least one')
        self._time_step = positive('time_step', time_step, 's')
        self._decimation = count('decimation', decimation)
        self.period = self._time_step * self._decimation
        joints = self.robot.n_joints
        kp, kd = self.robot.default_gains if gains is None else gains
        self.kp = joint_values('gains: kp', kp, joints)
        self.kd = joint_values('gains: kd', kd, joints)
        self.action_scale = joint_values('action_scale', action_scale, joints)
        self.layout = layout
        self._commands = Commands() if commands is None else commands
        self._rewards = Rewards() if rewards is None else rewards
        self._randomisation = Randomisation() if randomisation is None else randomisation
        self._check_parameters()
        self.episode_steps = max(
            1, round(positive('episode_seconds', episode_seconds, 's') / self.period)
        )
        number_within('tilt_limit', tilt_limit, np.pi)
        self._upright = float(np.cos(tilt_limit))
        self._standing_height = float(self.robot.reference_configuration()[2])
        self._lowest = number_within('height_limit', height_limit, 1.0) * self._standing_height
        self._threads = threads
        self._make_observation()
        self._groups = [np.arange(k, self.n, len(self.models)) for k in range(len(self.models))]
        self._worlds: list[Worlds] = []
        self._ground = [self._terrains[0]] * self.n
        self._make_arrays()

    def _make_observation(self) -> None:
        """Make what observes the worlds, and the noise of each number."""
        self.pose = self.robot.joint_positions(self.robot.reference_configuration())
        self._observation, self.observation_bound, _ = layout_observation(
            self.layout, self.robot, self.pose
        )
        self.observation_size = self._observation.size
        self._noise = np.concatenate([
            np.full(part.size, NOISE.get(part.name, 0.0)) * part.scale
            for part in self._observation.parts
        ])  # fmt: skip

    def _make_arrays(self) -> None:
        """Make the arrays with a row for each world."""
        shape = (self.n, self.robot.n_joints)
        self._q = np.zeros((self.n, self.robot.nq))
        self._v = np.zeros((self.n, self.robot.nv))
        self._action, self._effort = np.zeros(shape), np.zeros(shape)
        self.velocity = np.zeros((self.n, 3))
        self._fixed = np.zeros(self.n, dtype=bool)
        self._elapsed = np.zeros(self.n, dtype=np.int64)
        self._next_push, self._push_end = np.zeros(self.n), np.zeros(self.n)
        self._force = np.zeros((self.n, 6))

    def model_of(self, world: int) -> ContactModel:
        """Return the contact model of a world, without what is drawn."""
        return self.models[world % len(self.models)]

    def _check_parameters(self) -> None:
        by_name = {model.name: model for model in self.models}
        for name, ranges in self._randomisation.parameters.items():
            if name not in by_name:
                raise UnknownName('contact model of randomisation.parameters', name, by_name)
            own = by_name[name].parameter_class
            known = [entry.name for entry in declared_parameters(own)]  # type: ignore[arg-type]
            for parameter, values in ranges.items():
                if parameter not in known:
                    raise UnknownName(f'parameter of {name}', parameter, known)
                check_range(f'randomisation.parameters.{name}.{parameter}', values, -LARGEST)

    # ------------------------------------------------------------------------------- episodes

    def build(self, generators: Sequence[Generator]) -> None:
        """Make the worlds, with what is drawn for each by its generator."""
        drawn, self._worlds = self._randomisation, []
        if not self.varied:  # nothing to draw: the generators go on as if the worlds were there
            generators = [np.random.default_rng(0) for _ in range(self.n)]
        frictions, masses, models = [], [], []
        for i, generator in enumerate(generators):
            frictions.append(generator.uniform(*drawn.friction))
            inertias = list(self.robot.pinocchio_model.inertias)[1:]
            scales = generator.uniform(*drawn.mass_scale, len(inertias))
            masses.append(scales * [inertia.mass for inertia in inertias])
            models.append(self._drawn_model(self.model_of(i), generator))
        other_masses = drawn.mass_scale != (1.0, 1.0)
        for group in self._groups:
            own = [models[i] for i in group]
            self._worlds.append(
                Worlds(
                    self.robot,
                    len(group),
                    own[0] if all(model is own[0] for model in own) else own,
                    terrain=[self._ground[i] for i in group],
                    friction=np.array(frictions)[group, None],
                    time_step=self._time_step,
                    masses=np.array(masses)[group] if other_masses else None,
                    threads=self._threads,
                )
            )

    def _drawn_model(self, model: ContactModel, generator: Generator) -> ContactModel:
        """Return the model with the parameters that are drawn for one world."""
        ranges = self._randomisation.parameters.get(model.name, {})
        if not ranges:
            return model
        values = {}
        for name, (low, high) in ranges.items():
            even = generator.uniform()
            logarithmic = low > 0.0
            values[name] = low * (high / low) ** even if logarithmic else low + even * (high - low)
        return type(model)(**{**vars(model.parameters), **values})

    @property
    def built(self) -> bool:
        """Whether there are worlds."""
        return bool(self._worlds)

    @property
    def varied(self) -> bool:
        """Whether worlds differ in what they are made of."""
        return self._randomisation.of_worlds

    def reset(
        self,
        which: NDArray[np.int64],
        generators: Sequence[Generator],
        velocity: ArrayLike | None = None,
    ) -> None:
        """Start episodes in the worlds `which`, drawn by the generators of all worlds.

        `velocity` (3,) or one row per world of `which` is the command of the whole episode.

        Raises:
            InvalidInput: not one generator per world, a velocity of another shape.
        """
        drawn, commanded = self._randomisation, None
        if velocity is not None:
            commanded = real_array('velocity', velocity)
            if commanded.shape not in ((3,), (len(which), 3)) or not np.isfinite(commanded).all():
                raise InvalidInput(
                    f'velocity: shape {commanded.shape}, expected finite (3,) or ({len(which)}, 3)'
                )
            commanded = np.broadcast_to(commanded, (len(which), 3))
        if len(generators) != self.n:
            raise InvalidInput(f'generators: {len(generators)}, expected one per world, {self.n}')
        q, v = np.zeros((len(which), self.robot.nq)), np.zeros((len(which), self.robot.nv))
        for row, i in enumerate(which):
            generator = generators[i]
            self._ground[i] = self._terrains[int(generator.integers(len(self._terrains)))]
            heading = generator.uniform(-np.pi, np.pi) if drawn.heading else 0.0
            q[row] = standing_on(self.robot, self._ground[i], yaw=heading)
            change = generator.uniform(-1.0, 1.0, self.robot.n_joints) * drawn.joint_start
            if drawn.joint_start > 0.0:
                positions = self.robot.joint_positions(q[row]) + change
                q[row] = self.robot.with_joint_positions(q[row], positions)
                q[row, 2] += drawn.joint_start * self._standing_height
            v[row, :3] = generator.uniform(-1.0, 1.0, 3) * drawn.velocity_start
            self._next_push[i] = generator.uniform(*drawn.push_interval)
            self._fixed[i] = commanded is not None
            self.velocity[i] = (
                self._drawn_velocity(generator) if commanded is None else commanded[row]
            )
        self._q[which], self._v[which] = q, v
        for array in (self._action, self._effort, self._elapsed, self._push_end, self._force):
            array[which] = 0
        places = {int(i): row for row, i in enumerate(which)}
        for group, worlds in zip(self._groups, self._worlds, strict=True):
            own = [(k, places[int(i)]) for k, i in enumerate(group) if int(i) in places]
            if own:
                inside, rows = map(list, zip(*own, strict=True))
                grounds = [self._ground[i] for i in which[rows]]
                worlds.reset(q[rows], v[rows], worlds=inside, terrain=grounds)

    def _drawn_velocity(self, generator: Generator) -> Array:
        commands = self._commands
        still = generator.uniform() < commands.still
        drawn = [
            generator.uniform(*own) for own in (commands.forward, commands.sideways, commands.turn)
        ]
        return np.zeros(3) if still else np.array(drawn)

    # ------------------------------------------------------------------------------- steps

    def observe(
        self, which: NDArray[np.int64], generators: Sequence[Generator]
    ) -> NDArray[np.float32]:
        """Return the observations of the worlds `which`, shape (m, observation_size).

        Raises:
            InvalidInput: worlds that do not exist, generators that are missing.
        """
        which = indices('which', which, self.n)
        if len(as_tuple('generators', generators)) < self.n:
            raise InvalidInput(f'generators: expected {self.n}, one for each world')
        time = np.asarray(self._elapsed[which] * self.period, dtype=float)
        frame = self._observation.of(
            self._q[which], self._v[which], self.velocity[which], self._action[which], time
        )
        level = self._randomisation.noise
        if level > 0.0:
            draws = [
                generators[i].uniform(-1.0, 1.0, self.observation_size) for i in which.tolist()
            ]
            frame = frame + level * self._noise * np.array(draws)
        bound = self.observation_bound
        return np.clip(frame, -bound, bound).astype(np.float32)

    def step(
        self, actions: ArrayLike, generators: Sequence[Generator], idle: Mask
    ) -> tuple[Array, Mask, Mask, dict[str, Array]]:
        """Advance all worlds by one control period.

        Args:
            actions: (n, n_joints), clipped to [−1, 1].
            generators: of all worlds.
            idle: worlds whose step does not count, shape (n,): nothing is drawn for them.

        Returns:
            Rewards (n,), whether each robot fell (n,), whether its time is over (n,), and the
            terms of the reward by name, each (n,).
        """
        given = real_array('actions', actions)
        if given.shape != self._action.shape or not np.isfinite(given).all():
            raise InvalidInput(
                f'actions: shape {given.shape}, expected finite numbers {self._action.shape}'
            )
        action = np.clip(given, -1.0, 1.0)
        self._draw_pushes(generators, idle)
        targets, zero = self.pose + self.action_scale * action, np.zeros(self.robot.n_joints)
        before = self._v.copy()
        running = np.ones(self.n, dtype=bool)
        for group, worlds in zip(self._groups, self._worlds, strict=True):
            if self._randomisation.push[1] > 0.0:
                worlds.push(self.robot.base_frame, self._force[group])
            rollout = worlds.follow(
                [JointCommand(targets[i], zero, zero, self.kp, self.kd) for i in group],
                self._decimation,
            )
            self._q[group], self._v[group] = rollout.q[-1], rollout.v[-1]
            self._effort[group], running[group] = rollout.effort[-1], worlds.running
        self._elapsed += 1
        fell = self._fallen() | ~running
        with np.errstate(over='ignore'):  # of a world that has come apart
            terms = self._terms(action, before, fell)
        self._action = action
        over = self._elapsed >= self.episode_steps
        self._draw_commands(generators, idle | fell | over)
        reward = np.zeros(self.n)
        for values in terms.values():  # in this order, whatever the number of worlds
            reward += values
        return reward, fell, over & ~fell, terms

    def _terms(self, action: Array, before: Array, fell: Mask) -> dict[str, Array]:
        """Return the weighted terms of the reward, each (n,)."""
        v, command, weights = self._v, self.velocity, self._rewards
        tilt = gravity_direction(self._q)[:, :2]
        joints = self.robot.joint_velocity_index
        acceleration = (v[:, joints] - before[:, joints]) / self.period
        terms = {
            'tracking_lin_vel': np.exp(-squares(command[:, :2] - v[:, :2]) / 0.25),
            'tracking_ang_vel': np.exp(-squares(command[:, 2:] - v[:, 5:6]) / 0.25),
            'lin_vel_z': squares(v[:, 2:3]),
            'ang_vel_xy': squares(v[:, 3:5]),
            'orientation': squares(tilt),
            'torques': squares(self._effort),
            'dof_acc': squares(acceleration),
            'action_rate': squares(action - self._action),
        }
        terms = {
            name: np.clip(self.period * getattr(weights, name) * x, -LARGEST, LARGEST)
            for name, x in terms.items()
        }
        return terms | {'termination': weights.termination * fell}

    def _fallen(self) -> Mask:
        """Return which robots lie or lean too far, shape (n,)."""
        leaning = -gravity_direction(self._q)[:, 2] < self._upright
        ground = np.array([height_below(*own) for own in zip(self._ground, self._q, strict=True)])
        low = self._q[:, 2] - ground < self._lowest  # never where there is none below: NaN
        return np.asarray(leaning | low)

    def _draw_pushes(self, generators: Sequence[Generator], idle: Mask) -> None:
        """Start and end pushes; all last whole control periods."""
        drawn, time = self._randomisation, self._elapsed * self.period
        if drawn.push[1] == 0.0:
            return
        self._force[time >= self._push_end - 1e-9] = 0.0
        lasting = max(1, round(drawn.push_seconds / self.period)) * self.period
        for i in np.flatnonzero((time >= self._next_push - 1e-9) & ~idle).tolist():
            generator = generators[i]
            impulse, angle = generator.uniform(*drawn.push), generator.uniform(-np.pi, np.pi)
            self._force[i, :2] = impulse / lasting * np.array([np.cos(angle), np.sin(angle)])
            self._push_end[i] = time[i] + lasting
            self._next_push[i] = time[i] + lasting + generator.uniform(*drawn.push_interval)

    def _draw_commands(self, generators: Sequence[Generator], idle: Mask) -> None:
        each = max(1, round(self._commands.seconds / self.period))
        for i in np.flatnonzero((self._elapsed % each == 0) & ~idle & ~self._fixed).tolist():
            self.velocity[i] = self._drawn_velocity(generators[i])

    @property
    def q(self) -> Array:
        """Configurations, shape (n, nq)."""
        return self._q.copy()

    @property
    def v(self) -> Array:
        """Velocities, shape (n, nv)."""
        return self._v.copy()

    def policy_description(self, network: str) -> dict[str, Any]:
        """Return the content of the YAML file with which `load_policy` runs a trained network.

        Args:
            network: name of the ONNX file beside it, observations to actions.
        """
        return {
            'layout': self.layout,
            'network': network,
            'joints': list(self.robot.joint_names),
            'pose': self.pose.tolist(),
            'gains': {'kp': self.kp.tolist(), 'kd': self.kd.tolist()},
            'action': {'scale': self.action_scale.tolist(), 'clip': 1.0},
            'period': self.period,
        }

    def __repr__(self) -> str:
        return summary(
            self, n=self.n, robot=self.robot.name, models=[model.name for model in self.models]
        )


def height_below(ground: Terrain, q: Array) -> float:
    """Return the height of the ground below the base at q (nq,) [m], NaN where there is none."""
    if isinstance(ground, Plane) and ground.normal[0] == ground.normal[1] == 0.0:
        return ground.offset if ground.normal[2] > 0.0 else float('nan')
    return ground.height(float(q[0]), float(q[1]))


def squares(rows: Array) -> Array:
    """Return the sum of squares of each row, to the same bits for any number of rows."""
    total = np.zeros(len(rows))
    for column in np.ascontiguousarray(rows.T):
        total += column * column
    return total


def one_or_several(value: Any) -> list[Any]:
    """Return the items of a list or tuple, or the one value."""
    single = isinstance(value, str) or not isinstance(value, Sequence)
    return [value] if single else list(value)


def joint_values(name: str, value: ArrayLike, joints: int) -> Array:
    """Return finite numbers of at least 0, one per joint."""
    numbers = real_array(name, value)
    if numbers.shape not in ((), (joints,)) or not ((numbers >= 0.0) & (numbers <= LARGEST)).all():
        raise InvalidInput(
            f'{name}: shape {numbers.shape}, expected one number or ({joints},), at least 0'
        )
    return np.broadcast_to(numbers, (joints,)).copy()
