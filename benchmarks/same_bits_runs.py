"""What the cases of same_bits.py run, and digests of the raw bytes of what comes out.

Where a name of contact_sim has moved, add its new place to PLACES.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import inspect
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
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
