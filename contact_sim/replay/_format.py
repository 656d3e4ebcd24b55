"""The format of a recording: its file, the hashes of its states, and its header.

The file is a .npz that grows while a simulation runs and stays readable if the process is killed:
every entry is complete in itself. A killed process leaves no table of contents at the end: then
the entries are read one after the other, up to the first that is incomplete.

The header has robot, terrain, contact model, parameters and versions, as JSON.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import hashlib
import importlib.metadata
import io
import math
import mmap
import os
import platform
import struct
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim.arrays._fields import TERRAIN_DATA, Sizes
from contact_sim.collision._surface import FACETED, PLANES
from contact_sim.collision._terrain import FacetGround, GroundSurface, Terrain
from contact_sim.constraints._constraint_rows import constraint_to_dict
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models._base import ContactModel
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName, shown
from contact_sim.robot._actuators import quantities
from contact_sim.robot._collision_pairs import NO_COLLISIONS, Collisions, Solid
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._coordinates import JointSpring, PositionLimit
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import JoinedRobots, joined
from contact_sim.robot._urdf import is_xml
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._user_values import MOMENT_COEFFICIENTS
from contact_sim.terrain import Region

HASHED = ('clock', 'now', 'impulse', 'effort', 'tau', 'friction', 'memory', 'delay_line',
          'lagged_effort', 'torsional_friction', 'rolling_friction', 'contact_moment')  # fmt: skip
"""Fields from which the next step starts, and the inputs of the last step."""


class StateHash:
    """Hashes the state in a buffer of step data to 64 bits: equal hashes mean equal bits."""

    def __init__(self, sizes: Sizes) -> None:
        self._slices = [slice(*sizes.layout[name][:2]) for name in HASHED]

    def __call__(self, buffer: Array) -> int:
        digest = hashlib.blake2b(digest_size=8)
        for part in self._slices:
            digest.update(buffer[part].data)
        return int.from_bytes(digest.digest(), 'little')


# --- The file.

LOCAL_HEADER = struct.Struct('<4s5H3L2H')
"""Signature, version, flags, method, time, date, checksum, packed and full size, two lengths."""
SIGNATURE = b'PK\x03\x04'
FAST = 1
"""Level of compression; more does not help, because the last digits of efforts are noise."""
OLDEST_DATE = (1980, 1, 1, 0, 0, 0)


class RecordingError(ContactSimError, ValueError):
    """A recording that cannot be read or repeated."""


class CannotRecord(ContactSimError, OSError):
    """A recording can no longer be written; what is in the file stays readable."""


@contextlib.contextmanager
def understood(what: str) -> Iterator[None]:
    """Turn errors of others inside the block into a RecordingError: a file may hold anything."""
    try:
        yield
    except ContactSimError:
        raise
    except Exception as error:
        raise RecordingError(f'{what} does not hold what it should: {error!r}') from error


class ArchiveWriter:
    """Writes arrays into a new .npz file, one by one."""

    def __init__(self, path: Path) -> None:
        if os.path.exists(path) and not os.path.isfile(path):  # a FIFO would wait for a reader
            raise InvalidInput(f'cannot write {path}: it is there, and no regular file')
        try:
            self._zip = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=FAST)
        except OSError as error:
            raise InvalidInput(f'cannot write {path}: {error.strerror}') from error
        except ValueError as error:  # such as a null character in its name
            raise InvalidInput(f'cannot write {str(path)!r}: {error}') from error

    def add(self, name: str, array: NDArray[Any]) -> None:
        """Append one array; the same numbers always give the same bytes."""
        content = io.BytesIO()
        np.lib.format.write_array(content, np.asarray(array), allow_pickle=False)
        entry = zipfile.ZipInfo(f'{name}.npy', OLDEST_DATE)
        entry.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(entry, content.getvalue(), compresslevel=FAST)

    def flush(self) -> None:
        """Hand everything to the operating system, so that a killed process loses nothing."""
        if self._zip.fp is not None:
            self._zip.fp.flush()

    def close(self) -> None:
        """Write the table of contents."""
        self._zip.close()

    def abandon(self) -> None:
        """Close the file without a table of contents, after it could not be written."""
        file, self._zip.fp = self._zip.fp, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


class Archive:
    """The arrays of a .npz file, read one at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        self._content: bytes | mmap.mmap = b''
        with _reading.reading(path, RecordingError):
            _reading.regular_file(path)
            try:
                with path.open('rb') as file:
                    if path.stat().st_size:
                        self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                self._zip = _reading.opened_zip(path)
            except OSError as error:
                raise RecordingError(f'cannot read {path}: {error.strerror}') from error
            except (ContactSimError, MemoryError):
                raise
            except Exception:  # whatever zipfile raises at a damaged table of contents
                self._entries = _entries(self._content, path)
        self.complete = self._zip is not None  # else it ends before its table of contents
        entries = self._zip.namelist() if self._zip is not None else list(self._entries)
        self.names = [name.removesuffix('.npy') for name in entries]  # as they were written
        if not self.names:
            raise RecordingError(f'{path} is not a recording: it is no .npz file')

    def __getitem__(self, name: str) -> NDArray[Any]:
        entry, place = f'{name}.npy', f'{self._path}: {shown(name)}'
        with _reading.reading(place, RecordingError):
            try:
                if self._zip is not None:
                    return _reading.zipped_array(self._zip, entry, place)
                start, packed, full, checksum = self._entries[entry]
                _reading.check_unpacked(place, packed, max(packed, full))
                content = _reading.unpacked(
                    place, self._content[start : start + packed], full, -zlib.MAX_WBITS
                )
                if zlib.crc32(content) != checksum:
                    raise _reading.Unreadable(f'{place} is damaged (wrong checksum)')
                return _reading.npy_array(io.BytesIO(content), len(content), place)
            except KeyError as error:
                raise RecordingError(f'{place} is missing') from error


