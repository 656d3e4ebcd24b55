"""Policies: trained neural networks as controllers.

A YAML file states what a network in an ONNX file observes, and how its actions a become targets of
joint PD:

    q* = q_pose + scale · f,    f = (1 − s) clip(a) + s f_before,    τ = k_p (q* − q) − k_d q̇

with the smoothing s. The network runs once per control period; τ follows q and q̇ in every call.
docs/policies.md describes the file and its layouts, which are the conventions of training
frameworks. All arithmetic is done for n worlds at once; one robot is a batch of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim import _reading
from contact_sim._types import Array, IndexArray
from contact_sim._validation import (
    LARGEST,
    as_tuple,
    check_unique,
    checked,
    closed_attributes,
    count,
    indices,
    number_within,
    positive,
    real_array,
    real_number,
    text,
)
from contact_sim.errors import InvalidInput, UnknownName, of_type, shown, summary
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._model import RobotModel

# --- Layouts

PER_JOINT = ('joint_pos', 'joint_vel', 'last_action')
"""Parts of an observation with one number per joint of the policy."""
OF_BASE = ('base_lin_vel', 'base_ang_vel', 'projected_gravity')
PARTS = (*OF_BASE, 'commands', *PER_JOINT, 'phase')
"""Parts that an observation may have."""
REFUSED = {'height_scan': 'the heights of the ground around the robot are not computed yet'}
"""Parts of published policies that are known but not supported, and why."""

LAYOUTS: dict[str, dict[str, Any]] = {
    'legged_gym': {
        'observation': [*OF_BASE, 'commands', *PER_JOINT],
        'scales': {
            'base_lin_vel': 2.0, 'base_ang_vel': 0.25, 'commands': [2.0, 2.0, 0.25],
            'joint_vel': 0.05,
        },
        'clip': 100.0,
        'action': {'scale': 0.5, 'clip': 100.0},
        'period': 0.02,
    },
    'unitree_rl_gym': {
        'observation': [
            'base_ang_vel', 'projected_gravity', 'commands', *PER_JOINT, 'phase',
        ],
        'scales': {'base_ang_vel': 0.25, 'commands': [2.0, 2.0, 0.25], 'joint_vel': 0.05},
        'action': {'scale': 0.25},
        'period': 0.02,
        'phase': {'period': 0.8, 'offsets': [0.0], 'order': 'sin_cos'},
    },
    'isaac_lab': {
        'observation': [*OF_BASE, 'commands', *PER_JOINT],
        'action': {'scale': 0.5},
        'period': 0.02,
        'history': {'order': 'by_part', 'newest': 'last', 'start': 'first'},
    },
    'mujoco_playground': {
        'observation': [*OF_BASE, *PER_JOINT, 'commands'],
        'action': {'scale': 0.5},
        'gains': {'kp': 35.0, 'kd': 0.5},
        'period': 0.02,
    },
    'mujoco_playground_humanoid': {
        'observation': [*OF_BASE, 'commands', *PER_JOINT, 'phase'],
        'action': {'scale': 0.5},
        'period': 0.02,
        'phase': {'period': 1.0 / 1.5, 'offsets': [0.0, 0.5], 'order': 'cos_sin'},
    },
}  # fmt: skip
"""Values of the keys of a file that it may leave out, by the name of the layout."""
DEFAULTS: dict[str, Any] = {
    'scales': {},
    'clips': {},
    'clip': np.inf,
    'action': {'clip': np.inf, 'smoothing': 0.0},
    'history': {'length': 1, 'order': 'by_frame', 'newest': 'last', 'start': 'first'},
    'velocity': [0.0, 0.0, 0.0],
}
SUBKEYS = {
    'gains': ('kp', 'kd'),
    'action': ('scale', 'clip', 'smoothing'),
    'history': ('length', 'order', 'newest', 'start'),
    'phase': ('period', 'offsets', 'order'),
    'scales': PARTS,
    'clips': PARTS,
}
KEYS = (
    'layout', 'network', 'joints', 'pose', 'observation', 'period', 'clip', 'velocity', *SUBKEYS,
)  # fmt: skip
REQUIRED = ('network', 'joints', 'pose', 'observation', 'period', 'gains', 'action.scale')
CHOICES = {
    'history.order': ('by_frame', 'by_part'),
    'history.newest': ('last', 'first'),
    'history.start': ('first', 'zeros'),
    'phase.order': ('sin_cos', 'cos_sin'),
}


def policy_layouts() -> tuple[str, ...]:
    """Return the names of the layouts that the file of a policy may have."""
    return tuple(LAYOUTS)


# --- The file


@dataclass(frozen=True, eq=False)
class Part:
    """One part of an observation."""

    name: str
    scale: Array
    """Factors, shape (size,)."""
    clip: float
    """Bound of its values before they are scaled."""

    @property
    def size(self) -> int:
        """Numbers of the part."""
        return len(self.scale)


@dataclass(frozen=True, eq=False)
class Phase:
    """A clock that some gaits are trained with."""

    period: float
    """[s]."""
    offsets: Array
    """Of every leg or pair of legs, in periods [-]."""
    order: str
    """sin_cos: all sines, then all cosines; cos_sin: the other way round."""

    def at(self, time: Array) -> Array:
        """Return sines and cosines `time` (n,) s after the start, shape (n, 2 offsets)."""
        angle = 2.0 * np.pi * (time[:, None] / self.period + self.offsets)
        waves = [np.sin(angle), np.cos(angle)]
        return np.concatenate(waves if self.order == 'sin_cos' else waves[::-1], axis=1)


@dataclass(frozen=True, eq=False)
class PolicyFile:
    """What the file of a policy states, checked; arrays per joint are in the order of `joints`."""

    path: Path
    network: Path
    joints: tuple[str, ...]
    pose: Array
    kp: Array
    kd: Array
    scale: Array
    action_clip: float
    smoothing: float
    period: float
    parts: tuple[Part, ...]
    clip: float
    history: int
    history_order: str
    history_newest: str
    history_start: str
    phase: Phase | None
    velocity: Array

    @property
    def frame_size(self) -> int:
        """Numbers of one observation without history."""
        return sum(part.size for part in self.parts)

    @property
    def observation_size(self) -> int:
        """Numbers that the network takes."""
        return self.history * self.frame_size

    @property
    def sizes(self) -> str:
        """The parts with their sizes, for messages."""
        listed = ', '.join(f'{part.name} {part.size}' for part in self.parts)
        return f'{listed}; history of {self.history}' if self.history > 1 else listed


def read_policy(path: Path, robot: RobotModel) -> PolicyFile:
    """Return the checked content of the file of a policy for this robot; see `load_policy`."""
    name = path.name
    stated = _with_layout(name, _mapping_in(path))
    joints = as_tuple(f'{name}: joints', stated['joints'], 'a list of joint names')
    check_unique('joint', joints)
    for joint in joints:
        if joint not in robot.joint_names:
            raise UnknownName(f'joint in {name}', joint, robot.joint_names)
    network = path.parent / text(f'{name}: network', stated['network'])
    if not network.is_file():
        raise InvalidInput(f'{name}: network: no file {network}')
    if network.stat().st_size > _reading.limits().bytes:
        raise _reading.beyond(network, f'{network.stat().st_size} bytes', 'bytes')
    gains, action, history = stated['gains'], stated['action'], stated['history']
    for key in SUBKEYS['gains']:
        if key not in gains:
            raise InvalidInput(f'{name}: gains.{key} is missing')
    kp, kd, scale = (
        _per_joint(f'{name}: {place}', value, joints)
        for place, value in (
            ('gains.kp', gains['kp']), ('gains.kd', gains['kd']), ('action.scale', action['scale'])
        )
    )  # fmt: skip
    for place, gain in (('gains.kp', kp), ('gains.kd', kd)):
        if gain.min(initial=0.0) < 0.0:
            raise InvalidInput(f'{name}: {place} = {gain.tolist()}: expected at least 0')
    smoothing = number_within(f'{name}: action.smoothing', action['smoothing'], 1.0)
    if smoothing == 1.0:
        raise InvalidInput(f'{name}: action.smoothing = 1: expected less, no action would count')
    velocity = _vector(f'{name}: velocity', stated['velocity'], 3)
    phase = _phase(name, stated)
    return PolicyFile(
        path=path,
        network=network,
        joints=joints,
        pose=_pose(f'{name}: pose', stated['pose'], joints, robot),
        kp=kp,
        kd=kd,
        scale=scale,
        action_clip=_bound(f'{name}: action.clip', action['clip']),
        smoothing=smoothing,
        period=positive(f'{name}: period', stated['period'], 's'),
        parts=_parts(name, stated, len(joints), phase, robot),
        clip=_bound(f'{name}: clip', stated['clip']),
        history=count(f'{name}: history.length', history['length'], 1000),
        history_order=_choice(name, 'history.order', history['order']),
        history_newest=_choice(name, 'history.newest', history['newest']),
        history_start=_choice(name, 'history.start', history['start']),
        phase=phase,
        velocity=velocity,
    )


def _mapping_in(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InvalidInput(f'policy: no file {path}')
    if path.suffix not in ('.yaml', '.yml'):
        raise InvalidInput(
            f'policy {path.name}: expected a YAML file that names the network and its observation '
            '(docs/policies.md)'
        )
    try:
        stated = _reading.yaml_value(path)
    except _reading.Unreadable as error:
        raise InvalidInput(f'policy {path.name}: no YAML: {error}') from error
    if not isinstance(stated, dict):
        raise InvalidInput(f'policy {path.name}: expected values by key, such as network: x.onnx')
    for key, value in stated.items():
        if key not in KEYS:
            raise UnknownName(f'key of {path.name}', key, KEYS)
        if key in SUBKEYS:
            if not isinstance(value, dict):
                raise InvalidInput(
                    f'{path.name}: {key} = {shown(value)}: expected values of '
                    f'{", ".join(SUBKEYS[key])}'
                )
            for inner in value:
                if inner not in SUBKEYS[key]:
                    raise UnknownName(f'key of {key} in {path.name}', inner, SUBKEYS[key])
    return stated


def _with_layout(name: str, stated: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the file over those of its layout, over the defaults."""
    layout = stated.get('layout')
    if layout is not None and layout not in LAYOUTS:
        raise UnknownName(f'layout in {name}', layout, LAYOUTS)
    merged = _merged(DEFAULTS, LAYOUTS.get(str(layout), {}), stated)
    for key in REQUIRED:
        outer, _, inner = key.partition('.')
        if outer not in merged or (inner and inner not in merged[outer]):
            known = '' if layout else f'; a layout ({", ".join(LAYOUTS)}) states some keys'
            raise InvalidInput(f'{name}: {key} is missing{known}')
    return merged


