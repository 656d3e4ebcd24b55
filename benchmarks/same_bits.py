"""Did a change of the sources leave every result equal to the bit?

    python benchmarks/same_bits.py --against c45850b [--only PATTERN] [--jobs 2]
    python benchmarks/same_bits.py --write FILE.json [--only PATTERN] [--jobs 2]
    python benchmarks/same_bits.py --compare OLD.json NEW.json

Each case runs something through names that users import and digests the raw bytes of what comes
out: numbers, names and messages, never layouts. `--against` runs the cases in a commit and in this
checkout, one after the other, and compares them. `--write` runs those of the contact_sim that
Python finds: a folder in PYTHONPATH wins over an installation. A case that raises is written as
'error: ...' and makes the exit status 1, as any difference does.

Where a name has moved, add its new place to PLACES.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import fnmatch
import hashlib
import inspect
import json
import multiprocessing
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

import contact_sim

Array = NDArray[np.float64]
Result = str | dict[str, str]
"""A digest, or digests by what is put behind the name of the case."""
Case = Callable[[], Result]

PLACES: dict[str, tuple[str, ...]] = {
    'BaseMotion': (
        'control:BaseMotion',
        'control._stance:BaseMotion',
        'control.stance:BaseMotion',
    ),
    'Baumgarte': ('constraints:Baumgarte',),
    'ContactFlags': ('sensors:ContactFlags',),
    'ContactSensing': ('sensors:ContactSensing',),
    'EncoderSensing': ('sensors:EncoderSensing',),
    'Encoders': ('sensors:Encoders',),
    'FootForces': ('sensors:FootForces',),
    'ForceSensing': ('sensors:ForceSensing',),
    'FrameAnchor': ('constraints:FrameAnchor',),
    'HeightField': ('terrain:HeightField',),
    'Holonomic': ('constraints:Holonomic',),
    'Imu': ('sensors:Imu',),
    'ImuSensing': ('sensors:ImuSensing',),
    'JointCommand': (
        'robot:JointCommand',
        'robot._actuators:JointCommand',
        'robot.actuation:JointCommand',
    ),
    'JointCoupling': ('constraints:JointCoupling',),
    'JointLock': ('constraints:JointLock',),
    'JointVelocity': ('constraints:JointVelocity',),
    'DelayedSensor': ('sensors:DelayedSensor', 'sensors:Line'),
    'LoopClosure': ('constraints:LoopClosure',),
    'MaximalSimulator': ('maximal:MaximalSimulator',),
    'NoiseParameters': ('sensors:NoiseParameters',),
    'RobotView': ('sensors:RobotView', 'sensors:PartReport'),
    'PointAnchor': ('constraints:PointAnchor',),
    'PositionLimit': (
        'robot:PositionLimit',
        'robot._joint_limits:PositionLimit',
        'robot.position_limits:PositionLimit',
    ),
    'READY_MADE': (
        'terrain:READY_MADE',
        'terrain._generator:READY_MADE',
        'terrain.ready_made:READY_MADE',
    ),
    'Recorder': ('replay:Recorder',),
    'Region': ('terrain:Region',),
    'StandingLaw': ('control:Stance',),
    'Terraces': ('terrain:Terraces',),
    'Trot': ('control:Trot',),
    'boxes': ('terrain:boxes',),
    'gauss_dual': (
        'constraints:gauss_dual',
        'constraints._elimination:gauss_dual',
        'constraints.gauss:gauss_dual',
    ),
    'gauss_primal': (
        'constraints:gauss_primal',
        'constraints._elimination:gauss_primal',
        'constraints.gauss:gauss_primal',
    ),
    'parts_of': (
        'robot:parts_of',
        'robot._several_robots:parts_of',
        'robot.parts:parts_of',
    ),
    'ready_made': (
        'terrain:ready_made',
        'terrain._generator:ready_made',
        'terrain.ready_made:ready_made',
    ),
    'support': ('support',),
}
"""Where below contact_sim names may be that are not at its top, 'room.module:name'; the first that
is there counts. What is in none of them is searched for by its name."""

ROBOTS = ('go1', 'anymal_b', 'solo12', 'quadruped', 'hyq', 'b1')
STEPS, PUSHED, READ = 120, range(50, 80), 40
"""Steps of a run, those with a push, and steps between two readings of the contact problem."""
CONTACTS = (
    'force', 'velocity', 'friction', 'normal_force', 'slip_speed', 'mode', 'immovable', 'position',
    'normal', 'gap',
)  # fmt: skip
FEET = ('force', 'torque', 'origin', 'gap', 'loaded', 'mode', 'slip_speed')
PROBLEM = (
    'delassus', 'free_velocity', 'bias', 'friction', 'lower', 'upper', 'gap', 'start_velocity',
    'inertia', 'jacobian', 'velocity', 'free_motion',
)  # fmt: skip
SUPPORT = (
    'feet', 'contact_jacobian', 'rank', 'base_rank', 'joint_rank', 'internal_constraints',
    'uncontrollable_base_dof', 'base_mobility', 'uncontrollable_base_directions', 'conditioning',
    'base_conditioning', 'null_space_projector', 'null_space_basis', 'polygon', 'centre_of_mass',
    'margin',
)  # fmt: skip
MODEL = (
    'gravity', 'effortLimit', 'velocityLimit', 'lowerPositionLimit', 'upperPositionLimit',
    'damping', 'friction', 'armature', 'rotorInertia', 'rotorGearRatio',
)  # fmt: skip


# ------------------------------------------------------------------------------- names


def the(name: str) -> Any:
    """Return something of contact_sim by its name: in PLACES, at the top, or wherever it is."""
    if name in PLACES and (found := first_of(*PLACES[name])) is not None:
        return found
    return getattr(contact_sim, name) if hasattr(contact_sim, name) else searched(name)


def first_of(*places: str) -> Any:
    """Return what is at the first of these places that is there, None if it is at none."""
    for place in places:
        module, _, name = place.partition(':')
        try:
            room = import_module(f'contact_sim.{module}')
        except ImportError:
            continue
        found = getattr(room, name, None) if name else room
        if found is not None and not (name and inspect.ismodule(found)):
            return found
    return None


@cache
def searched(name: str) -> Any:
    """Return the one thing of this name that a module of the package defines.

    Raises:
        LookupError: there is none, or there are several.
    """
    package = Path(str(contact_sim.__file__)).parent
    defines = re.compile(rf'^(class|def) {name}\b|^{name}\b *[:=]', re.MULTILINE)
    files = [f for f in sorted(package.rglob('*.py')) if defines.search(f.read_text('utf-8'))]
    places = [file.relative_to(package.parent).with_suffix('').parts for file in files]
    modules = ['.'.join(place).removesuffix('.__init__') for place in places]
    if len(modules) != 1:
        raise LookupError(f'{name} is defined in {modules or "no module"}: add it to PLACES')
    return getattr(import_module(modules[0]), name)


# ------------------------------------------------------------------------------- digests


class Digest:
    """A sha256 over values: their kinds, sizes and raw bytes."""

    def __init__(self, *values: Any) -> None:
        self._hash = hashlib.sha256()
        self.add(*values)

    @property
    def hex(self) -> str:
        """The digest so far."""
        return self._hash.hexdigest()

    def add(self, *values: Any) -> None:
        """Add values.

        Raises:
            TypeError: a value of a kind of which the bytes are not known.
        """
        for value in values:
            self._add(value)

    def add_all(self, source: Any, names: Iterable[str]) -> None:
        """Add attributes of an object."""
        for name in names:
            self._add(getattr(source, name))

    def _add(self, value: Any) -> None:
        kind, data = self._bytes(value)
        if isinstance(data, bytes):
            self._hash.update(f'{kind}:{len(data)}:'.encode() + data)
            return
        self._hash.update(f'{kind}:{len(data)}:'.encode())
        self.add(*data)

    def _bytes(self, value: Any) -> tuple[str, bytes | list[Any]]:
        """Return the kind of a value, and its bytes or its parts."""
        if value is None:
            return 'none', b''
        if isinstance(value, enum.Enum):
            return 'enum', value.name.encode()
        if isinstance(value, str | bytes):
            return 'text', value.encode() if isinstance(value, str) else value
        if isinstance(value, bool | np.bool_):
            return 'bool', bytes([bool(value)])
        if isinstance(value, int | np.integer):
            return 'int', str(int(value)).encode()
        if isinstance(value, float | np.floating):
            return 'float', struct.pack('<d', value)
        if isinstance(value, np.ndarray):
            shape = ','.join(map(str, value.shape))
            return f'{value.dtype.str}[{shape}]', np.ascontiguousarray(value).tobytes()
        if isinstance(value, pin.SE3):
            return 'placement', np.array(value.homogeneous).tobytes()
        if isinstance(value, pin.Motion):
            return 'motion', np.array(value.vector).tobytes()
        if isinstance(value, pin.Inertia):
            return 'inertia', [value.mass, np.array(value.lever), np.array(value.inertia)]
        if isinstance(value, Mapping):
            return 'map', [part for key in value for part in (key, value[key])]
        if isinstance(value, Iterable) and not isinstance(value, set | frozenset):
            return 'list', list(value)
        if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return 'record', [part for name in names for part in (name, getattr(value, name))]
        raise TypeError(f'no bytes of a {type(value).__name__}')


def add_report(digest: Digest, report: Any, number: int = 0) -> None:
    """Add everything that a report of a step says; every READ steps its contact problem, too."""
    digest.add(report.time, report.q, report.v, report.acceleration, report.effort)
    digest.add_all(report.contacts, (*CONTACTS, 'turn'))
    digest.add_all(report.feet, FEET)
    if number % READ == 0:
        digest.add(report.contacts.names, report.feet.names, report.links.names)
        digest.add_all(report.links, FEET)
        digest.add_all(report.problem, PROBLEM)
        digest.add(report.stiffness_ratio)
        if report.problem.n_rows:
            impulse = np.zeros(report.problem.n_rows)
            digest.add(contact_sim.law_residuals(report.problem, impulse)._asdict())
    if len(report.pairs):
        digest.add(report.pairs.names)
        digest.add_all(report.pairs, CONTACTS)
    for name, state in report.constraints.items():
        digest.add(name, state.force, state.error, state.rate, state.drift, state.drift_rate)
    digest.add(report.residuals._asdict())
    solver = report.solver
    digest.add(solver.status, solver.iterations, solver.residual)


# ------------------------------------------------------------------------------- runs


@cache
def robot_called(name: str) -> Any:
    """Return a robot of the catalogue."""
    return contact_sim.load_robot(name)


@cache
def ground(name: str) -> Any:
    """Return a ground: level, rough, steps of triangles, or a slope with ice on it."""
    random = np.random.default_rng(5)
    if name == 'rough':
        heights = random.uniform(0.0, 0.04, (61, 61))
        return the('HeightField')(heights, horizontal_scale=0.1, origin=(-3.0, -3.0))
    if name == 'steps':
        cuts = np.linspace(-2.4, 2.4, 17)
        heights = 0.02 * random.integers(0, 4, (16, 16)).astype(float)
        return the('Terraces')(cuts, cuts, heights).as_mesh()
    if name == 'walls':
        heights = 0.05 * random.integers(0, 2, (41, 41)).astype(float)
        return the('HeightField')(heights, 0.2, (-4.0, -4.0), slope_threshold=0.2)
    if name == 'boxes':
        low, high = [[-0.1, -3.0, -1.0], [-3.0, -3.0, -1.0]], [[3.0, 3.0, 0.06], [-0.1, 3.0, 0.0]]
        return the('boxes')(low, high)
    if name == 'slope':
        ice = the('Region')(x_range=(0.0, 1.0), y_range=(-1.0, 1.0), friction=0.1)
        return contact_sim.InclinedPlane(0.2, 0.3).with_regions([ice])
    if name == 'valley':
        return contact_sim.Planes((((0.3, 0.0, 1.0), 0.0), ((-0.2, 0.1, 1.0), -0.02)))
    if name == 'hill':
        return contact_sim.SphereGround((0.0, 0.0, -5.0), 5.0)
    if name == 'pipe':
        return contact_sim.CylinderGround((0.0, 0.0, 3.0), (1.0, 0.1, 0.0), 3.0, hollow=True)
    return contact_sim.Plane()


class Standing:
    """Joint PD about the pose at the beginning, which sines move a little."""

    def __init__(self, sim: Any, amplitude: float = 0.06, lean: ArrayLike = 0.0) -> None:
        self.sim, self.amplitude = sim, amplitude
        self.pose = sim.robot.joint_positions(sim.standing_configuration()) + np.asarray(lean)
        self.gains = sim.robot.default_gains

    def target(self, step: int) -> Array:
        """Return where the joints should be, (n_joints,)."""
        phase = 0.7 * np.arange(len(self.pose))
        return np.asarray(self.pose + self.amplitude * np.sin(0.1 * step + phase))

    def effort(self, step: int) -> Array:
        """Return the effort of a step, (n_joints,)."""
        robot, (kp, kd) = self.sim.robot, self.gains
        error = self.target(step) - robot.joint_positions(self.sim.q)
        return np.asarray(kp * error - kd * robot.joint_velocities(self.sim.v))


def pushes(sim: Any, step: int) -> dict[str, list[float]] | None:
    """Return what acts on the base in a step, by its weight."""
    if step not in PUSHED:
        return None
    weight = 9.81 * sim.robot.total_mass
    parts = getattr(sim.robot, 'parts', ())
    name = f'{parts[0].name}/{parts[0].robot.base_frame}' if parts else sim.robot.base_frame
    if name == 'universe':
        return None
    return {name: [0.3 * weight, -0.4 * weight, 0.1 * weight, 0.01 * weight, 0.0, 0.02 * weight]}


def drop(sim: Any, height: float = 0.01, tilt: float = 0.0) -> None:
    """Let every floating base begin above the ground, turned about x, with a speed."""
    q, v = sim.standing_configuration().copy(), np.zeros(sim.robot.nv)
    for part in getattr(sim.robot, 'parts', None) or (None,):
        robot = part.robot if part else sim.robot
        if not robot.floating_base:
            continue
        at, along, _ = sim.robot.of(part.name) if part else (slice(0, None), slice(0, None), None)
        turn = pin.SE3(pin.rpy.rpyToMatrix(tilt, 0.0, 0.0), np.zeros(3))
        start = pin.XYZQUATToSE3(q[at][:7])
        placed = pin.SE3(turn.rotation @ start.rotation, start.translation)
        q[at.start : at.start + 7] = pin.SE3ToXYZQUAT(placed)
        q[at.start + 2] += height
        v[along.start : along.start + 3] = 0.3, 0.1, 0.0
    sim.reset(sim.assembled(q), v)


def run(
    sim: Any,
    steps: int = STEPS,
    change: Callable[[Any, int], None] = lambda sim, step: None,
    amplitude: float = 0.06,
    lean: ArrayLike = 0.0,
) -> str:
    """Return the digest of a run; where it ends before its time that is part of it."""
    digest, law = Digest(sim.q, sim.v), Standing(sim, amplitude, lean)
    for k in range(steps):
        change(sim, k)
        try:
            report = sim.step(law.effort(k), pushes(sim, k))
        except contact_sim.NonFiniteState:
            digest.add('not finite', k)
            break
        add_report(digest, report, k)
    digest.add(sim.q, sim.v, sim.time, sim.pairs_left_out)
    return digest.hex


def dropped(sim: Any, height: float = 0.01, tilt: float = 0.0, **options: Any) -> str:
    """Return the digest of a run that begins above the ground."""
    drop(sim, height, tilt)
    return run(sim, **options)


# ------------------------------------------------------------------------------- 1: models


def on_ground(model: Any, robot: str, name: str, **settings: Any) -> str:
    """Return the digest of a robot on a ground."""
    return dropped(contact_sim.Simulator(robot_called(robot), model, ground(name), **settings))


VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    'Anitescu': ({'sides': 6}, {'max_points': 3, 'max_sweeps': 3, 'max_admm_iterations': 5}),
    'Compliant': (
        *({'normal_law': law} for law in ('linear', 'kelvin_voigt', 'unclamped')),
        *({'friction_law': law} for law in ('piecewise', 'tanh', 'stribeck')),
        {'integration': 'explicit', 'stiffness': 2e4},
        {'exponent': 1.0, 'static_ratio': 1.3, 'friction_law': 'stribeck'},
    ),
    'Hybrid': (
        *(
            {'impact': law}
            for law in ('plastic', 'poisson', 'moreau', 'frictionless', 'infinite_friction')
        ),
        {'energy_guard': False, 'max_events': 1},
        {'max_substep': 2e-4},
    ),
    'Lcp': ({'friction_law': 'box'}, {'sides': 4}, {'max_pivots': 4}),
    'Ncp': (
        *({'solver': solver} for solver in ('pgs', 'raisim', 'staggered')),
        {'max_points': 3, 'max_sweeps': 3, 'max_admm_iterations': 5},
    ),
    'NullSpace': (
        {'release': True},
        {'support': 'given', 'feet': ('FL_foot', 'RR_foot')},
        {'stabilisation': 'velocity', 'touch_gap': 1e-3},
    ),
    'Sap': (
        {'approximation': 'similar'},
        {'approximation': 'sap'},
        {'weight': 'delassus'},
        {'acts_ahead': True},
    ),
    'Todorov': (
        {'form': '2014'},
        {'cone': 'elliptic'},
        {'cone': 'elliptic', 'impratio': 10.0, 'noslip_iterations': 5},
        {'diagonal': 'exact'},
        {'refsafe': False, 'time_constant': 0.005},
    ),
}
"""Parameters of the models besides their defaults, by the names of their classes."""


def variant(name: str, number: int) -> str:
    """Return the digest of a model with other parameters than its own, in a wide stance change."""
    model = the(name)(**VARIANTS[name][number])
    return on_ground(model, 'go1', 'plane', restitution=0.3)


def switched(first: str) -> str:
    """Return the digest of a run in which model, friction, time step and ground change."""
    models = [first, *contact_sim.contact_models()]

    def change(sim: Any, step: int) -> None:
        if step and step % 15 == 0:
            sim.contact_model = models[(step // 15) % len(models)]
        if step == 40:
            sim.friction, sim.restitution = 0.3, 0.2
        if step == 60:
            sim.baumgarte, sim.restitution_threshold = 0.5, 0.02
        if step == 75:
            sim.time_step = 2e-3
        if step == 100:
            sim.reset(terrain=ground('rough'))

    sim = contact_sim.Simulator(robot_called('go1'), first, friction=[0.8, 0.7, 0.6, 0.5])
    return dropped(sim, change=change)


# ------------------------------------------------------------------------------- 2: bodies


@cache
def bodies(name: str) -> Any:
    """Return robots whose links touch each other, loose bodies, or other robots."""
    box, ball = contact_sim.loose_box, contact_sim.loose_ball
    if name == 'folded':
        return robot_called('go1').with_body_contacts().with_self_collision()
    if name == 'crate':
        dog = robot_called('quadruped').with_body_contacts()
        loose = {'crate': box((0.3, 0.2, 0.1), 2.0), 'ball': ball(0.05, 0.3)}
        places = {'crate': (0.05, 0.0, 0.2), 'ball': (0.4, 0.3)}
        return contact_sim.joined({'dog': dog, **loose}, places, against_each_other=True)
    if name == 'two':
        both = {'a': robot_called('go1'), 'b': robot_called('solo12')}
        places = {'a': (0.0, 0.0, 0.1), 'b': (0.45, 0.1, 1.0)}
        return contact_sim.joined(both, places, against_each_other=True)
    if name == 'cradle':
        return robot_called('newtons_cradle').with_self_collision()
    return box((0.2, 0.3, 0.1), 3.0) if name == 'box' else ball(0.1, 1.0)


def touching(model: str, name: str, on: str = 'plane') -> str:
    """Return the digest of bodies that touch each other and the ground."""
    robot = bodies(name)
    sim = contact_sim.Simulator(robot, model, ground(on))
    if name == 'folded':
        return dropped(sim, 0.02, 0.2, lean=[-0.9, 0.3, -0.2, 0.9, 0.0, 0.2] * 2, steps=200)
    if name == 'cradle':
        return run(sim, 700)
    if name == 'crate':
        drop(sim)
        q = sim.q.copy()
        q[robot.of('crate')[0].start + 2] += 0.4
        sim.reset(q, sim.v)
        return run(sim)
    if name == 'box':
        return dropped(sim, 0.05, 0.3, steps=200)
    return dropped(sim, 0.005 if name == 'ball' else 0.02)


# ------------------------------------------------------------------------------- 3: bilateral


MIMIC = """<robot name="pair">
<link name="base"><inertial><mass value="2.0"/><origin xyz="0 0 0.01"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.2 0.1 0.05"/></geometry></collision></link>
<link name="left"><inertial><mass value="0.3"/><origin xyz="0 0 -0.1" rpy="0.1 0 0.2"/>
<inertia ixx="0.002" iyy="0.002" izz="0.001" ixy="0" ixz="0.0001" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/></geometry></collision></link>
<link name="right"><inertial><mass value="0.3"/><origin xyz="0 0 -0.1"/>
<inertia ixx="0.002" iyy="0.002" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/></geometry></collision></link>
<joint name="swing" type="revolute"><parent link="base"/><child link="left"/>
<origin xyz="0.05 0.1 0" rpy="0 0.1 0"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="20" velocity="30"/>
<dynamics damping="0.05" friction="0.1"/></joint>
<joint name="follow" type="revolute"><parent link="base"/><child link="right"/>
<origin xyz="-0.05 -0.1 0"/><axis xyz="0 0.6 0.8"/>
<limit lower="-1" upper="1" effort="20" velocity="30"/>
<mimic joint="swing" multiplier="-0.5" offset="0.1"/></joint>
</robot>"""
"""A robot with a joint that follows another one."""


@cache
def mimic() -> Any:
    """Return the robot with a joint that follows another one."""
    return contact_sim.load_robot(
        MIMIC, feet=('left', 'right'), poses={'standing': {'swing': 0.2}}
    )


def fork_error(q: Array) -> Array:
    """Return what keeps two hip joints of go1 apart."""
    return np.array([q[7] + q[10] + 0.1 * q[7] * q[10]])


def fork_jacobian(q: Array) -> Array:
    """Return its derivative."""
    J = np.zeros((1, 18))
    J[0, 6], J[0, 9] = 1.0 + 0.1 * q[10], 1.0 + 0.1 * q[7]
    return J


HELD = (
    'tether',
    'soft_tether',
    'stand',
    'geared',
    'fork',
    'four_bar',
    'four_bar_quadruped',
    'mimic',
)
"""Constraints of go1, and robots that have constraints."""


def held_by(name: str) -> list[Any]:
    """Return constraints of go1."""
    soft = the('Baumgarte')(20.0)
    if name == 'tether':
        return [the('PointAnchor')('trunk', point=(0.1, 0.0, 0.05))]
    if name == 'soft_tether':
        point = the('PointAnchor')('trunk', at=(0.05, 0.0, 0.33), stabilisation=soft)
        return [point, the('JointLock')('RL_calf_joint')]
    if name == 'stand':
        return [the('FrameAnchor')('trunk'), the('JointVelocity')('FR_hip_joint', 0.5, alpha=50.0)]
    if name == 'geared':
        gear = the('JointCoupling')('FL_hip_joint', 'FR_hip_joint', ratio=-1.0)
        return [gear, the('LoopClosure')('RL_calf', 'RR_calf', full=False)]
    return [the('Holonomic')(fork_error, fork_jacobian, 1, name='fork')]


def held(model: str, name: str) -> str:
    """Return the digest of a robot that is held, or in whose legs there are loops."""
    if name == 'four_bar_quadruped':
        return dropped(contact_sim.Simulator(robot_called(name), model))
    if name == 'mimic':
        return dropped(contact_sim.Simulator(mimic(), model))
    if name == 'four_bar':
        loop = the('LoopClosure')('coupler_tip', 'rocker_tip')
        return run(contact_sim.Simulator(robot_called(name), model, constraints=[loop]))
    sim = contact_sim.Simulator(robot_called('go1'), model, constraints=held_by(name))

    def change(sim: Any, step: int) -> None:
        if step == 60:
            sim.remove_constraint(sim.constraints[-1])
        if step == 90:
            sim.add_constraint(the('PointAnchor')('FL_foot', name='late'))

    return run(sim, change=change)


# ------------------------------------------------------------------------------- 4: worlds


def worlds(model: str, name: str, on: str) -> str:
    """Return the digest of worlds that differ."""
    robot, n = bodies(name) if name == 'folded' else robot_called(name), 5
    random = np.random.default_rng(2)
    masses = np.array([inertia.mass for inertia in robot.pinocchio_model.inertias][1:])
    friction, bounce = random.uniform(0.4, 1.0, (n, 1)), random.uniform(0.0, 0.3, (n, 1))
    gravity = np.array([[0.1 * i, 0.0, -9.81 - 0.05 * i] for i in range(n)])
    many = contact_sim.Worlds(
        robot, n, model, ground(on), friction, bounce, gravity=gravity,
        masses=masses * random.uniform(0.9, 1.1, (n, 1)), threads=2,
    )  # fmt: skip
    q = np.repeat(many.q[:1], n, axis=0) + 0.0
    q[:, 2] += 0.004 * np.arange(n)
    many.reset(q, 0.1 * random.uniform(-1.0, 1.0, (n, 6)) @ np.eye(6, robot.nv))
    kp, kd = robot.default_gains
    pose, zero = robot.joint_positions(q[0]), np.zeros(robot.n_joints)
    commands = [
        the('JointCommand')(pose + 0.02 * i, zero, zero, kp * (1.0 - 0.05 * i), kd)
        for i in range(n)
    ]
    digest = Digest(many.q, many.v)

    def law(time: Array, q: Array, v: Array) -> ArrayLike:
        joints = np.array([robot.joint_positions(row) for row in q])
        speeds = np.array([robot.joint_velocities(row) for row in v])
        return np.asarray(kp * (pose - joints) - kd * speeds)

    def seen(rollout: Any) -> None:
        digest.add_all(rollout, ('time', 'q', 'v', 'effort'))

    seen(many.follow(commands, 40, every=10))
    many.push(robot.base_frame, random.uniform(-20.0, 20.0, (n, 6)))
    seen(many.run(law, 40, period=2, every=4))
    many.step(random.uniform(-1.0, 1.0, (n, robot.n_joints)), 10)
    many.reset(worlds=[1, 3])
    many.push(robot.base_frame, np.zeros(6))
    seen(many.follow(commands[0], 30))
    digest.add(many.time, many.q, many.v, many.running, many.stopped)
    for k in range(n):
        add_report(digest, many.report(k))
    return digest.hex


def followed(model: str) -> str:
    """Return the digest of `Simulator.follow`."""
    sim = contact_sim.Simulator(robot_called('go1'), model, ground('rough'))
    drop(sim)
    law, (kp, kd) = Standing(sim), sim.robot.default_gains
    digest, zero = Digest(), np.zeros(sim.robot.n_joints)
    for k in range(8):
        command = the('JointCommand')(law.target(20 * k), zero, zero + 0.1, kp, kd)
        add_report(digest, sim.follow(command, 15), k)
    return digest.hex


def restored(model: str) -> str:
    """Return the digest of a run that goes back to where it was, under another model between."""
    sim = contact_sim.Simulator(robot_called('anymal_b'), model)
    drop(sim)
    digest = Digest(run(sim, 30))
    kept = sim.snapshot()
    digest.add(run(sim, 30))
    sim.contact_model, sim.friction = 'ncp', 0.4
    digest.add(run(sim, 10))
    sim.restore(kept)
    digest.add(sim.contact_model, sim.friction, sim.time, sim.q, sim.v, run(sim, 30))
    return digest.hex


def shadowed(model: str) -> str:
    """Return the digest of what all models say of the steps of one of them."""
    sim = contact_sim.Simulator(robot_called('go1'), model)
    sim.shadow = contact_sim.contact_models()
    drop(sim)
    digest, law = Digest(), Standing(sim)
    for k in range(60):
        report = sim.step(law.effort(k), pushes(sim, k))
        if k % 6:
            continue
        for name, shadow in report.shadows.items():
            digest.add(name, shadow.finite, shadow.force, shadow.velocity)
            digest.add(shadow.force_difference, shadow.velocity_difference)
            add_report(digest, shadow.step)
    return digest.hex


def with_momentum(model: str, name: str = 'solo12') -> str:
    """Return the digest of a run with the integrator that keeps momentum, of each free base."""
    robot = bodies(name) if name in ('two', 'crate') else robot_called(name)
    sim = contact_sim.Simulator(robot, model, integrator='momentum')
    return dropped(sim, 0.03, 0.1)


@cache
def limited() -> Any:
    """Return go1 with joints that hit their limits, dry friction, delays, lags and curves."""
    robot = robot_called('go1')
    q = robot.joint_positions(robot.reference_configuration())
    near = [
        the('PositionLimit')((joint,), at - 0.03, at + 0.05, restitution=0.2 * (k % 2))
        for k, (joint, at) in enumerate(zip(robot.joint_names, q.tolist(), strict=True))
    ]
    pair = robot.joint_names[:2]
    both = the('PositionLimit')(pair, -3.0, float(q[0] + 0.5 * q[1] + 0.02), shares=(1.0, 0.5))
    drives = robot.with_actuators(
        dry_friction=0.3, viscous_friction=0.05, rotor_inertia=1e-4, gear_ratio=6.0,
        delay={pair[0]: 0.003}, time_constant={pair[1]: 0.004}, velocity_limit=15.0,
        saturation_effort=40.0, effort_limit=25.0, armature=0.01,
    )  # fmt: skip
    return drives.with_position_limits([*near, both])


def at_limits(model: str) -> str:
    """Return the digest of joints at their limits."""
    return dropped(contact_sim.Simulator(limited(), model, restitution=0.2), amplitude=0.3)


def system(name: str, model: str) -> str:
    """Return the digest of a system of the textbook; no effort, it begins with a speed."""
    sim = contact_sim.Simulator(robot_called(name), model, restitution=0.4, time_step=2e-3)
    sim.reset(v=0.2 * np.cos(np.arange(sim.robot.nv)))
    return run(sim, amplitude=0.2)


def gauss() -> str:
    """Return the digest of Gauss' principle, primal and dual."""
    random = np.random.default_rng(4)
    root, H = random.normal(size=(8, 8)), random.normal(size=(3, 8))
    given = root @ root.T + np.eye(8), random.normal(size=8), H, random.normal(size=3)
    return Digest(the('gauss_primal')(*given), the('gauss_dual')(*given)).hex


