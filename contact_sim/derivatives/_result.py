"""StepDerivatives: what the result of a step depends on, and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from contact_sim._types import Array
from contact_sim.arrays._views import StepData
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._differences import contact_name
from contact_sim.derivatives._parameters import parameter_columns, parameter_names
from contact_sim.errors import InvalidInput, known_name, one_line, shown, summary

# --- Kinks: a step changes its mode there

KINK_TOLERANCE = 1e-9
"""Distance from a kink, beside the scales of the step, within which it is reported [-]."""
SIDES = {d.OPEN: 'open', d.STICK: 'sticking', d.SLIDE: 'sliding'}


@dataclass(frozen=True)
class Kink:
    """A contact or row of a step on the boundary between two modes."""

    name: str
    """Name of the contact, or `interval k` of an interval row."""
    what: str
    """Which condition is just met: `mode`, or `gap` where φ = 0 changes how a gap is closed."""
    side: str
    """The side that was taken."""
    distance: float
    """Distance from the kink beside the scales of the step [-]: impulses over the largest impulse,
    velocities over the fastest contact or h g, gaps over h times that."""


def find_kinks(
    step: StepData,
    margin: Array,
    modes: Any,
    name: Callable[[int], str],
    tolerance: float,
    scales: Array,
) -> tuple[Kink, ...]:
    """Return the kinks of a step within a tolerance, contacts first."""
    found, nc, h = [], len(step.gap), float(step.time_step[0])
    length = h * float(scales[1])
    for i in np.flatnonzero(margin[:nc] <= tolerance):
        found.append(Kink(name(int(i)), 'mode', SIDES[int(modes[i])], float(margin[i])))
    for i in np.flatnonzero(
        (modes[:nc] != d.OPEN) & (np.abs(step.gap_start) <= tolerance * length)
    ):
        side = 'above' if step.gap_start[i] > 0.0 else 'on the ground'
        found.append(Kink(name(int(i)), 'gap', side, float(abs(step.gap_start[i]) / length)))
    limits = (
        (step.interval_active > 0.0) & (modes[nc:] == d.STICK) & np.isinf(step.upper - step.lower)
    )
    for k in np.flatnonzero(limits & (np.abs(step.interval_gap) <= tolerance * length)):
        distance = float(abs(step.interval_gap[k]) / length)
        found.append(Kink(f'interval {k}', 'gap', 'at the limit', distance))
    for k in np.flatnonzero(margin[nc:] <= tolerance):
        side = 'inside its bounds' if modes[nc + k] == d.STICK else 'at a bound'
        found.append(Kink(f'interval {k}', 'mode', side, float(margin[nc + k])))
    return tuple(found)


# --- Derivatives of a step


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of one quantity, a row each, with respect to the state and the efforts."""

    q: Array
    """With respect to the tangent δ of q ⊕ δ [per m, rad], shape (n, nv)."""
    v: Array
    """With respect to v [per m/s, rad/s], shape (n, nv)."""
    effort: Array
    """With respect to the joint efforts [per N m], shape (n, n_joints)."""

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class ParameterSensitivity:
    """Derivatives of the result of a step with respect to one parameter, p numbers."""

    configuration: Array
    """Of the tangent at q⁺ [m, rad], shape (nv, p)."""
    velocity: Array
    """Of v⁺ [m/s, rad/s], shape (nv, p)."""
    impulse: Array
    """Of the impulses in the contact frames [N s], shape (3 nc + ns, p)."""
    force: Array
    """Of the contact forces in world [N], shape (nc, 3, p)."""

    __repr__ = one_line


