"""The file of a policy: what a network observes, and how its actions are meant.

docs/policies.md describes the file and its layouts, which are the conventions of training
frameworks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import (
    LARGEST,
    as_tuple,
    check_unique,
    count,
    finite,
    number_within,
    positive,
    real_array,
    real_number,
    text,
)
from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot._model import RobotModel
from contact_sim.terrain import ScanGrid

# --- Layouts

PER_JOINT = ('joint_pos', 'joint_vel', 'last_action')
"""Parts of an observation with one number per joint of the policy."""
OF_BASE = ('base_lin_vel', 'base_ang_vel', 'projected_gravity')
HEIGHT_SCAN = 'height_scan'
PARTS = (*OF_BASE, 'commands', *PER_JOINT, 'phase', HEIGHT_SCAN)
"""Parts that an observation may have."""

LAYOUTS: dict[str, dict[str, Any]] = {
    'legged_gym': {
        'observation': [*OF_BASE, 'commands', *PER_JOINT],
        'scales': {
            'base_lin_vel': 2.0, 'base_ang_vel': 0.25, 'commands': [2.0, 2.0, 0.25],
            'joint_vel': 0.05, HEIGHT_SCAN: 5.0,
        },
        'clips': {HEIGHT_SCAN: 1.0},
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
        'clips': {HEIGHT_SCAN: 1.0},
        HEIGHT_SCAN: {'fastest': 'x'},
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
    HEIGHT_SCAN: {
        'size': [1.6, 1.0], 'resolution': 0.1, 'centre': [0.0, 0.0], 'fastest': 'y',
        'offset': 0.5,
    },
}  # fmt: skip
SUBKEYS = {
    'gains': ('kp', 'kd'),
    'action': ('scale', 'clip', 'smoothing'),
    'history': ('length', 'order', 'newest', 'start'),
    'phase': ('period', 'offsets', 'order'),
    'scales': PARTS,
    'clips': PARTS,
    HEIGHT_SCAN: ('size', 'resolution', 'centre', 'fastest', 'offset'),
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
class HeightScanPart:
    """How far the ground is below the base at the points of a grid."""

    grid: ScanGrid
    offset: float
    """What is taken off all distances [m]."""


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
    scan: HeightScanPart | None
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
    phase, scan = _phase(name, stated), _scan(name, stated)
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
        parts=_parts(name, stated, len(joints), phase, scan, robot),
        clip=_bound(f'{name}: clip', stated['clip']),
        history=count(f'{name}: history.length', history['length'], 1000),
        history_order=_choice(name, 'history.order', history['order']),
        history_newest=_choice(name, 'history.newest', history['newest']),
        history_start=_choice(name, 'history.start', history['start']),
        phase=phase,
        scan=scan,
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
    name: str,
    stated: dict[str, Any],
    n_joints: int,
    phase: Phase | None,
    scan: HeightScanPart | None,
    robot: RobotModel,
) -> tuple[Part, ...]:
    names = as_tuple(f'{name}: observation', stated['observation'], 'a list of parts')
    if not names:
        raise InvalidInput(f'{name}: observation: expected at least one of {", ".join(PARTS)}')
    check_unique('part of the observation', names)
    parts = []
    for part in names:
        if part not in PARTS:
            raise UnknownName(f'observation part in {name}', part, PARTS)
        if part in (*OF_BASE, HEIGHT_SCAN) and not robot.floating_base:
            raise InvalidInput(
                f'{name}: observation part {part!r}: the base of robot {robot.name} is fixed'
            )
        size = n_joints if part in PER_JOINT else 3
        if part == 'phase':
            if phase is None:
                raise InvalidInput(f"{name}: observation part 'phase' needs the key phase.period")
            size = 2 * len(phase.offsets)
        if scan is not None and part == HEIGHT_SCAN:
            size = len(scan.grid)
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


def _scan(name: str, stated: dict[str, Any]) -> HeightScanPart | None:
    if HEIGHT_SCAN not in stated['observation']:
        return None
    place, values = f'{name}: {HEIGHT_SCAN}', stated[HEIGHT_SCAN]
    try:
        grid = ScanGrid(
            size=tuple(_vector(f'{place}.size', values['size'], 2).tolist()),
            resolution=values['resolution'],
            centre=tuple(_vector(f'{place}.centre', values['centre'], 2).tolist()),
            fastest=values['fastest'],
        )
    except InvalidInput as error:
        raise InvalidInput(f'{place}: {error}') from error
    return HeightScanPart(grid, float(finite(f'{place}.offset', values['offset'])))


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


def layout_parts(
    layout: str, robot: RobotModel
) -> tuple[tuple[Part, ...], Phase | None, float, float]:
    """Return the parts of a layout for all driven joints, its phase, and its bounds.

    The bounds are those of the observation and of actions.

    Raises:
        UnknownName: a layout that does not exist.
        InvalidInput: a robot whose base is fixed.
    """
    if layout not in LAYOUTS:
        raise UnknownName('layout', layout, LAYOUTS)
    stated = {'layout': layout, **_merged(DEFAULTS, LAYOUTS[layout])}
    phase = _phase(layout, stated)
    parts = _parts(layout, stated, robot.n_joints, phase, None, robot)
    return parts, phase, float(stated['clip']), float(stated['action']['clip'])