def maximal(model: str | None) -> str:
    """Return the digest of a robot in maximal coordinates."""
    robot = robot_called('go1').with_actuators(viscous_friction=0.0, dry_friction=0.0)
    sim = the('MaximalSimulator')(robot, contact_model=model)
    digest = Digest()
    for k in range(30):
        report = sim.step(0.5 * np.sin(0.2 * k + np.arange(robot.n_joints)))
        digest.add(report.time, report.q, report.acceleration, report.multipliers)
        digest.add(report.drift, report.drift_rate, report.joint_force, report.energy)
    return digest.hex


def field(name: str) -> str:
    """Return the digest of a ready-made ground: heights, triangles, regions."""
    made = the('ready_made')(name, 0.6, 3)
    digest = Digest(made.origins, made.names, made.difficulty)
    for one in made.fields:
        digest.add(one.heights, one.horizontal_scale, one.origin, one.shifts())
    if made.mesh is not None:
        digest.add(made.mesh.vertices, made.mesh.triangles, made.mesh.neighbours)
        digest.add(made.mesh.normals)
    digest.add([(one.x_range, one.y_range, one.friction) for one in made.regions])
    sim = contact_sim.Simulator(robot_called('go1'), 'ncp', made)
    q = sim.standing_configuration().copy()
    q[:2] = 2.3, 1.4
    q[2] = 0.33 + sim.terrain.height(*q[:2])
    sim.reset(q)
    digest.add(run(sim))
    return digest.hex