class StepDerivatives:
    """Derivatives of one step, by implicit differentiation of the solved problem.

    They are those of the active set of the step: the contacts that carry, and which of them stick
    or slide. Values are copies and stay valid.

    Attributes:
        redundant: whether impulses are not unique; their derivatives are then those of least norm,
            and those of q⁺ and v⁺ are unique all the same.
    """

    def __init__(self, linearisation: Any, redundant: bool, last_stage: Any = None) -> None:
        if not hasattr(linearisation, 'kept'):
            raise InvalidInput(
                f'linearisation = {shown(linearisation)}: Simulator.derivatives makes '
                'StepDerivatives'
            )
        self._arrays, self._sizes = linearisation, linearisation.sizes
        self._kept = linearisation.kept()
        work = linearisation.work
        self._buffer = work.data.buffer.copy()
        self._lower_inertia, self._columns = work.inertia.copy(), work.jacobian_transposed.copy()
        self.redundant = redundant
        self._last_stage = last_stage

    @cached_property
    def step(self) -> StepData:
        """State before and after the step, and its results."""
        return StepData(self._sizes, self._buffer)

    @cached_property
    def inertia(self) -> Array:
        """M̂ at the start of the step [kg, kg m²], shape (nv, nv)."""
        lower = np.tril(self._lower_inertia)
        whole: Array = lower + np.tril(lower, -1).T
        return whole

    @cached_property
    def _fields(self) -> dict[str, Any]:
        numbers, impulse, turned, indices, constants = self._kept
        fields: dict[str, Any] = self._arrays.fields_of(numbers, indices, constants)
        counts, inputs = fields['counts'], fields['velocity'].shape[1]
        fields['impulse'] = np.zeros((counts[d.ROWS], inputs))  # 0: at a bound
        solved = fields['solved'][: counts[d.SOLVED]]
        fields['impulse'][solved] = impulse.reshape(len(solved), inputs)
        fields['force_slope'] = turned.reshape(3 * counts[d.CONTACTS], self._sizes.nv)
        return fields

    @property
    def _counts(self) -> Any:
        return self._fields['counts']

    @property
    def _row_of(self) -> Any:
        return self._fields['row_of'][: self._counts[d.ROWS]]

    @property
    def _modes(self) -> Any:
        return self._fields['modes']

    def __repr__(self) -> str:
        return summary(
            self, redundant=self.redundant, modes=self.modes.tolist(), kinks=len(self.kinks)
        )

    def _split(self, rows: Array) -> Sensitivity:
        nv = self._sizes.nv
        return Sensitivity(rows[:, :nv], rows[:, nv : 2 * nv], rows[:, 2 * nv :])

    @property
    def configuration(self) -> Sensitivity:
        """Of the tangent at q⁺: pinocchio's difference(q⁺, ·), n = nv."""
        return self._split(self._fields['configuration'])

    @property
    def velocity(self) -> Sensitivity:
        """Of v⁺, n = nv."""
        return self._split(self._fields['velocity'])

    @property
    def state_matrix(self) -> Array:
        """A = ∂(q⁺, v⁺)/∂(q, v), tangents of q, shape (2 nv, 2 nv)."""
        nv = self._sizes.nv
        rows = self._fields['configuration'], self._fields['velocity']
        return np.vstack([part[:, : 2 * nv] for part in rows])

    @property
    def input_matrix(self) -> Array:
        """B = ∂(q⁺, v⁺)/∂effort, shape (2 nv, n_joints)."""
        nv = self._sizes.nv
        rows = self._fields['configuration'], self._fields['velocity']
        return np.vstack([part[:, 2 * nv :] for part in rows])

    @cached_property
    def impulse(self) -> Sensitivity:
        """Of the impulses (t1, t2, n) of all contacts, then of interval rows, n = 3 nc + ns.

        In the frames of the contacts at the start of the step, which turn with q on curved ground.
        """
        return self._split(self._all_rows(self._fields['impulse']))

    @cached_property
    def force(self) -> Sensitivity:
        """Of the contact forces in world axes [N], contact by contact, n = 3 nc."""
        rows = self._world_forces(self._fields['impulse'])
        nv = self._sizes.nv
        for a in range(0, 3 * self._counts[d.CONTACTS], 3):
            i = self._row_of[a]
            rows[i : i + 3, :nv] += self._fields['force_slope'][a : a + 3] / self._time_step
        return self._split(rows)

    @property
    def _time_step(self) -> float:
        return float(self.step.time_step[0])

    def _all_rows(self, impulse: Array) -> Array:
        """Return rows of the problem in the place of their rows of the step."""
        rows = np.zeros((self._sizes.rows, impulse.shape[1]))
        n = self._counts[d.ROWS] - self._counts[d.BILATERAL]
        rows[self._row_of[:n]] = impulse[:n]
        return rows

    def _world_forces(self, impulse: Array) -> Array:
        """Return Fᵀ dλ / h of all contacts, (3 nc, m)."""
        nc, rows = self._sizes.nc, self._all_rows(impulse)
        per_contact = rows[: 3 * nc].reshape(nc, 3, -1)
        forces: Array = np.einsum('iab,iac->ibc', self.step.frame_start, per_contact)
        return forces.reshape(3 * nc, -1) / self._time_step

    @property
    def modes(self) -> Any:
        """Mode of every contact on the active set: 0 open, 1 stick, 2 slide, shape (nc,)."""
        return self._modes[: self._sizes.nc]

    @cached_property
    def kinks(self) -> tuple[Kink, ...]:
        """Contacts and rows at a kink, where the derivatives are those of one side."""
        return self.kinks_within(KINK_TOLERANCE)

    def kinks_within(self, tolerance: float) -> tuple[Kink, ...]:
        """Return the contacts and rows nearer to a kink than `tolerance`, see `Kink.distance`."""
        margin, scales = self._fields['margin'], self._fields['scales']
        work, features = self._arrays.work, self.step.feature_start
        return find_kinks(
            self.step, margin, self._modes, lambda i: contact_name(work, features[i], i),
            tolerance, scales,
        )  # fmt: skip

    @property
    def parameters(self) -> Sequence[str]:
        """Names that `with_respect_to` knows."""
        return parameter_names(self._arrays)

    def with_respect_to(self, parameter: str) -> ParameterSensitivity:
        """Return the derivatives with respect to a parameter of the simulation.

        Args:
            parameter: one of `parameters`: friction, restitution (one number per contact),
                time_step, gravity (3), inertial (10 numbers per joint, Pinocchio's dynamic
                parameters), damping, armature, joint_friction (nv each), baumgarte, or a number
                of the contact model by its name.

        Raises:
            UnknownName: another name.
        """
        name = known_name('parameter', parameter, self.parameters)
        columns = parameter_columns(self._arrays, self, name)
        velocity, configuration, impulse, time = columns
        force = self._world_forces(impulse)
        if time is not None:  # force = impulse / h
            force[:, time] -= self.step.contact_force.ravel() / self._time_step
        shape = self._sizes.nc, 3, force.shape[1]
        return ParameterSensitivity(
            configuration, velocity, self._all_rows(impulse), force.reshape(shape)
        )
