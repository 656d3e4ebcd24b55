"""Measured motions: where the data sets come from, and readers of their files.

No data set is part of the package: `fetch` gets one with git at a fixed commit, or the user names
a folder. The readers check sizes and values, so that a damaged file is an error and not a result.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from scipy.io import loadmat

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import checked, path, real_array
from contact_sim.errors import InvalidInput, UnknownName, one_line


@dataclass(frozen=True)
class Source:
    """Where a data set comes from."""

    name: str
    title: str
    address: str
    """Of its git repository."""
    commit: str
    folder: str
    """Folder of the files in the repository."""
    licence: str
    citation: str


SOURCES = {
    source.name: source
    for source in (
        Source(
            'cube_tosses', 'ContactNets: tosses of a cube',
            'https://github.com/DAIRLab/contact-nets',
            'c3dc21c94577ff4ed99123f0b00bfe57bb2d1d90', 'data/tosses_processed',
            'BSD-3-Clause',
            'Pfrommer, Halm, Posa: ContactNets, CoRL 2020',
        ),
        Source(
            'cassie_landings', 'Landings of Cassie after jumps',
            'https://github.com/DAIRLab/cassie_impact_dataset',
            'fcf6423066c93e4f83e4085e3105704b7f2f9cea', 'jumping_data/data',
            'BSD-3-Clause',
            'Yang, Posa: Impact-invariant control with applications to bipedal locomotion, '
            'IROS 2021',
        ),
        Source(
            'cassie_urdf', 'URDF of Cassie',
            'https://github.com/DAIRLab/dairlib',
            '2407831f3a4f6bce0eeff9e1c6ff84083dc47131', 'examples/Cassie/urdf',
            'MIT',
            'DAIR Lab: dairlib, examples/Cassie/urdf/cassie_v2.urdf',
        ),
        Source(
            'planar_impacts', 'Planar impacts of an ellipse',
            'https://github.com/mcubelab/planar-impact-dataset',
            'f24a7e3b31ad0b53652d6b2a6b26a702cc4362da', 'processed_data',
            'none stated: not redistributed here',
            'Fazeli, Donlon, Drumwright, Rodriguez: Empirical evaluation of common contact models '
            'for planar impact, ICRA 2017',
        ),
    )
}  # fmt: skip
"""Name of each data set: its source."""


@checked
def fetch(name: str, folder: Path | None = None, address: str | None = None) -> Path:
    """Get a data set with git, once, and return the folder of its files.

    Args:
        name: of the data set, one of SOURCES.
        folder: where data sets are kept; default: `contact_sim/reality` in the cache of the user.
        address: of another copy of its git repository.

    Raises:
        UnknownName: a data set that does not exist.
        InvalidInput: git is missing or cannot get the commit; the message has the reason.
    """
    if name not in SOURCES:
        raise UnknownName('data set', name, SOURCES)
    source = SOURCES[name]
    if folder is None:
        cache = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
        folder = Path(cache) / 'contact_sim' / 'reality'
    place = folder / name
    if (place / source.folder).is_dir():
        return place / source.folder
    origin = address or source.address
    commands = (
        ('init', '--quiet', str(place)),
        ('-C', str(place), 'fetch', '--quiet', '--depth', '1', origin, source.commit),
        ('-C', str(place), 'checkout', '--quiet', 'FETCH_HEAD', '--', source.folder),
    )
    for command in commands:
        try:
            subprocess.run(('git', *command), check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise InvalidInput(f'data set {name!r}: fetching it needs git') from error
        except subprocess.CalledProcessError as error:
            raise InvalidInput(
                f'data set {name!r}: git could not get {origin}: {error.stderr.strip()}; name the '
                'folder of a copy instead'
            ) from error
    return place / source.folder


# ------------------------------------------------------------------------------------ cube tosses

CUBE_HALF_WIDTH = 0.0524
"""[m]; lengths in the files are multiples of it."""
CUBE_MASS = 0.37
"""[kg]."""
CUBE_MOMENT = 0.2950002913583124 * CUBE_HALF_WIDTH**2
"""Moment of inertia about each axis [kg m²], as published with the tosses."""
TOSS_RATE = 148.0
"""Samples per second."""
TOSS_COLUMNS = 19
"""Position, quaternion w first, velocity in world, angular velocity in the body, 6 zeros."""
LONGEST_TOSS = 100_000


@dataclass(frozen=True, eq=False)
class Toss:
    """One measured toss of the cube, from the release until it rests, T samples."""

    name: str
    time: Array
    """From the release [s], shape (T,)."""
    q: Array
    """Position [m] and quaternion x y z w, shape (T, 7)."""
    v: Array
    """Linear [m/s] and angular [rad/s] velocity, both in the axes of the body, shape (T, 6)."""

    __repr__ = one_line


@checked
def read_tosses(folder: Path, numbers: Sequence[int] | None = None) -> tuple[Toss, ...]:
    """Read the cube tosses of ContactNets.

    Args:
        folder: with files 0.pt, 1.pt, ...
        numbers: of the tosses; default: all that are there, by number.

    Raises:
        InvalidInput: a folder without tosses, a file that is missing or not a toss.
    """
    folder = Path(path('folder', folder))
    if numbers is None:
        found = [path.stem for path in folder.glob('*.pt')] if folder.is_dir() else []
        numbers = sorted(int(stem) for stem in found if stem.isdecimal())
    if not numbers:
        raise InvalidInput(f'{folder}: no tosses; expected files 0.pt, 1.pt, ...')
    return tuple(_toss(folder / f'{number}.pt') for number in numbers)


def _toss(path: Path) -> Toss:
    rows = _tensor(path)
    if rows.ndim == 3 and rows.shape[0] == 1:
        rows = rows[0]
    if rows.ndim != 2 or rows.shape[1] != TOSS_COLUMNS or not 2 <= len(rows) <= LONGEST_TOSS:
        raise InvalidInput(f'{path}: shape {rows.shape}, expected (samples, {TOSS_COLUMNS})')
    lengths = np.linalg.norm(rows[:, 3:7], axis=1)
    if not np.isfinite(rows).all() or (np.abs(lengths - 1.0) > 1e-3).any():
        raise InvalidInput(f'{path}: values that are not finite, or quaternions not of length 1')
    q = np.hstack([CUBE_HALF_WIDTH * rows[:, :3], rows[:, 4:7], rows[:, 3:4]])
    q[:, 3:] /= lengths[:, None]
    turns = (pin.Quaternion(row[3:]).toRotationMatrix() for row in q)
    linear = [
        turn.T @ (CUBE_HALF_WIDTH * row[7:10]) for turn, row in zip(turns, rows, strict=True)
    ]
    v = np.hstack([np.array(linear), rows[:, 10:13]])
    return Toss(path.stem, np.arange(len(rows)) / TOSS_RATE, q, v)


class _TensorUnpickler(pickle.Unpickler):
    """Unpickler of one tensor of doubles in PyTorch's format before 1.6; calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ('torch._utils', '_rebuild_tensor_v2'): _shape_of_tensor,
            ('torch', 'DoubleStorage'): '<f8',
            ('collections', 'OrderedDict'): dict,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f'{module}.{name} is not part of a tensor')
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        return pid[1]