# ------------------------------------------------------------------------------- 5: control


def controlled(law: str, robot: str, model: str) -> str:
    """Return the digest of a controller in closed loop."""
    sim = contact_sim.Simulator(robot_called(robot), model)
    if law == 'trot':
        controller = the('Trot')(sim.robot)
        controller.velocity = (0.3, 0.05, 0.2)
    else:
        controller = the('StandingLaw')(sim.robot, the('BaseMotion')(law, 0.02, 2.0))
    digest = Digest()
    for k in range(300):
        effort = controller.effort(sim.time, sim.q, sim.v)
        report = sim.step(effort, pushes(sim, 2 * k) if law != 'trot' else None)
        digest.add(effort, report.q, report.v, report.contacts.force)
    add_report(digest, report)
    return digest.hex


def supported(name: str) -> str:
    """Return the digest of a support analysis, and of what stances can do."""
    robot = robot_called(name)
    q = robot.reference_configuration()
    v, digest, room = 0.1 * np.cos(np.arange(robot.nv)), Digest(), the('support')
    feet = [foot.name for foot in robot.feet]
    for active in (feet, feet[:1], feet[::3], feet[1:], []):
        for on in ('plane', 'slope'):
            found = contact_sim.analyse_support(robot, q, active, terrain=ground(on))
            digest.add_all(found, SUPPORT)
        if len(active) < 2:
            continue
        held = room.stance_dynamics(robot, q, v, active)
        effort = 0.5 * np.sin(np.arange(robot.n_joints))
        for of_effort in ('acceleration', 'constraint_force', 'projected_acceleration'):
            digest.add(getattr(room, of_effort)(held, held.selection_matrix.T @ effort))
        digest.add(room.effort_null_space(held), room.impulse_transfer(held))
        digest.add(room.inverse_dynamics(held, np.zeros(robot.nv)))
    return digest.hex


