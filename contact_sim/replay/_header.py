"""Header of a recording: robot, terrain, contact model, parameters, versions, as JSON."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib.metadata
import math
import platform
import subprocess
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.arrays._fields import TERRAIN_DATA
from contact_sim.collision._surface import FACETED, PLANES
from contact_sim.collision._terrain import FacetGround, GroundSurface, Terrain
from contact_sim.constraints._constraint_rows import constraint_to_dict
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import UnknownName
from contact_sim.replay._archive import RecordingError
from contact_sim.robot._actuators import Actuators, quantities
from contact_sim.robot._collision_pairs import NO_COLLISIONS, Collisions, Solid
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._joint_limits import PositionLimit
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import JoinedRobots, joined
from contact_sim.robot._urdf import is_xml
from contact_sim.simulation._simulator import Simulator
from contact_sim.terrain import Region

FORMAT = 7
READABLE = 1, 2, 3, 4, 5, 6, 7
"""Formats that can be repeated. New were: 2 other ground than planes, 3 integrators, 4 relief,
5 regions and joint limits, 6 contacts between bodies, 7 bilateral constraints."""
PACKAGES = ('contact_sim', 'pin', 'numba', 'llvmlite', 'numpy')
"""Packages whose versions affect the last bits."""


@dataclass(frozen=True)
class RecordedTerrain(GroundSurface):
    """The terrain of a recording, exactly as it was."""

    header: Mapping[str, Any] = field(repr=False)
    """`ground_header` of the terrain."""

    @property
    def kind(self) -> int:
        """Kind of surface."""
        return int(self.header['kind'])

    @property
    def data(self) -> Array:
        """Numbers of the surface, shape (TERRAIN_DATA,)."""
        return np.array(self.header['data'], dtype=float)

    @property
    def features(self) -> int:
        """Number of contacts that a sphere may have at once."""
        return int(self.header['features'])


def ground_header(terrain: Terrain) -> dict[str, Any]:
    """Return kind and numbers of a terrain; those of a relief are compressed."""
    data = np.asarray(terrain.data, dtype=float).tolist()
    header = {'kind': terrain.kind, 'data': data, 'features': terrain.features}
    if len(terrain.relief):
        header['relief'] = base64.b64encode(zlib.compress(terrain.relief.tobytes())).decode()
    if terrain.regions:
        header['regions'] = [dataclasses.asdict(region) for region in terrain.regions]
    return header


def ground_of(header: Mapping[str, Any]) -> Terrain:
    """Return the terrain of a recording; one of format 1 has a plane.

    Raises:
        RecordingError: a relief that cannot be unpacked.
    """
    if header['format'] == 1:
        data = [*header['plane'], *np.zeros(TERRAIN_DATA - 4).tolist()]
        return RecordedTerrain({'kind': PLANES, 'data': data, 'features': 1})
    recorded = RecordedTerrain(header['ground'])
    ground: GroundSurface = recorded_relief(recorded) if recorded.kind in FACETED else recorded
    return ground.with_regions(Region(**region) for region in header['ground'].get('regions', ()))


def recorded_relief(ground: RecordedTerrain) -> FacetGround:
    """Return a terrain of facets.

    Raises:
        RecordingError: its relief cannot be unpacked.
    """
    try:
        packed = base64.b64decode(ground.header['relief'], validate=True)
        numbers = np.frombuffer(zlib.decompress(packed)).copy()
    except (KeyError, ValueError, TypeError, zlib.error) as error:
        raise RecordingError(f'the relief of the ground is damaged: {error}') from error
    return FacetGround(ground.kind, ground.data, numbers)


def header_of(
    sim: Simulator, hash_every: int, parameters: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the header of a recording of `sim`, ready for JSON."""
    return {
        'format': FORMAT,
        'versions': versions(),
        'robot': robot_header(sim.robot),
        'state': state_shapes(sim),
        'constraints': constraints_header(sim.constraints),
        'ground': ground_header(sim.terrain),
        'gravity': sim.gravity.tolist(),
        'time_step': sim.time_step,
        'integrator': sim.integrator,
        'contact_model': model_header(sim.model),
        'friction': sim.friction.tolist(),
        'restitution': sim.restitution.tolist(),
        'hash_every': hash_every,
        'parameters': dict(parameters or {}),
    }


def state_shapes(sim: Simulator) -> dict[str, list[int]]:
    """Return the shape of every field of the step data that has numbers."""
    return {name: list(shape) for name, shape in sim.sizes.shapes().items() if math.prod(shape)}