def _entries(content: bytes | mmap.mmap, path: Path) -> dict[str, tuple[int, int, int, int]]:
    """Return offset, packed and full size, and checksum of every complete entry."""
    entries: dict[str, tuple[int, int, int, int]] = {}
    place, most = 0, _reading.limits().entries
    while place + LOCAL_HEADER.size <= len(content):
        fields = LOCAL_HEADER.unpack_from(content, place)
        checksum, packed, full, name_length, extra = fields[6:11]
        start = place + LOCAL_HEADER.size
        data = start + name_length + extra
        if fields[0] != SIGNATURE or data + packed > len(content):
            break
        name = content[start : start + name_length].decode(errors='replace')
        entries[name] = (data, packed, full, checksum)
        if len(entries) > most:
            raise _reading.beyond(path, f'{len(entries)} members', 'entries')
        place = data + packed
    return entries


# --- The header.

FORMAT = 7
READABLE = 1, 2, 3, 4, 5, 6, 7
"""Formats that can be repeated. New were: 2 other ground than planes, 3 integrators, 4 relief,
5 regions and joint limits, 6 contacts between bodies, 7 bilateral constraints."""
PACKAGES = ('contact_sim', 'pin', 'numba', 'llvmlite', 'numpy')
"""Packages whose versions affect the last bits."""


class RecordedTerrain(GroundSurface):
    """The terrain of a recording, exactly as it was."""

    kind, features = PLANES, 1

    def __init__(self, kind: int, data: Sequence[float], features: int = 1) -> None:
        self.kind, self.features = int(kind), int(features)
        self._data = np.array(data, dtype=float)

    @property
    def data(self) -> Array:
        """Numbers of the surface, shape (TERRAIN_DATA,)."""
        return self._data.copy()


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
    """Return the terrain of a recording; one of format 1 has a plane."""
    if header['format'] == 1:
        return RecordedTerrain(PLANES, [*header['plane'], *[0.0] * (TERRAIN_DATA - 4)])
    recorded = header['ground']
    ground: GroundSurface = RecordedTerrain(
        recorded['kind'], recorded['data'], recorded['features']
    )
    if ground.kind in FACETED:
        try:
            packed = base64.b64decode(recorded['relief'], validate=True)
            what = 'the relief of the ground'
            with _reading.reading(what, RecordingError):
                relief = np.frombuffer(_reading.unpacked(what, packed)).copy()
        except RecordingError:
            raise
        except (KeyError, ValueError, TypeError) as error:
            raise RecordingError(f'the relief of the ground is damaged: {error}') from error
        ground = FacetGround(ground.kind, ground.data, relief)
    return ground.with_regions(Region(**region) for region in recorded.get('regions', ()))