def noisy(robot: Any, seed: int) -> list[Any]:
    """Return sensors with all errors that they can have."""
    noise = the('NoiseParameters')(
        joint_position=0.01, joint_velocity=0.05, imu_gyro=0.005, imu_accel=0.05, foot_force=2.0,
        foot_torque=0.1,
    )  # fmt: skip
    imu = the('ImuSensing')(
        gyro_bias_walk=0.01, accel_bias_walk=0.1, gyro_resolution=1e-3, accel_resolution=1e-2,
        gyro_scale=(0.01, 0.0, -0.01), gyro_scale_deviation=0.01, accel_scale_deviation=0.01,
        gyro_misalignment_deviation=0.02, accel_misalignment=(0.01, 0.02, 0.0), latency=2,
    )  # fmt: skip
    encoders = the('EncoderSensing')(position_resolution=1e-3, velocity_resolution=1e-2, latency=1)
    forces = the('ForceSensing')(
        force_resolution=0.5, force_scale_deviation=0.02, torque_scale_deviation=0.02,
        misalignment_deviation=0.03, latency=3,
    )  # fmt: skip
    feet = [foot.name for foot in robot.feet]
    flags = the('ContactSensing')(
        on_threshold=8.0, off_threshold=4.0, latency=1, stuck_off=tuple(feet[:1]), dropout=0.2
    )
    imus = [the('Imu')(robot, frame, noise, imu, seed) for frame in ('', feet[0])]
    return [
        *imus,
        the('Imu')(robot),
        the('Encoders')(robot, None, noise, encoders, seed),
        the('ContactFlags')(robot, flags, seed=seed),
        the('FootForces')(robot, 'foot', noise, forces, seed),
        the('FootForces')(robot, 'world'),
    ]