def constraints_header(constraints: Iterable[Constraint]) -> list[dict[str, Any]]:
    """Return the bilateral constraints as JSON.

    Raises:
        InvalidInput: one of them is a Python function.
    """
    return [constraint_to_dict(constraint) for constraint in constraints]


def versions() -> dict[str, str]:
    """Return the versions of everything that affects the last bits."""
    versions = {'python': platform.python_version(), 'machine': platform.machine()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = 'unknown'
    versions['pin'] = pin.__version__
    return versions


def model_header(model: ContactModel) -> dict[str, Any]:
    """Return name and parameters of a contact model."""
    return {'name': model.name, 'parameters': dataclasses.asdict(model.parameters)}


def contact_model_of(header: Mapping[str, Any]) -> ContactModel:
    """Return the contact model that `model_header` described.

    Raises:
        UnknownName: a custom contact model; choose another one for the replay.
        InvalidInput: parameters that this version does not allow.
    """
    name = header['name']
    if name not in CONTACT_MODELS:
        raise UnknownName('contact model in the recording', name, CONTACT_MODELS)
    return CONTACT_MODELS[name](**header['parameters'])


def robot_header(robot: RobotModel) -> dict[str, Any]:
    """Return everything that `robot_of` needs to build the robot again."""
    described = {
        'name': robot.name,
        'description': robot.description,
        # without a description the model itself, as Pinocchio serialises it
        'model': '' if robot.description else robot.pinocchio_model.saveToString(),
        'floating_base': robot.floating_base,
        'joint_names': list(robot.joint_names),
        'contact_points': _points_header(robot.contact_points),
        'body_points': _points_header(robot.body_points),
        'actuators': _actuators_header(robot.declared_actuators),
        'position_limits': [_limit_header(limit) for limit in robot.position_limits],
        'collisions': dataclasses.asdict(robot.collisions),
        'parts': _parts_header(robot),
    }
    return {**described, 'hash': description_hash(described), 'numbers': number_hash(robot)}


def _parts_header(robot: RobotModel) -> list[dict[str, Any]]:
    """Return the robots that were joined, each as it is alone; empty for a single robot."""
    parts = robot.parts if isinstance(robot, JoinedRobots) else ()
    return [
        {'name': part.name, 'place': list(part.place), 'robot': robot_header(part.robot)}
        for part in parts
    ]


def _points_header(points: Iterable[ContactPoint]) -> list[dict[str, Any]]:
    return [{**dataclasses.asdict(point), 'offset': point.offset.tolist()} for point in points]


def _actuators_header(actuators: Actuators | None) -> dict[str, list[float | None]] | None:
    """Return the numbers of declared actuators; infinity, which JSON lacks, becomes None."""
    if actuators is None:
        return None
    return {
        name: [value if np.isfinite(value) else None for value in getattr(actuators, name)]
        for name in quantities()
    }


def _with_actuators_of(header: Mapping[str, Any], robot: RobotModel) -> RobotModel:
    """Return the robot with the declared actuators, if any were declared."""
    recorded = header.get('actuators')
    if recorded is None:
        return robot
    numbers = {
        name: np.nan_to_num(np.array(values, dtype=float), nan=np.inf)
        for name, values in recorded.items()
    }
    return robot.with_actuators(None, **numbers)


def _limit_header(limit: PositionLimit) -> dict[str, Any]:
    """Return a limit as JSON; None stands for an infinite bound."""
    fields = dataclasses.asdict(limit)
    bounds = {name: x if np.isfinite(x := fields[name]) else None for name in ('lower', 'upper')}
    return {**fields, **bounds}


def _limit_of(header: Mapping[str, Any]) -> PositionLimit:
    lower = -np.inf if header['lower'] is None else header['lower']
    upper = np.inf if header['upper'] is None else header['upper']
    return PositionLimit(
        tuple(header['joints']), lower, upper, tuple(header['shares']), header['restitution']
    )


def _collisions_of(header: Mapping[str, Any]) -> Collisions:
    """Return the collision pairs; before format 6 there were none."""
    recorded = header.get('collisions')
    if recorded is None:
        return NO_COLLISIONS
    solids = []
    for solid in recorded['solids']:
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in solid.items()
        }
        solids.append(Solid(**fields))
    pairs = tuple((a, b) for a, b in recorded['pairs'])
    return Collisions(tuple(solids), pairs, recorded['most'])


