"""Steps of any simulator as plain arrays: states, efforts, and contacts in slots.

A file of them is a `.npz` with one array per field of `Steps`, under its name; fields that are not
known are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import LARGEST, check_unique, checked, checked_fields, real_array
from contact_sim.errors import InvalidInput, shown

UNIT_TOLERANCE = 1e-6
"""Largest error of the length of a normal."""
STEP_TOLERANCE = 1e-6
"""Largest relative difference of a time step from that between the times of the states."""
REQUIRED = ('time', 'q', 'v')
"""Entries that every file of steps has."""
TEXTS = ('robot', 'source')
"""Fields that are one text."""


@checked_fields
@dataclass(frozen=True, eq=False)
class Steps:
    """A trajectory of n steps with at most m contacts in each.

    States are in Pinocchio's convention: q = [base position in the world, quaternion x y z w,
    joints], v = [linear and angular velocity of the base in its own frame, joints]. Contacts are
    those at the start of a step, with the forces that act during it. What is None is not known:
    the residuals that need it are NaN.

    Raises:
        InvalidInput: sizes that do not fit, values that are not finite, times that do not
            increase, normals that are no unit vectors, negative friction, bodies that are not
            listed.
    """

    time: Array
    """Times of the states [s], increasing, shape (n + 1,)."""
    q: Array
    """Configurations, shape (n + 1, nq)."""
    v: Array
    """Velocities, shape (n + 1, nv)."""
    effort: Array | None = None
    """Joint efforts that acted [N m], in the order of `robot.joint_names`, (n, n_joints)."""
    bodies: tuple[str, ...] = ()
    """Links, or the joints that move them, that touch the ground."""
    body: NDArray[np.int64] | None = None
    """Place in `bodies` of the body of each contact, −1 for an empty slot, (n, m)."""
    point: Array | None = None
    """Points at which the forces act, at the start of the step [m], world, (n, m, 3)."""
    normal: Array | None = None
    """Unit normals out of the ground at the start of the step, world, (n, m, 3)."""
    gap: Array | None = None
    """Signed distance at the start of the step [m], negative when penetrating, (n, m)."""
    next_gap: Array | None = None
    """The same after the step; NaN or None: gap + h u_n with the velocity after the step."""
    force: Array | None = None
    """Mean force of the ground on the body over the step [N], world, (n, m, 3)."""
    friction: Array | None = None
    """Friction coefficients [-], (n, m)."""
    contact_velocity: Array | None = None
    """Velocity of the contact points after the step [m/s], world, (n, m, 3); None: J v⁺ with J at
    the start of the step, which is that of a time-stepping engine."""
    active: NDArray[np.bool_] | None = None
    """Whether the contact took part in the contact problem of the step, (n, m); None: all did.

    Those that did not count for penetration and force at a distance only.
    """
    external: Array | None = None
    """Further generalized forces [N, N m], in the axes of v, (n, nv): pushes, and what has no
    residual here, such as friction and stops of joints, moments of contacts, and contacts between
    bodies of the robot. None: none."""
    interval_impulse: Array | None = None
    """Impulses of the interval rows of this package (dry friction of joints, then limits)
    [N s, N m s], (n, ns)."""
    time_step: Array | None = None
    """Lengths of the steps [s], (n,); None: from `time`, whose rounding they then have."""
    robot: str = ''
    """Name of the robot; empty: not known."""
    source: str = ''
    """Engine and version, or file, for the title of a table."""
    notes: tuple[str, ...] = ()
    """What a reader of the score should know, as sentences."""

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ('body', 'active'):  # no floats: not checked by their annotation
            value = getattr(self, name)
            if value is not None:
                put(self, name, _whole(f'Steps.{name}', value))
        if self.active is not None:
            put(self, 'active', self.active != 0)
        put(self, 'bodies', tuple(str(name) for name in self.bodies))
        check_unique('body', self.bodies)
        for name in ('time', 'q', 'v'):
            rank = 1 if name == 'time' else 2
            if getattr(self, name).ndim != rank:
                raise InvalidInput(
                    f'Steps.{name}: shape {getattr(self, name).shape}, expected '
                    f'{"(n + 1,)" if rank == 1 else "(n + 1, ...)"}'
                )
        if len(self.time) < 2:
            raise InvalidInput(f'Steps.time: {len(self.time)} times, expected at least two')
        for name in ('q', 'v'):
            if len(getattr(self, name)) != len(self.time):
                raise InvalidInput(
                    f'Steps.{name}: {len(getattr(self, name))} rows, expected {len(self.time)}: '
                    'one per time, the start included'
                )
        self._check_steps()
        self._check_contacts()

    def _check_steps(self) -> None:
        """Check times, and what has one row per step."""
        for name in ('time', 'q', 'v'):
            _check_finite(f'Steps.{name}', getattr(self, name))
        length = np.diff(self.time)
        if not (length > 0.0).all():
            k = int(np.argmin(length > 0.0))
            raise InvalidInput(
                f'Steps.time: time[{k + 1}] = {self.time[k + 1]:.9g} s after time[{k}] = '
                f'{self.time[k]:.9g} s: expected times that increase'
            )
        for name in ('effort', 'external', 'interval_impulse', 'time_step'):
            value = getattr(self, name)
            if value is None:
                continue
            if value.ndim != (1 if name == 'time_step' else 2) or len(value) != self.count:
                raise InvalidInput(
                    f'Steps.{name}: shape {value.shape}, expected {self.count} rows, one per step'
                )
            _check_finite(f'Steps.{name}', value)
        if self.time_step is not None:
            off = np.abs(self.time_step - length) > STEP_TOLERANCE * length + 1e-12
            if off.any():
                k = int(np.argmax(off))
                raise InvalidInput(
                    f'Steps.time_step[{k}] = {self.time_step[k]:.9g} s: the times of the states '
                    f'are {length[k]:.9g} s apart'
                )

    def _check_contacts(self) -> None:
        """Check what has one entry per contact; empty slots become zeros."""
        vectors = ('point', 'normal', 'force', 'contact_velocity')
        parts = (*vectors, 'gap', 'next_gap', 'friction', 'active')
        if self.body is None:
            named = [name for name in parts if getattr(self, name) is not None]
            if named:
                raise InvalidInput(f'Steps.body is missing: it is needed with {", ".join(named)}')
            return
        if self.body.ndim != 2 or len(self.body) != self.count:
            raise InvalidInput(
                f'Steps.body: shape {self.body.shape}, expected ({self.count}, m): one row per '
                'step'
            )
        if not ((self.body >= -1) & (self.body < len(self.bodies))).all():
            raise InvalidInput(
                f'Steps.body: {int(self.body.min())} to {int(self.body.max())}, expected places '
                f'in bodies, 0 to {len(self.bodies) - 1}, or −1 for an empty slot'
            )
        for name in ('point', 'normal', 'gap'):
            if getattr(self, name) is None:
                raise InvalidInput(f'Steps.{name} is missing: contacts have point, normal and gap')
        used = self.present
        for name in parts:
            value = getattr(self, name)
            if value is None:
                continue
            vector = name in vectors
            shape = (*self.body.shape, 3) if vector else self.body.shape
            if value.shape != shape:
                raise InvalidInput(f'Steps.{name}: shape {value.shape}, expected {shape}')
            if name == 'active':
                continue
            value = np.where(used[..., None] if vector else used, value, 0.0)
            unknown = np.isnan(value) if name == 'next_gap' else np.zeros(1, bool)
            _check_finite(f'Steps.{name}', np.where(unknown, 0.0, value))
            object.__setattr__(self, name, value)
        assert self.normal is not None
        length = np.linalg.norm(self.normal, axis=2)
        wrong = used & ~(np.abs(length - 1.0) <= UNIT_TOLERANCE)
        if wrong.any():
            k, i = (int(place[0]) for place in np.nonzero(wrong))
            raise InvalidInput(
                f'Steps.normal[{k}, {i}] = {shown(self.normal[k, i].tolist())}: length '
                f'{length[k, i]:.9g}, expected 1 within {UNIT_TOLERANCE:g}'
            )
        if self.friction is not None and not (self.friction >= 0.0).all():
            k, i = (int(place[0]) for place in np.nonzero(self.friction < 0.0))
            raise InvalidInput(
                f'Steps.friction[{k}, {i}] = {self.friction[k, i]:g}: expected a value >= 0'
            )

    def __repr__(self) -> str:
        names = shown(self.robot), shown(self.source)
        return f'Steps({names[0]}, {names[1]}, {self.count} steps to t = {self.time[-1]:.6g} s)'

    @property
    def count(self) -> int:
        """Number of steps n."""
        return len(self.time) - 1

    @property
    def lengths(self) -> Array:
        """Length of each step [s], shape (n,)."""
        return np.diff(self.time) if self.time_step is None else self.time_step

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which slots hold a contact, shape (n, m)."""
        if self.body is None:
            return np.zeros((self.count, 0), dtype=bool)
        return np.asarray(self.body >= 0)

    @checked
    def save(self, path: str | Path) -> None:
        """Write the steps to one `.npz` file, which `Steps.load` and the command read."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        arrays: dict[str, Any] = {k: np.array(v) for k, v in values.items() if v is not None}
        np.savez_compressed(path, **arrays)

    @classmethod
    @checked
    def load(cls, path: str | Path) -> Steps:
        """Return steps from a `.npz` file with an array per field.

        Raises:
            InvalidInput: a file that is missing or damaged, without time, q and v, with entries
                of other names, or with values that `Steps` refuses.
        """
        with _reading.reading(path):
            values: dict[str, Any] = dict(_reading.npz_file(path))
        known = [item.name for item in fields(cls)]
        missing = [name for name in REQUIRED if name not in values]
        if missing:
            raise InvalidInput(f'{path}: no entry {", ".join(missing)}; expected time, q and v')
        for name in values:
            if name not in known:
                raise InvalidInput(
                    f'{path}: unknown entry {shown(name)}; known: {", ".join(known)}'
                )
        for name in TEXTS:
            values[name] = str(values.get(name, ''))
        for name in ('bodies', 'notes'):
            values[name] = tuple(str(text) for text in np.atleast_1d(values.get(name, [])))
        return cls(**values)


def _whole(name: str, value: Any) -> NDArray[np.int64]:
    """Return an array of whole numbers."""
    array = np.asarray(value)
    if array.dtype.kind == 'b':
        return array.astype(np.int64)
    numbers = real_array(name, array)
    whole = np.isfinite(numbers) & (numbers == np.round(numbers))
    if not whole.all():
        raise InvalidInput(f'{name}: expected whole numbers')
    return numbers.astype(np.int64)


def _check_finite(name: str, value: Array) -> None:
    """Raise InvalidInput that names the first entry that is not finite."""
    wrong = ~(np.abs(value) <= LARGEST)
    if wrong.any():
        place = ', '.join(str(int(axis[0])) for axis in np.nonzero(wrong))
        raise InvalidInput(f'{name}[{place}] = {value[wrong][0]}: expected finite numbers')