def sensed(name: str, model: str) -> str:
    """Return the digest of readings of one robot, or of two that were joined."""
    world = robot_called(name) if name in contact_sim.robots() else bodies(name)
    sim = contact_sim.Simulator(world, model)
    drop(sim)
    parts = the('parts_of')(world)
    legged = [part for part in parts if part.robot.feet]
    lines = [[the('DelayedSensor')(one) for one in noisy(p.robot, 7 + p.number)] for p in legged]
    digest, law = Digest(), Standing(sim)
    for k in range(STEPS):
        report = sim.step(law.effort(k), pushes(sim, k))
        for part, ours in zip(legged, lines, strict=True):
            seen = report if len(parts) == 1 else the('RobotView')(report, part)
            for line in ours:
                digest.add(line.read(seen))
    return digest.hex


# ------------------------------------------------------------------------------- 6: topics


SAID = {
    'noise': {'imu_gyro': 0.01, 'imu_accel': 0.1, 'joint_position': 0.001, 'foot_force': 1.0},
    'sensors.imu': {'gyro_bias_walk': 0.01, 'latency': 2},
    'sensors.joints': {'position_resolution': 1e-3, 'latency': 1},
    'sensors.contacts': {'on_threshold': 8.0, 'off_threshold': 4.0, 'latency': 1},
    'sensors.forces': {'force_resolution': 0.5, 'latency': 3},
    'node': {'seed': 5},
}
"""Parameters of a node that a recording holds."""