def description_hash(described: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the description of a robot: URDF, or the serialised model."""
    return hashlib.sha256((described['description'] or described['model']).encode()).hexdigest()


def number_hash(robot: RobotModel) -> str:
    """Return a hash of the numbers of the Pinocchio model: lengths, masses, limits, friction."""
    text = robot.pinocchio_model.saveToString().encode()
    return hashlib.sha256(text).hexdigest()


def robot_of(header: Mapping[str, Any], numbers_must_match: bool) -> RobotModel:
    """Return the robot that `robot_header` described.

    Raises:
        RecordingError: the description was changed, or no longer gives the same robot.
    """
    if description_hash(header) != header['hash']:
        raise RecordingError(
            f'the description of robot {header["name"]!r} in the recording was changed: its hash '
            f'is {description_hash(header)[:12]}, expected {header["hash"][:12]}'
        )
    robot = (
        _joined_of(header, numbers_must_match) if header.get('parts') else _single_robot(header)
    )
    if numbers_must_match and number_hash(robot) != header['numbers']:
        raise RecordingError(
            f'robot {header["name"]!r}: its description gives other lengths, masses or limits '
            'than those that were recorded; the Pinocchio model was changed after loading'
        )
    return robot


def _joined_of(header: Mapping[str, Any], numbers_must_match: bool) -> RobotModel:
    """Return robots as they were joined; older recordings have them only as one robot."""
    parts = {part['name']: part for part in header['parts']}
    robots = {name: robot_of(part['robot'], numbers_must_match) for name, part in parts.items()}
    places = {name: part['place'] for name, part in parts.items()}
    robot = joined(robots, places, header['name'])
    return dataclasses.replace(robot, collisions=_collisions_of(header))


def _single_robot(header: Mapping[str, Any]) -> RobotModel:
    """Return a robot that was not joined of several."""
    points = [ContactPoint(**point) for point in header['contact_points']]
    joints = header['joint_names']
    if header['description']:
        if not is_xml(header['description']):
            raise RecordingError('the description of the robot in the recording is no URDF text')
        # no xacro: a recording is data, nothing in it may run
        robot = load_robot(
            header['description'], header['floating_base'], points, joints, check_meshes=False
        )
        robot = dataclasses.replace(robot, description=header['description'])  # to the last blank
    else:
        robot = RobotModel.from_pinocchio(
            model_from(header['model']), points, joints, header['name']
        )
    body = tuple(ContactPoint(**point) for point in header.get('body_points', ()))
    limits = tuple(map(_limit_of, header.get('position_limits', ())))
    robot = dataclasses.replace(
        robot, body_points=body, position_limits=limits, collisions=_collisions_of(header)
    )
    return _with_actuators_of(header, robot)


def check_same_robot(header: Mapping[str, Any], robot: RobotModel) -> None:
    """Raise RecordingError unless `robot` has the description that was recorded."""
    other = robot_header(robot)
    if other['hash'] != header['hash']:
        raise RecordingError(
            f'robot {robot.name!r} has changed since the recording: the hash of its description '
            f'is {other["hash"][:12]}, the recording was made with {header["hash"][:12]}'
        )


# --- Models without a URDF are recorded as the text that Pinocchio serialises.
#
# Pinocchio's reader trusts its text: a damaged one can end the process with a segmentation fault
# or an assertion, in reading or in the first computation. So a child process, `model_trial.py`,
# reads it first and computes with it, with bounded memory and time.

TRIAL = Path(__file__).with_name('model_trial.py')
TRIAL_TIMEOUT = 60.0
"""[s]."""


def model_from(text: str) -> pin.Model:
    """Return the model in `text`.

    Raises:
        RecordingError: Pinocchio cannot read it, or what it reads is no valid model.
    """
    model = pin.Model()
    try:
        trial = subprocess.run(
            [sys.executable, str(TRIAL)], input=text.encode(errors='replace'),
            timeout=TRIAL_TIMEOUT, capture_output=True, check=False,
        )  # fmt: skip
        lines = trial.stderr.decode(errors='replace').strip().splitlines()
        if trial.returncode == 1 and lines:
            raise ValueError(lines[-1])
        if trial.returncode:
            raise ValueError(f'the process that read it ended with {trial.returncode}')
        model.loadFromString(text)
    except subprocess.TimeoutExpired as error:
        raise _unreadable(f'it takes longer than {TRIAL_TIMEOUT:g} s') from error
    except Exception as error:  # whatever C++ throws
        raise _unreadable(str(error)) from error
    return model


def _unreadable(reason: str) -> RecordingError:
    return RecordingError(
        f'Pinocchio {pin.__version__} cannot read the robot of the recording: {reason}'
    )