def header_of(
    sim: Simulator, hash_every: int, parameters: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the header of a recording of `sim`, ready for JSON."""
    return {
        'format': FORMAT,
        'versions': versions(),
        'robot': robot_header(sim.robot),
        'state': state_shapes(sim),
        'constraints': [constraint_to_dict(constraint) for constraint in sim.constraints],
        'ground': ground_header(sim.terrain),
        'gravity': sim.gravity.tolist(),
        'time_step': sim.time_step,
        'integrator': sim.integrator,
        'contact_model': model_header(sim.model),
        'friction': sim.friction.tolist(),
        'restitution': sim.restitution.tolist(),
        'moments': moments_header(sim),
        'hash_every': hash_every,
        'parameters': dict(parameters or {}),
    }


def moments_header(sim: Simulator) -> dict[str, list[float]]:
    """Return the coefficients of moments of contacts by name, none where all are zero."""
    coefficients = {name: getattr(sim, name).tolist() for name in MOMENT_COEFFICIENTS}
    return coefficients if sim.sizes.n_moments else {}


def state_shapes(sim: Simulator) -> dict[str, list[int]]:
    """Return the shape of every field of the step data that has numbers."""
    return {name: list(shape) for name, shape in sim.sizes.shapes().items() if math.prod(shape)}


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
    """Return the contact model that `model_header` described; a custom one is unknown."""
    name = header['name']
    if name not in CONTACT_MODELS:
        raise UnknownName('contact model in the recording', name, CONTACT_MODELS)
    return CONTACT_MODELS[name](**header['parameters'])


def robot_header(robot: RobotModel) -> dict[str, Any]:
    """Return everything that `robot_of` needs to build the robot again."""
    actuators = robot.declared_actuators
    described = {
        'name': robot.name,
        'description': robot.description,
        # without a description the model itself, as Pinocchio serialises it
        'model': '' if robot.description else robot.pinocchio_model.saveToString(),
        # masses may be others than those of the description
        'inertias': _inertias(robot.pinocchio_model),
        'floating_base': robot.floating_base,
        'joint_names': list(robot.joint_names),
        'contact_points': _points_header(robot.contact_points),
        'actuators': None
        if actuators is None
        else {name: [_or_none(x) for x in getattr(actuators, name)] for name in quantities()},
        'position_limits': [
            {
                **dataclasses.asdict(limit),
                'lower': _or_none(limit.lower),
                'upper': _or_none(limit.upper),
            }
            for limit in robot.position_limits
        ],
        'springs': [dataclasses.asdict(spring) for spring in robot.springs],
        'collisions': dataclasses.asdict(robot.collisions),
        # robots that were joined, each as it is alone
        'parts': [
            {'name': part.name, 'place': list(part.place), 'robot': robot_header(part.robot)}
            for part in (robot.parts if isinstance(robot, JoinedRobots) else ())
        ],
    }
    return {**described, 'hash': description_hash(described), 'numbers': number_hash(robot)}


def _points_header(points: Iterable[ContactPoint]) -> list[dict[str, Any]]:
    return [{**dataclasses.asdict(point), 'offset': point.offset.tolist()} for point in points]


def _or_none(bound: float) -> float | None:
    """Return None for an infinite bound, which JSON lacks."""
    return bound if np.isfinite(bound) else None


def _collisions_of(header: Mapping[str, Any]) -> Collisions:
    """Return the collision pairs; before format 6 there were none."""
    recorded = header.get('collisions')
    if recorded is None:
        return NO_COLLISIONS
    solids: list[dict[str, Any]] = [
        {name: _tuples(x) for name, x in solid.items()} for solid in recorded['solids']
    ]
    grounded, published = (tuple(recorded.get(name, ())) for name in ('grounded', 'published'))
    return Collisions(
        tuple(Solid(**solid) for solid in solids), _tuples(recorded['pairs']), recorded['most'],
        grounded, published,
    )  # fmt: skip


def _tuples(value: Any) -> Any:
    """Return lists of lists as tuples of tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def description_hash(described: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the description of a robot: URDF, or the serialised model."""
    return hashlib.sha256((described['description'] or described['model']).encode()).hexdigest()


def number_hash(robot: RobotModel) -> str:
    """Return a hash of the numbers of the Pinocchio model: lengths, masses, limits, friction."""
    return hashlib.sha256(robot.pinocchio_model.saveToString().encode()).hexdigest()


def robot_of(header: Mapping[str, Any], numbers_must_match: bool) -> RobotModel:
    """Return the robot that `robot_header` described, if that still gives the same robot."""
    if description_hash(header) != header['hash']:
        raise RecordingError(
            f'the description of robot {header["name"]!r} in the recording was changed: its hash '
            f'is {description_hash(header)[:12]}, expected {header["hash"][:12]}'
        )
    if header.get('parts'):  # older recordings have joined robots only as one robot
        robots = {
            part['name']: robot_of(part['robot'], numbers_must_match) for part in header['parts']
        }
        places = {part['name']: part['place'] for part in header['parts']}
        robot: RobotModel = joined(robots, places, header['name'])
        robot = dataclasses.replace(robot, collisions=_collisions_of(header))
    else:
        robot = _single_robot(header)
    if 'inertias' in header and header['inertias'] != _inertias(robot.pinocchio_model):
        robot = _with_inertias(robot, header['inertias'])
    if numbers_must_match and number_hash(robot) != header['numbers']:
        raise RecordingError(
            f'robot {header["name"]!r}: its description gives other lengths, masses or limits '
            'than those that were recorded; the Pinocchio model was changed after loading'
        )
    return robot


def _inertias(model: pin.Model) -> list[list[float]]:
    """Return mass, centre of mass and inertia (3, 3) of the body behind each joint, 13 numbers."""
    bodies = list(model.inertias)[1:]
    return [[body.mass, *body.lever.tolist(), *body.inertia.ravel().tolist()] for body in bodies]


def _with_inertias(robot: RobotModel, recorded: Any) -> RobotModel:
    """Return `robot` with the numbers of `_inertias`."""
    model = robot.pinocchio_model.copy()
    try:
        bodies = np.array(recorded, dtype=float).reshape(model.njoints - 1, 13)
    except (TypeError, ValueError) as error:
        raise RecordingError(
            f'robot {robot.name!r}: the inertias of the recording are not {model.njoints - 1} '
            f'lists of 13 numbers: {error}'
        ) from error
    if not (np.isfinite(bodies).all() and (bodies[:, 0] >= 0.0).all()):
        raise RecordingError(
            f'robot {robot.name!r}: an inertia of the recording is not finite, or a mass negative'
        )
    for joint, (mass, *numbers) in enumerate(bodies, 1):
        lever, inertia = np.array(numbers[:3]), np.array(numbers[3:]).reshape(3, 3)
        model.inertias[joint] = pin.Inertia(mass, lever, inertia)
    return dataclasses.replace(robot, pinocchio_model=model)


def _single_robot(header: Mapping[str, Any]) -> RobotModel:
    """Return a robot that was not joined of several."""
    # before format 9, points of bodies acted as those of feet do
    recorded = [*header['contact_points'], *header.get('body_points', ())]
    points = [ContactPoint(**point) for point in recorded]
    joints = header['joint_names']
    if header['description']:
        if not is_xml(header['description']):
            raise RecordingError('the description of the robot in the recording is no URDF text')
        # no xacro: a recording is data, nothing in it may run
        robot = load_robot(
            header['description'],
            header['floating_base'],
            points,
            joints,
            check_meshes=False,
            body_contacts=False,
        )
        robot = dataclasses.replace(robot, description=header['description'])  # to the last blank
    else:
        robot = RobotModel.from_pinocchio(
            model_from(header['model']), points, joints, header['name']
        )
    limits = [
        PositionLimit(
            tuple(limit['joints']),
            -np.inf if limit['lower'] is None else limit['lower'],
            np.inf if limit['upper'] is None else limit['upper'],
            tuple(limit['shares']),
            limit['restitution'],
        )
        for limit in header.get('position_limits', ())
    ]
    springs = (JointSpring(**spring) for spring in header.get('springs', ()))
    robot = dataclasses.replace(
        robot, position_limits=tuple(limits), collisions=_collisions_of(header),
        springs=tuple(springs),
    )  # fmt: skip
    if header.get('actuators') is None:
        return robot
    numbers = {
        name: np.nan_to_num(np.array(values, dtype=float), nan=np.inf)
        for name, values in header['actuators'].items()
    }
    return robot.with_actuators(None, **numbers)


# --- Models without a URDF are recorded as the text that Pinocchio serialises.
#
# Pinocchio's reader trusts its text: a damaged one can end the process with a segmentation fault
# or an assertion, in reading or in the first computation. So a child process, `model_trial.py`,
# reads it first and computes with it, within the limits of what is read.

TRIAL = Path(__file__).with_name('model_trial.py')


def model_from(text: str) -> pin.Model:
    """Return the model in `text`."""
    model, most = pin.Model(), _reading.limits()
    refusal = f'Pinocchio {pin.__version__} cannot read the robot of the recording'
    try:
        trial = subprocess.run(
            [sys.executable, str(TRIAL), f'{most.bytes:.0f}'],
            input=text.encode(errors='replace'),
            timeout=min(most.seconds, threading.TIMEOUT_MAX), capture_output=True, check=False,
        )  # fmt: skip
        lines = trial.stderr.decode(errors='replace').strip().splitlines()
        if trial.returncode == 1 and lines:
            raise ValueError(lines[-1])
        if trial.returncode:
            raise ValueError(f'the process that read it ended with {trial.returncode}')
        model.loadFromString(text)
    except subprocess.TimeoutExpired as error:
        raise RecordingError(
            f'{refusal}: it takes longer than the limit seconds={most.seconds:g} of what is read'
        ) from error
    except Exception as error:  # whatever C++ throws
        raise RecordingError(f'{refusal}: {error}') from error
    return model