def topics(name: str) -> dict[str, str]:
    """Return the digest of every topic, and of the table, of a recorded run."""
    with tempfile.TemporaryDirectory(prefix='same_bits_') as folder:
        home = Path(folder)
        record(name, home / 'run.npz')
        told = [printed('replay', home, 'run.npz', '--json', '--model', 'lcp')]
        files = '--mcap', 'run.mcap', '--csv', 'run.csv'
        told.append(printed('replay', home, 'run.npz', *files, '--ground-truth'))
        return {
            **of_topics(home / 'run.mcap'),
            ':csv': Digest((home / 'run.csv').read_bytes()).hex,
            ':recording': of_recording(home / 'run.npz'),
            ':told': Digest(told).hex,
        }


def of_recording(path: Path) -> str:
    """Return the digest of what is in a recording, but for the versions of who wrote it."""
    digest = Digest()
    with np.load(path) as entries:
        for name in entries.files:
            if name == 'header':
                header = json.loads(str(entries[name]))
                digest.add({key: one for key, one in header.items() if key != 'versions'})
            else:
                digest.add(name, entries[name])
    return digest.hex


def printed(program: str, folder: Path, *arguments: str) -> str:
    """Return what a program of the package prints.

    Raises:
        RuntimeError: it ends with another status than 0.
    """
    command = [sys.executable, '-m', f'contact_sim.{program}', *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f'{program} {" ".join(arguments)}: {done.stderr.strip()[-500:]}')
    return done.stdout


def program(name: str, *arguments: str) -> str:
    """Return the digest of what a program prints."""
    with tempfile.TemporaryDirectory(prefix='same_bits_') as folder:
        return Digest(printed(name, Path(folder), *arguments)).hex


def record(name: str, path: Path) -> None:
    """Record a run, with pushes, a switch, a constraint and a reset."""
    if name == 'go1':
        robot, parameters = robot_called('go1'), {}
    elif name == 'held':
        robot, parameters = robot_called('four_bar_quadruped').with_body_contacts(), SAID
    else:
        robot, parameters = bodies(name), SAID
    sim = contact_sim.Simulator(robot, 'ncp', ground('slope' if name == 'go1' else 'plane'))
    drop(sim)
    law = Standing(sim)
    with the('Recorder')(sim, path, parameters=parameters):
        for k in range(80):
            if k == 40:
                sim.contact_model = 'sap'
            if k == 50 and name == 'held':
                sim.add_constraint(the('PointAnchor')(robot.base_frame, name='tether'))
            if k == 70:
                sim.reset(time=sim.time)
            sim.step(law.effort(k), pushes(sim, k))


def of_topics(path: Path) -> dict[str, str]:
    """Return the digest of every topic in an MCAP file."""
    from mcap.reader import make_reader

    digests: dict[str, Digest] = {}
    with path.open('rb') as file:
        for schema, channel, message in make_reader(file).iter_messages(log_time_order=False):
            if channel.topic not in digests:
                about = channel.message_encoding, channel.metadata
                digests[channel.topic] = Digest(channel.topic, *about)
                digests[channel.topic].add(schema.name, schema.encoding, schema.data)
            digests[channel.topic].add(message.log_time, message.publish_time, message.data)
    return {topic: digest.hex for topic, digest in sorted(digests.items())}


# ------------------------------------------------------------------------------- 7: robots