def _merged(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by key; those of later sources count."""
    merged: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            merged[key] = {**merged.get(key, {}), **value} if key in SUBKEYS else value
    return merged


def _parts(
    name: str, stated: dict[str, Any], n_joints: int, phase: Phase | None, robot: RobotModel
) -> tuple[Part, ...]:
    names = as_tuple(f'{name}: observation', stated['observation'], 'a list of parts')
    if not names:
        raise InvalidInput(f'{name}: observation: expected at least one of {", ".join(PARTS)}')
    check_unique('part of the observation', names)
    parts = []
    for part in names:
        if isinstance(part, str) and part in REFUSED:
            raise InvalidInput(f'{name}: observation part {part!r}: {REFUSED[part]}')
        if part not in PARTS:
            raise UnknownName(f'observation part in {name}', part, (*PARTS, *REFUSED))
        if part in OF_BASE and not robot.floating_base:
            raise InvalidInput(
                f'{name}: observation part {part!r}: the base of robot {robot.name} is fixed'
            )
        size = n_joints if part in PER_JOINT else 3
        if part == 'phase':
            if phase is None:
                raise InvalidInput(f"{name}: observation part 'phase' needs the key phase.period")
            size = 2 * len(phase.offsets)
        scale = _vector(f'{name}: scales.{part}', stated['scales'].get(part, 1.0), size)
        clip = _bound(f'{name}: clips.{part}', stated['clips'].get(part, np.inf))
        parts.append(Part(part, scale, clip))
    of_layout = LAYOUTS.get(str(stated.get('layout')), {})
    for key in ('scales', 'clips'):  # a layout may scale parts that the file leaves out
        unused = set(stated[key]) - set(of_layout.get(key, {})) - set(names)
        if unused:
            raise InvalidInput(f'{name}: {key}.{min(unused)}: the observation has no such part')
    return tuple(parts)


def _phase(name: str, stated: dict[str, Any]) -> Phase | None:
    if 'phase' not in stated:
        return None
    values = {'offsets': [0.0], 'order': 'sin_cos', **stated['phase']}
    if 'period' not in values:
        raise InvalidInput(f'{name}: phase.period is missing')
    offsets = np.atleast_1d(real_array(f'{name}: phase.offsets', values['offsets']))
    if offsets.ndim != 1 or not offsets.size or not np.isfinite(offsets).all():
        raise InvalidInput(f'{name}: phase.offsets: expected finite numbers, in periods')
    return Phase(
        positive(f'{name}: phase.period', values['period'], 's'),
        offsets,
        _choice(name, 'phase.order', values['order']),
    )


def _choice(name: str, key: str, value: object) -> str:
    if value not in CHOICES[key]:
        raise UnknownName(f'{key} in {name}', value, CHOICES[key])
    return str(value)


def _bound(place: str, value: object) -> float:
    bound = real_number(place, value)
    if not bound > 0.0:
        raise InvalidInput(f'{place} = {bound}: expected a bound > 0')
    return bound


def _vector(place: str, value: object, size: int) -> Array:
    numbers = real_array(place, value)
    if numbers.shape not in ((), (size,)):
        raise InvalidInput(f'{place}: shape {numbers.shape}, expected one number or ({size},)')
    if not (np.abs(numbers) <= LARGEST).all():
        raise InvalidInput(f'{place} = {numbers.tolist()}: expected finite numbers')
    return np.broadcast_to(numbers, (size,)).copy()


def _per_joint(place: str, value: object, joints: tuple[str, ...]) -> Array:
    """Return one number per joint, of a number, a list, or numbers by (part of) joint names."""
    if not isinstance(value, Mapping):
        return _vector(place, value, len(joints))
    for key in value:
        if not any(isinstance(key, str) and key in joint for joint in joints):
            raise UnknownName(f'joint or part of its name in {place}', key, joints)
    numbers = np.empty(len(joints))
    for i, joint in enumerate(joints):
        fitting = [joint] if joint in value else [key for key in value if key in joint]
        if len(fitting) != 1:
            which = ' and '.join(map(repr, fitting)) or 'no key'
            raise InvalidInput(f'{place}: {which} fits joint {joint!r}, expected one')
        numbers[i] = real_number(f'{place}.{fitting[0]}', value[fitting[0]])
    return _vector(place, numbers, len(joints))


def _pose(place: str, value: object, joints: tuple[str, ...], robot: RobotModel) -> Array:
    """Return the joint positions in which all actions are zero."""
    if isinstance(value, str):
        positions = robot.joint_positions(robot.reference_configuration(value))
        return positions[[robot.joint_names.index(joint) for joint in joints]]
    return _per_joint(place, value, joints)


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
    """

    def __init__(
        self,
        robot: RobotModel,
        joints: tuple[str, ...],
        pose: Array,
        parts: tuple[Part, ...],
        clip: float = np.inf,
        phase: Phase | None = None,
    ) -> None:
        self.parts, self.size = parts, sum(part.size for part in parts)
        self._pose, self._clip, self._phase = pose, clip, phase
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

    def of(self, q: Array, v: Array, velocity: Array, action: Array, time: Array) -> Array:
        """Return the observations of m robots, shape (m, size).

        Args:
            q: configurations, (m, nq).
            v: velocities, (m, nv).
            velocity: commanded velocities, (m, 3) [m/s, m/s, rad/s].
            action: last actions, (m, n joints of the policy).
            time: since the start of the policy [s], (m,).
        """
        columns = []
        for part in self.parts:
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
    if layout not in LAYOUTS:
        raise UnknownName('layout', layout, LAYOUTS)
    stated = _merged(DEFAULTS, LAYOUTS[layout])
    phase = _phase(layout, stated)
    parts = _parts(layout, stated, robot.n_joints, phase, robot)
    clip = float(stated['clip'])
    return (
        Observation(robot, robot.joint_names, pose, parts, clip, phase),
        clip,
        float(stated['action']['clip']),
    )


# --- The network


class Network:
    """A network in an ONNX file: observations to actions, with its memory if it is recurrent.

    An input `x_in` with an output `x_out` is memory, zero at the start.

    Raises:
        InvalidInput: onnxruntime is not installed, no ONNX file, inputs or outputs of other sizes.
    """

    def __init__(self, policy: PolicyFile) -> None:
        of_type('policy', policy, PolicyFile)
        place = f'{policy.path.name}: network {policy.network.name}'
        try:
            import onnxruntime
        except ImportError as error:
            raise InvalidInput(
                f"{place}: needs onnxruntime: pip install 'contact_sim[policy]'"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            with _reading.reading(place):
                self._session = onnxruntime.InferenceSession(
                    str(policy.network), options, providers=['CPUExecutionProvider']
                )
        except Exception as error:  # of onnxruntime, which has classes of its own
            raise InvalidInput(f'{place}: cannot be loaded: {error}') from error
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        by_name = {output.name: output for output in outputs}
        memory = {
            entry.name: entry
            for entry in inputs
            if entry.name.endswith('_in') and f'{entry.name[:-3]}_out' in by_name
        }
        self._memory_inputs = tuple(memory)
        self._memory_outputs = tuple(f'{name[:-3]}_out' for name in memory)
        seen = [entry for entry in inputs if entry.name not in memory]
        given = [entry for entry in outputs if entry.name not in self._memory_outputs]
        if len(seen) != 1 or not given:
            names = ', '.join(f'{entry.name} {entry.shape}' for entry in inputs)
            raise InvalidInput(
                f'{place}: inputs {names}: expected one, besides pairs x_in and x_out of memory'
            )
        self._input, self._output = seen[0].name, given[0].name
        self._number = np.float64 if 'double' in seen[0].type else np.float32
        size, actions = _last(seen[0].shape), _last(given[0].shape)
        if size is not None and size != policy.observation_size:
            raise InvalidInput(
                f'{place}: its input {self._input!r} takes {size} numbers, the observation has '
                f'{policy.observation_size}: {policy.sizes}'
            )
        self._memory_shapes = [
            tuple(length if isinstance(length, int) else 1 for length in entry.shape)
            for entry in memory.values()
        ]
        fixed = isinstance(seen[0].shape[0], int) if len(seen[0].shape) > 1 else True
        self._one_by_one = fixed or bool(memory)
        self._flat = len(seen[0].shape) == 1
        if actions is None:  # only a call tells
            trial = self.actions(np.zeros((1, policy.observation_size)), self.memory(1), [0])
            actions = trial.shape[1]
        if actions != len(policy.joints):
            raise InvalidInput(
                f'{place}: its output {self._output!r} has {actions} actions, expected one for '
                f'each of the {len(policy.joints)} joints'
            )

    def memory(self, n: int) -> list[list[Array]]:
        """Return the memory of n worlds at the start."""
        return [[np.zeros(shape, self._number) for shape in self._memory_shapes] for _ in range(n)]

    def actions(
        self, observations: Array, memory: list[list[Array]], worlds: Sequence[int]
    ) -> Array:
        """Return the actions of the `worlds`, (m, n_joints), of observations (m, size)."""
        rows = observations.astype(self._number)
        if not self._one_by_one:
            (answer,) = self._session.run([self._output], {self._input: rows})
            return np.asarray(answer, dtype=float)
        found = []
        for world, row in zip(worlds, rows, strict=True):
            feeds = dict(zip(self._memory_inputs, memory[world], strict=True))
            feeds[self._input] = row if self._flat else row[None]
            answer, *memory[world] = self._session.run(
                [self._output, *self._memory_outputs], feeds
            )
            found.append(np.ravel(answer))
        return np.array(found, dtype=float)


def _last(shape: Sequence[Any]) -> int | None:
    """Return the last length of a shape, None where it is open."""
    return shape[-1] if shape and isinstance(shape[-1], int) else None


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

    def __init__(self, policy: PolicyFile, robot: RobotModel, network: Network, n: int) -> None:
        self._policy = of_type('policy', policy, PolicyFile)
        self._robot = of_type('robot', robot, RobotModel)
        self._network = of_type('network', network, Network)
        self.n = count('n', n)
        self._observation = Observation(
            robot, policy.joints, policy.pose, policy.parts, policy.clip, policy.phase
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
            time[which] - self._begin[which],
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

    def __repr__(self) -> str:
        return summary(self, n=self.n, robot=self._robot.name, joints=len(self._policy.joints))


@closed_attributes()
class Policy:
    """A policy as the controller of one robot; `load_policy` makes it."""

    def __init__(self, policy: PolicyFile, robot: RobotModel) -> None:
        self._policy, self._robot = policy, robot
        self._network = Network(policy)
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
        InvalidInput: a file that is missing or no YAML or ONNX; keys that are missing or values
            that are not allowed; a network whose input or output does not fit; onnxruntime is not
            installed.
        UnknownName: a key, layout, part of the observation or joint that does not exist.
    """
    of_type('robot', robot, RobotModel)
    return Policy(read_policy(Path(path), robot), robot)