def _shape_of_tensor(
    kind: str, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: object
) -> tuple[int, tuple[int, ...]]:
    contiguous = tuple(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
    if any(s != c and n > 1 for s, c, n in zip(strides, contiguous, shape, strict=True)):
        raise pickle.UnpicklingError(f'a tensor with strides {strides}')
    return offset, shape


def _tensor(path: Path) -> Array:
    """Return the tensor of doubles in a file: three headers, its shape, its keys, its numbers."""
    try:
        with _reading.reading(path):
            file = io.BytesIO(_reading.file_bytes(path))
            for _ in range(3):
                _TensorUnpickler(file).load()
            offset, shape = _TensorUnpickler(file).load()
            _TensorUnpickler(file).load()
            return _numbers(file, offset, shape)
    except _reading.Unreadable:
        raise
    except Exception as error:  # a damaged pickle raises anything
        raise InvalidInput(f'{path}: not a tensor of PyTorch before 1.6 ({error})') from error


def _numbers(file: io.BytesIO, offset: int, shape: tuple[int, ...]) -> Array:
    stored = np.frombuffer(file.read(), '<f8', offset=8)  # after their count
    size = int(np.prod(shape))
    if not 0 <= offset <= offset + size <= len(stored):
        raise InvalidInput(f'{len(stored)} numbers for a tensor of shape {shape}')
    return stored[offset : offset + size].reshape(shape)


# --------------------------------------------------------------------------------- planar impacts

ELLIPSE_SEMI_AXES = (0.035, 0.025)
"""[m]."""
ELLIPSE_MASS = 0.0364
"""[kg]."""
ELLIPSE_GYRATION = 0.0192
"""Radius of gyration [m]."""


@dataclass(frozen=True, eq=False)
class PlanarImpacts:
    """Impacts of an ellipse that moves in a vertical plane on level ground, n of them."""

    angle: Array
    """From the horizontal to the longer axis at the impact [rad], shape (n,)."""
    before: Array
    """Velocity before: along the ground, upward [m/s], turning [rad/s], shape (n, 3)."""
    after: Array
    """Velocity after, shape (n, 3)."""

    __repr__ = one_line


@checked
def read_planar_impacts(folder: Path) -> PlanarImpacts:
    """Read the impacts of the ellipse of the MCube Lab.

    Args:
        folder: with the file data_ellipse.mat.

    Raises:
        InvalidInput: a file that is missing or has other contents.
    """
    path = folder / 'data_ellipse.mat'
    content = io.BytesIO(_reading.file_bytes(path))
    try:
        with _reading.reading(path):
            data = loadmat(content, squeeze_me=True, struct_as_record=False)['data']
        before, after = (np.array(part, dtype=float) for part in (data.states_i, data.states_f))
    except Exception as error:  # a damaged file raises anything
        raise InvalidInput(f'{path}: no impacts of the ellipse ({error!r})') from error
    if before.ndim != 2 or before.shape[1] != 6 or before.shape != after.shape or not len(before):
        raise InvalidInput(
            f'{path}: states of shapes {before.shape} and {after.shape}, expected twice (n, 6)'
        )
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise InvalidInput(f'{path}: all states must be finite')
    return PlanarImpacts(before[:, 2], before[:, 3:], after[:, 3:])


# -------------------------------------------------------------------------------- Cassie landings

CASSIE_JOINTS = (
    'hip_roll_left', 'hip_roll_right', 'hip_yaw_left', 'hip_yaw_right', 'hip_pitch_left',
    'hip_pitch_right', 'knee_left', 'knee_right', 'knee_joint_left', 'knee_joint_right',
    'ankle_joint_left', 'ankle_joint_right', 'ankle_spring_joint_left', 'toe_left',
    'ankle_spring_joint_right', 'toe_right',
)  # fmt: skip
"""Joints in the order of the files, positions and velocities alike."""
CASSIE_MOTORS = (
    'hip_roll_left', 'hip_roll_right', 'hip_yaw_left', 'hip_yaw_right', 'hip_pitch_left',
    'hip_pitch_right', 'knee_left', 'knee_right', 'toe_left', 'toe_right',
)  # fmt: skip
"""Joints with a motor, in the order of the files."""


@dataclass(frozen=True, eq=False)
class Landing:
    """One landing of Cassie: 50 ms, from about 5 ms before the impact, T samples."""

    name: str
    time: Array
    """[s], shape (T,)."""
    position: Array
    """Of the pelvis in world [m], shape (T, 3); the height is an estimate."""
    attitude: Array
    """Quaternion x y z w of the pelvis, shape (T, 4)."""
    velocity: Array
    """Of the pelvis in world [m/s], shape (T, 3)."""
    turning: Array
    """Angular velocity of the pelvis in world [rad/s], shape (T, 3)."""
    joint_positions: Array
    """In the order of CASSIE_JOINTS [rad], shape (T, 16)."""
    joint_velocities: Array
    """[rad/s], shape (T, 16); those of the ankle springs were not measured and are 0."""
    effort: Array
    """Measured torques of the motors, in the order of CASSIE_MOTORS [N m], shape (T, 10)."""

    __repr__ = one_line


@checked
def read_landings(folder: Path) -> tuple[Landing, ...]:
    """Read the jump landings of Cassie.

    Args:
        folder: with files t_00.npy, x_00.npy, u_00.npy, ...

    Raises:
        InvalidInput: a folder without landings, arrays of other shapes or not finite.
    """
    names = sorted(path.stem[2:] for path in folder.glob('x_*.npy')) if folder.is_dir() else []
    if not names:
        raise InvalidInput(f'{folder}: no landings; expected files x_00.npy, ...')
    return tuple(_landing(folder, name) for name in names)


def _landing(folder: Path, name: str) -> Landing:
    arrays = []
    for kind, columns in (('t', None), ('x', 45), ('u', 10)):
        path = folder / f'{kind}_{name}.npy'
        array = real_array(str(path), _reading.npy_file(path))
        expected = (len(array),) if columns is None else (len(array), columns)
        if array.shape != expected or len(array) < 2 or not np.isfinite(array).all():
            raise InvalidInput(f'{path}: shape {array.shape}, expected finite numbers {expected}')
        arrays.append(array)
    t, x, u = arrays
    if not len(t) == len(x) == len(u) or (np.diff(t) <= 0.0).any():
        raise InvalidInput(f'{folder}: landing {name}: times do not fit or do not increase')
    attitude = x[:, [1, 2, 3, 0]] / np.linalg.norm(x[:, :4], axis=1, keepdims=True)
    return Landing(
        name, t, x[:, 4:7], attitude, x[:, 26:29], x[:, 23:26], x[:, 7:23], x[:, 29:45], u
    )