def loaded(name: str, fixed: bool) -> Any:
    """Return a robot, or the one with a joint that follows another one."""
    if name == 'mimic':
        return mimic()
    if name in ('crate', 'two'):
        return bodies(name)
    return contact_sim.load_robot(name, floating_base=False) if fixed else robot_called(name)


def numbers(name: str, fixed: bool) -> Iterator[Any]:
    """Yield all numbers of a robot, in the order of its names."""
    robot = loaded(name, fixed)
    model = robot.pinocchio_model
    yield from (np.array(placement.homogeneous) for placement in model.jointPlacements)
    for inertia in model.inertias:
        yield from (np.array(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))
    yield from (np.array(frame.placement.homogeneous) for frame in model.frames)
    for frame in model.frames:
        inertia = frame.inertia
        yield from (np.array(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))
    for joint in model.joints:
        if hasattr(joint, 'axis'):
            yield np.array(joint.axis)
    for attribute in MODEL:
        value = getattr(model, attribute)
        yield np.array(value.vector if attribute == 'gravity' else value, dtype=float).reshape(-1)
    for point in robot.contact_points:
        yield from (np.array(point.offset), np.array(point.radius))
    for limit in robot.position_limits:
        yield np.array([limit.lower, limit.upper, limit.restitution, *limit.shares])
    for pose in sorted(robot.reference_configurations):
        yield np.array(robot.reference_configuration(pose))
    yield from robot.default_gains
    actuators = robot.actuators
    for each in dataclasses.fields(actuators):
        if each.name != 'joint_names':
            yield np.array(getattr(actuators, each.name))
    yield np.array([robot.gains_time_step, robot.total_mass])
    for one in ('effort_limit', 'velocity_limit', 'joint_damping', 'joint_friction',
                'lower_position_limit', 'upper_position_limit', 'selection_matrix'):  # fmt: skip
        yield np.array(getattr(robot, one))
    for solid in robot.solids:
        yield np.array([*solid.half, solid.radius, *solid.centre, *solid.rotation, solid.error])


def model_exact(name: str, fixed: bool) -> str:
    """Return the digest of the bytes of all numbers of a robot."""
    return Digest(*numbers(name, fixed)).hex


def model_round(name: str, fixed: bool) -> str:
    """Return the digest of all numbers, rounded to twelve decimals."""
    return Digest(*(np.round(one, 12) + 0.0 for one in numbers(name, fixed))).hex


def model_names(name: str, fixed: bool) -> str:
    """Return the digest of everything that has a name, and of how it hangs together."""
    robot = loaded(name, fixed)
    model = robot.pinocchio_model
    digest = Digest(robot.name, model.name, list(model.names), list(map(int, model.parents)))
    digest.add([joint.shortname() for joint in model.joints], model.nq, model.nv)
    digest.add([(joint.idx_q, joint.idx_v) for joint in model.joints])
    for frame in model.frames:
        digest.add(frame.name, str(frame.type), int(frame.parentJoint), int(frame.parentFrame))
    digest.add([(one.name, one.frame, one.joint) for one in robot.contact_points])
    digest.add([(foot.name, foot.frame, foot.joint, foot.points) for foot in robot.feet])
    digest.add([limit.joints for limit in robot.position_limits])
    digest.add(list(map(str, robot.constraints)), sorted(robot.reference_configurations))
    digest.add(robot.joint_names, robot.passive_joint_names, robot.base_frame, robot.notes)
    digest.add(robot.floating_base, robot.continuous_joints, robot.joint_velocity_index)
    digest.add([(one.name, one.frame, one.joint) for one in robot.solids])
    digest.add(robot.collisions.pairs, robot.collisions.most, repr(robot), robot.description)
    return digest.hex


def model_bodies(name: str) -> str:
    """Return the digest of contact points on bodies and of pairs of links that may touch."""
    robot = robot_called(name).with_body_contacts().with_self_collision()
    digest = Digest()
    for point in robot.body_points:
        digest.add(point.name, point.frame, point.joint, point.offset, point.radius)
    digest.add(robot.approximations, robot.collisions.pairs)
    digest.add([solid.name for solid in robot.collisions.solids])
    return digest.hex


# ------------------------------------------------------------------------------- all cases


@cache
def cases() -> dict[str, Case]:
    """Return all cases by name; those that take long come first."""
    models, found = contact_sim.contact_models(), dict[str, Case]()
    stepping = [model for model in models if model != 'hybrid']

    def add(name: str, function: Callable[..., Result], *arguments: Any) -> None:
        found[name] = partial(function, *arguments)

    for name in ('go1', 'two', 'crate', 'held'):
        add(f'topics:{name}', topics, name)
    for model in ('hybrid', *stepping):
        add(f'shadow:{model}', shadowed, model)
        for name in ('folded', 'crate', 'two', 'cradle', 'box', 'ball'):
            add(f'bodies:{name}:{model}', touching, model, name)
        add(f'bodies:box-steps:{model}', touching, model, 'box', 'steps')
        for on in ('plane', 'rough', 'steps'):
            for robot in ROBOTS:
                add(f'ground:{on}:{robot}:{model}', on_ground, model, robot, on)
        for on in ('walls', 'boxes', 'slope', 'valley', 'hill', 'pipe'):
            add(f'ground:{on}:go1:{model}', on_ground, model, 'go1', on)
        for name in HELD:
            add(f'held:{name}:{model}', held, model, name)
        add(f'follow:{model}', followed, model)
        add(f'switch:{model}', switched, model)
        add(f'restore:{model}', restored, model)
        add(f'limits:{model}', at_limits, model)
        for name in contact_sim.textbook_systems():
            add(f'textbook:{name}:{model}', system, name, model)
    for model in stepping:
        add(f'momentum:{model}', with_momentum, model)
        for name in ('two', 'crate'):
            add(f'momentum:{name}:{model}', with_momentum, model, name)
        for name, on in (('go1', 'plane'), ('go1', 'rough'), ('anymal_b', 'steps'),
                         ('four_bar_quadruped', 'plane'), ('folded', 'plane')):  # fmt: skip
            add(f'worlds:{name}:{on}:{model}', worlds, model, name, on)
    for name, variants in VARIANTS.items():
        for number in range(len(variants)):
            add(f'variant:{name}:{number}', variant, name, number)
    for model in ('ncp', 'sap'):
        for law in ('hold', 'squat', 'sway', 'trot'):
            for robot in ('go1', 'anymal_b', 'solo12'):
                add(f'control:{law}:{robot}:{model}', controlled, law, robot, model)
        for name in ('go1', 'anymal_b', 'two'):
            add(f'sensors:{name}:{model}', sensed, name, model)
    for name in ('go1', 'quadruped', 'four_bar_quadruped', 'solo8'):
        add(f'program:inspect:{name}', program, 'inspect', name)
        add(f'program:support:{name}', program, 'support', '--robot', name)
    add('gauss', gauss)
    add('maximal', maximal, None)
    add('maximal:ncp', maximal, 'ncp')
    for name in the('READY_MADE'):
        add(f'terrain:{name}', field, name)
    for name in contact_sim.robots():
        add(f'support:{name}', supported, name)
        add(f'model-bodies:{name}', model_bodies, name)
    for name in (*contact_sim.robots(), *contact_sim.textbook_systems(), 'mimic', 'two', 'crate'):
        for base in ('', ':fixed') if name in contact_sim.robots() else ('',):
            add(f'model-exact:{name}{base}', model_exact, name, bool(base))
            add(f'model-round:{name}{base}', model_round, name, bool(base))
            add(f'model-names:{name}{base}', model_names, name, bool(base))
    return found


def run_case(name: str) -> dict[str, str]:
    """Return the digests of a case by full name, or what it raised."""
    warnings.simplefilter('ignore')
    try:
        result = cases()[name]()
    except Exception as error:
        return {name: f'error: {type(error).__name__}: {error}'}
    if isinstance(result, str):
        return {name: result}
    return {f'{name}{behind}': digest for behind, digest in result.items()}


def end_with(parent: int) -> None:
    """End this process soon after its parent was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def check_root(root: str) -> None:
    """Refuse another contact_sim than the one below `root`."""
    here = Path(str(contact_sim.__file__)).resolve()
    if not here.is_relative_to(Path(root).resolve()):
        raise SystemExit(f'same_bits: contact_sim is {here.parent}, expected one below {root}')


def run_all(only: str, jobs: int) -> dict[str, str]:
    """Run all cases whose names match a pattern; return their digests in the order of cases."""
    chosen = [name for name in cases() if fnmatch.fnmatchcase(name, f'*{only}*')]
    if not chosen:
        raise SystemExit(f'same_bits: no case matches {only!r}')
    found: dict[str, dict[str, str]] = {}
    begin, shown = time.perf_counter(), sys.stderr.isatty()
    context = multiprocessing.get_context('spawn')
    with ProcessPoolExecutor(jobs, context, end_with, (os.getpid(),)) as executor:
        waiting = {executor.submit(run_case, name): name for name in chosen}
        for done in as_completed(waiting):
            found[waiting[done]] = done.result()
            if shown:
                print(f'\r{len(found)} of {len(chosen)} cases', end='', file=sys.stderr)
    seconds = time.perf_counter() - begin
    print(f'{len(chosen)} cases of {contact_sim.__file__} in {seconds:.0f} s', file=sys.stderr)
    return {key: value for name in chosen for key, value in found[name].items()}


# ------------------------------------------------------------------------------- command line


def differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return what differs between two sets of digests, and what is no digest, in words."""
    said = []
    for name in dict.fromkeys([*old, *new]):
        before, after = old.get(name, 'missing'), new.get(name, 'missing')
        if before != after:
            said.append(f'{name}: {before[:100]} -> {after[:100]}')
        elif before.startswith('error'):
            said.append(f'{name}: {before[:200]}')
    return said


def compare(old: Mapping[str, str], new: Mapping[str, str]) -> int:
    """Print what differs; return 0 if nothing does."""
    said = differences(old, new)
    if said:
        groups = Counter(line.split(':')[0] for line in said)
        print('\n'.join(said))
        print(', '.join(f'{group} {count}' for group, count in groups.items()))
    print(f'{len(said)} of {len(old.keys() | new.keys())} digests differ')
    return 1 if said else 0


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check a commit out in a temporary folder while the block runs.

    The same folder every time, and files as old as the commit: kernels that were compiled for it
    are found again.
    """
    git = ['git', '-C', str(Path(__file__).resolve().parents[1])]
    told = partial(subprocess.run, check=True, capture_output=True, text=True)
    try:
        shown = told([*git, 'show', '--no-patch', '--format=%H %ct', f'{commit}^{{commit}}'])
    except subprocess.CalledProcessError as error:
        raise SystemExit(f'same_bits: {error.stderr.strip()}') from error
    name, age = shown.stdout.split()
    tree = Path(tempfile.gettempdir()) / f'same_bits_{os.getuid()}_{name[:12]}'
    remove = [*git, 'worktree', 'remove', '--force', str(tree)]
    subprocess.run(remove, check=False, capture_output=True)  # one that was left behind
    told([*git, 'worktree', 'add', '--detach', str(tree), name])
    try:
        for file in tree.rglob('*.py'):
            os.utime(file, (int(age), int(age)))
        yield tree
    finally:
        told(remove)


def digests_in(root: Path, options: Sequence[str]) -> dict[str, str]:
    """Return the digests of the package in a folder, from a process of its own."""
    paths = [str(root), *filter(None, os.environ.get('PYTHONPATH', '').split(os.pathsep))]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}
    with tempfile.TemporaryDirectory(prefix='same_bits_') as folder:
        file = Path(folder) / 'digests.json'
        command = [sys.executable, str(Path(__file__).resolve()), '--write', str(file)]
        command += ['--root', str(root), *options]
        subprocess.run(command, env=environment, cwd=folder, check=False)
        if not file.exists():
            raise SystemExit(f'same_bits: the cases could not be run in {root}')
        return read(file)


def read(file: Path) -> dict[str, str]:
    """Return the digests in a file."""
    found: dict[str, str] = json.loads(file.read_text(encoding='utf-8'))
    return found


def default_root() -> str:
    """Return the first folder of PYTHONPATH, else this checkout."""
    first = os.environ.get('PYTHONPATH', '').split(os.pathsep)[0]
    return first or str(Path(__file__).resolve().parents[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write digests, or compare them; return 1 if any differ or could not be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--write', type=Path, metavar='FILE', help='run the cases, write digests')
    what.add_argument('--compare', type=Path, nargs=2, metavar='FILE', help='two written files')
    what.add_argument('--against', metavar='COMMIT', help='run the cases in it and here')
    what.add_argument('--list', action='store_true', help='names of the cases')
    parser.add_argument('--only', default='', metavar='PATTERN', help='part of names, * and ?')
    parser.add_argument('--jobs', type=int, default=2, help='processes')
    parser.add_argument('--root', default=default_root(), help='where contact_sim must be')
    options = parser.parse_args(arguments)
    if options.compare:
        return compare(*map(read, options.compare))
    if options.against:
        chosen = ['--only', options.only, '--jobs', str(options.jobs)]
        with worktree(options.against) as tree:
            old = digests_in(tree, chosen)
        return compare(old, digests_in(Path(__file__).resolve().parents[1], chosen))
    check_root(options.root)
    if options.list:
        print('\n'.join(cases()))
        return 0
    found = run_all(options.only, options.jobs)
    options.write.write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')
    wrong = [f'{name}: {digest}' for name, digest in found.items() if digest.startswith('error')]
    print('\n'.join(wrong), end='\n' if wrong else '', file=sys.stderr)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
