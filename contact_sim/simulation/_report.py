"""Report of one step: a copy of the step data; quantities are computed when they are read."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array, Indices
from contact_sim._validation import as_tuple
from contact_sim.arrays import _fields as f
from contact_sim.arrays._fields import PAIR_NUMBERS, Sizes
from contact_sim.arrays._views import Arrays, StepData, arrays_of, frames, integers, matrix, vector
from contact_sim.collision._contact_slots import CONTACTS, NO_FEATURE, pair_of
from contact_sim.constraints._constraint_rows import ConstraintTable
from contact_sim.dynamics._rigid_body import PinocchioTerms, place_bodies
from contact_sim.dynamics._vectors import add, cross, put, scaled, sub, vec
from contact_sim.errors import LONGEST_SUMMARY, UnknownName, one_line, shortened, summary
from contact_sim.robot._collision_pairs import Collisions, link_names
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._contact_points import foot_frame, link_of
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._judge import NOWHERE, fill_inertia, judge_steps, rebuild_problem
from contact_sim.solvers._jit import kernel
from contact_sim.solvers._springs import LinearSprings, stiffness_ratio
from contact_sim.step._problem import STATUSES, ContactProblem, Residuals, SolverReport
from contact_sim.step._workspace import OPEN, SLIP, STICK, Workspace, mode_of

__all__ = ['OPEN', 'SLIP', 'STICK', 'ContactReport', 'StepContext', 'StepReport']

# --- The report, and what all reports of a simulation share


class StepContext:
    """Parts of a report besides the step data, shared by all reports of a simulation.

    It has a workspace of its own, in which problems are built once more.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._judge = work = workspace.copy()
        self.feet, self.links = foot_groups(work), link_groups(work)
        self._terms = PinocchioTerms(work) if work.tree.unsupported else None
        self.sizes, self.names = workspace.sizes, workspace.names
        self.table = workspace.table
        self.layout, self.places = work.layout, workspace.sizes.layout
        self.collisions, nc = work.robot.collisions, self.sizes.nc
        # place and shape of the fields over contacts, without those of pairs
        self.on_ground: dict[str, tuple[int, int, tuple[int, ...]]] = {}
        for name, (start, _, shape) in self.places.items():
            if shape[:1] == (nc,):
                shape = (self.sizes.n_ground, *shape[1:])
                self.on_ground[name] = (start, start + math.prod(shape), shape)
        self.on_ground['contact_moment'] = self.places['contact_moment']
        self._residuals = np.zeros(len(Residuals._fields))

    def __repr__(self) -> str:
        return summary(self, contacts=len(self.names), constraints=len(self.table.constraints))

    def residuals(self, buffer: Array) -> Residuals:
        """Return the residuals of the step in `buffer`."""
        self.write_step(buffer, NOWHERE, np.empty(0), self._residuals)
        return Residuals._make(self._residuals.tolist())

    def write_step(self, buffer: Array, places: Indices, numbers: Array, out: Array) -> None:
        """Write numbers of the step in `buffer` at `places`, (m,), and its residuals."""
        self._place_by_pinocchio(buffer)
        judge_steps(
            buffer[None], *self._judge.arrays, len(buffer), places, numbers[None], out[None]
        )

    def group_values(self, buffer: Array, groups: ContactGroups) -> Array:
        """Return the rows of `group_values` of the step in `buffer`."""
        self._place_by_pinocchio(buffer)
        members = groups.of_contact, groups.of_solid, groups.body, groups.origin
        return np.asarray(group_values(buffer, *self._judge.arrays, *members))

    def _place_by_pinocchio(self, buffer: Array) -> None:
        """Fill placements and M at the start where the kernels do not know the joints."""
        if self._terms is not None:
            self._terms.update_configuration(StepData(self.sizes, buffer).q_start)

    def problem(self, buffer: Array) -> ContactProblem:
        """Return a ContactProblem for the step in `buffer`."""
        self._place_by_pinocchio(buffer)
        work, data = self._judge, self._judge.data
        work.numbers[0, : self.sizes.length] = buffer
        nc, n = rebuild_problem(*work.arrays)
        rows, ns = work.row_of[:n].copy(), n - 3 * nc
        M = np.tril(work.inertia)
        if work.sizes.deep:
            M = np.zeros((work.sizes.nv, work.sizes.nv))
            fill_inertia(*work.arrays, M)
        return ContactProblem(
            delassus=work.delassus[: n * n].reshape(n, n).copy(),
            free_velocity=work.row_free[:n].copy(),
            bias=data.bias[rows],
            friction=work.row_friction[:nc].copy(),
            lower=work.row_lower[:ns].copy(),
            upper=work.row_upper[:ns].copy(),
            gap=work.row_gap[:nc].copy(),
            start_velocity=work.row_start[:n].copy(),
            time_step=float(data.time_step[0]),
            inertia=M + np.tril(M, -1).T,
            jacobian=work.jacobian_transposed.T[rows],
            velocity=data.v_start.copy(),
            free_motion=data.v_free.copy(),
            inverse_weight=work.row_weight[:n].copy(),
            memory=work.row_memory[:nc].copy(),
            interval_gap=work.row_interval_gap[:ns].copy(),
        )


class StepReport:
    """Outcome of `Simulator.step`; values are copies and stay valid after later steps."""

    __slots__ = ('__dict__', '_buffer', '_context', 'solve_shadows')

    def __init__(
        self,
        buffer: Array,
        context: StepContext,
        solve_shadows: Callable[[StepReport], Mapping[str, Any]] | None = None,
    ) -> None:
        self._buffer = buffer
        self._context = context
        self.solve_shadows = solve_shadows
        """What solves `shadows`; None where there are none."""

    @cached_property
    def record(self) -> StepData:
        """Every array of the step by name."""
        return StepData(self._context.sizes, self._buffer)

    @property
    def time(self) -> float:
        """Simulated time after the step [s]."""
        return float(self._buffer[0])

    @property
    def q(self) -> Array:
        """Configuration after the step, shape (nq,)."""
        start, stop, _ = self._context.places['q']
        return self._buffer[start:stop]

    @property
    def v(self) -> Array:
        """Velocity after the step, shape (nv,)."""
        start, stop, _ = self._context.places['v']
        return self._buffer[start:stop]

    @property
    def acceleration(self) -> Array:
        """Pinocchio's v̇ over the step, shape (nv,): M v̇ + nle = τ + Jᵀ f at the start of it.

        An impact shows as Δv/h.
        """
        return self.record.acceleration

    @property
    def effort(self) -> Array:
        """Joint effort applied, after saturation [N m], shape (n_joints,)."""
        return self.record.effort

    @property
    def contacts(self) -> ContactReport:
        """Forces, positions, gaps, velocities and modes of the contact points on the ground."""
        context = self._context
        return ContactReport(
            self._buffer, context.on_ground, context.names, context.sizes.features
        )

    @cached_property
    def pairs(self) -> PairReport:
        """Contacts of bodies with the ground and each other, see `robot.with_body_contacts`."""
        return PairReport(self._buffer, self._context.sizes, self._context.collisions)

    @cached_property
    def constraints(self) -> ConstraintReport:
        """Forces, errors and rates of the bilateral constraints by name."""
        return ConstraintReport(self.record, self._context.table)

    @cached_property
    def feet(self) -> FootReport:
        """Forces, torques, gaps, loads and modes of the feet, `robot.feet`."""
        return FootReport(self._buffer, self._context.feet, self._context.group_values)

    @cached_property
    def links(self) -> FootReport:
        """Forces, torques, gaps and modes of the links with contact points, by joint."""
        return FootReport(self._buffer, self._context.links, self._context.group_values)

    @property
    def solver(self) -> SolverReport:
        """Status, iterations and residual of the solver."""
        start, stop, _ = self._context.places['solver']
        code, iterations, residual = self._buffer[start:stop].tolist()
        return SolverReport(STATUSES[int(code)], int(iterations), float(residual))

    @cached_property
    def shadows(self) -> Mapping[str, Any]:
        """Results of the same step under the models in `Simulator.shadow`, computed when read.

        Values are `ShadowReport`.
        """
        return self.solve_shadows(self) if self.solve_shadows is not None else {}

    @cached_property
    def active_rows(self) -> NDArray[np.int64]:
        """Rows of the step data that took part in the contact problem."""
        data, nc = self.record, self._context.sizes.nc
        contacts = np.flatnonzero(data.active > 0.0)
        intervals = np.flatnonzero(data.interval_active)
        return np.concatenate([(3 * contacts[:, None] + [0, 1, 2]).ravel(), 3 * nc + intervals])

    @cached_property
    def problem(self) -> ContactProblem:
        """The contact problem that was solved, as a value, by the kernels that solved it."""
        return self._context.problem(self._buffer)

    @cached_property
    def stiffness_ratio(self) -> float:
        """Stiffness ratio √λ_max(G (h² K + 2 h D)) [-] of the springs K and dampers D.

        Without dampers it is h ω_max. Above 2 the explicit compliant law is unstable (theory 2.1),
        whatever regularised friction does; 0 for a model without springs and while nothing
        touches.
        """
        springs = LinearSprings(*self.record.springs)
        if springs.stiffness == 0.0:
            return 0.0
        problem = self.problem
        ratio = stiffness_ratio(problem.delassus, problem.n_contacts, problem.time_step, springs)
        return float(ratio)

    @cached_property
    def residuals(self) -> Residuals:
        """Residuals of the laws of contact and of motion (theory 2.15)."""
        return self._context.residuals(self._buffer)

    def write_step(self, places: Indices, numbers: Array, residuals: Array) -> None:
        """Write numbers of the step and its residuals; for many steps: nothing is made or kept.

        Args:
            places: where the numbers stand in the buffer of `record`, shape (m,).
            numbers: out, shape (m,).
            residuals: out, in the order of the fields of `Residuals`, shape (fields,).
        """
        self._context.write_step(self._buffer, places, numbers, residuals)

    def __repr__(self) -> str:
        contacts = self.contacts
        loaded = [
            name for name, n in zip(contacts.names, contacts.normal_force, strict=True) if n > 0.0
        ]
        force = contacts.normal_force.sum() + self.pairs.normal_force[self.pairs.on_ground].sum()
        return shortened(
            f'StepReport(t = {self.time:g} s, {self.solver.status.name.lower()} in '
            f'{self.solver.iterations} iterations, contacts {", ".join(loaded) or "none"}, '
            f'normal forces of {force:.4g} N)',
            LONGEST_SUMMARY,
        )

    def sentences(self) -> tuple[str, ...]:
        """Return a sentence for each contact that carried load: part, mode, force, place."""
        contacts, pairs, texts = self.contacts, self.pairs, []
        bodies = [
            f'{first} on {"the ground" if second == "ground" else second}'
            for first, second in pairs.names
        ]
        for table, names in ((contacts, contacts.names), (pairs, bodies)):
            for k in np.flatnonzero(table.normal_force > 0.0):
                slips = table.mode[k] == SLIP
                tangential = np.sqrt(
                    max(float(table.force[k] @ table.force[k]) - table.normal_force[k] ** 2, 0.0)
                )
                what = f'slips at {table.slip_speed[k]:.3g} m/s' if slips else 'sticks'
                x, y, z = table.position[k]
                texts.append(
                    f'{names[k]} {what} with {table.normal_force[k]:.3g} N normal, '
                    f'{tangential:.3g} N tangential force, at ({x:.3f}, {y:.3f}, {z:.3f}) m'
                )
        return tuple(texts)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as numbers, texts, lists and dictionaries, as JSON has them.

        Keys: time [s], q, v, acceleration, effort [N m], `contacts` and `feet` by name, `pairs`
        (contacts between bodies) as a list, `constraints` by name, `solver`, `residuals`. Units
        and axes are those of the attributes of the same names.
        """
        contacts, feet, pairs, solver = self.contacts, self.feet, self.pairs, self.solver
        arrays = ('q', 'v', 'acceleration', 'effort')
        fields = ('force', 'position', 'normal', 'gap', 'velocity', 'slip_speed', 'friction')
        return {
            'time': self.time,
            **{name: getattr(self, name).tolist() for name in arrays},
            'contacts': dict(zip(contacts.names, _rows(contacts, fields), strict=True)),
            'feet': dict(
                zip(feet.names, _rows(feet, ('force', 'torque', 'gap', 'slip_speed')), strict=True)
            ),
            'pairs': [
                {'bodies': list(names), **row}
                for names, row in zip(pairs.names, _rows(pairs, fields), strict=True)
            ],
            'constraints': {
                name: {'force': state.force.tolist(), 'error': state.error.tolist()}
                for name, state in self.constraints.items()
            },
            'solver': {
                'status': solver.status.name.lower(), 'iterations': solver.iterations,
                'residual': solver.residual, 'converged': solver.converged,
            },
            'residuals': self.residuals._asdict(),
        }  # fmt: skip

    def read(self) -> None:
        """Compile what evaluates the quantities that are compiled when they are first read."""
        _ = self.residuals, self.problem, self.feet.force


MODES = {OPEN: 'open', STICK: 'stick', SLIP: 'slip'}
"""Modes of contacts in words."""


def _rows(table: Any, fields: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return a dictionary of these fields, and of the mode in words, for each row of a table."""
    columns = {name: getattr(table, name).tolist() for name in fields}
    columns['mode'] = [MODES[mode] for mode in table.mode.tolist()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# --- Contacts with the ground


class ContactTable(ABC):
    """Quantities of contacts in a step, one row each; subclasses choose the rows."""

    __slots__ = ()

    @property
    def force(self) -> Array:
        """Force [N], world, impulse / h, shape (n, 3): on the robot, or on the first body."""
        return self._field('contact_force')

    @property
    def velocity(self) -> Array:
        """Velocity of the contact points after the step [m/s], world, shape (n, 3)."""
        return self._field('contact_velocity')

    @property
    def friction(self) -> Array:
        """Friction coefficients that acted in the step [-], shape (n,)."""
        return self._field('friction')

    @property
    def normal_force(self) -> Array:
        """Normal forces [N], shape (n,)."""
        return self._field('normal_force')

    @property
    def slip_speed(self) -> Array:
        """Tangential speed after the step [m/s], shape (n,)."""
        return self._field('slip_speed')

    @property
    def mode(self) -> NDArray[np.int64]:
        """0 open, 1 stick, 2 slip, shape (n,)."""
        return self._field('contact_mode').astype(np.int64)

    @property
    def immovable(self) -> NDArray[np.bool_]:
        """Whether no motion of the robot can open a contact that the step met, shape (n,).

        Its force is not determined, and it was left out: it carries nothing. Where the gap is not
        positive, the status of the step is IMMOVABLE.
        """
        return np.asarray(self._field('active') < 0.0)

    @abstractmethod
    def _field(self, name: str) -> NDArray[Any]:
        """Return the rows of a field of the step data."""

    def __repr__(self) -> str:
        force, kind = self.normal_force, type(self).__name__
        loaded = int(np.count_nonzero(force > 0.0))
        return f'{kind}({len(force)} contacts, {loaded} loaded, {force.sum():.4g} N)'


class ContactReport(ContactTable):
    """Contacts with the ground at the end of a step, one row each, open ones included.

    Args:
        buffer: step data.
        places: first and last place and shape of their part of the fields of the step data.
        names: names of the contacts.
        features: contacts that each contact point may have.
    """

    __slots__ = ('_buffer', '_features', '_places', 'names')

    def __init__(
        self, buffer: Array, places: dict[str, Any], names: tuple[str, ...], features: int
    ) -> None:
        self._buffer, self._places, self._features = buffer, places, max(features, 1)
        self.names = names
        """Names of the contacts: of the contact points, in the order of `robot.contact_points`;
        where the terrain has several features, with the feature."""

    @property
    def position(self) -> Array:
        """Contact points after the step [m], world, shape (nc, 3)."""
        return self._field('position')

    @property
    def normal(self) -> Array:
        """Normals out of the ground after the step, world, shape (nc, 3)."""
        return self._field('frame')[:, 2]

    @property
    def gap(self) -> Array:
        """Signed distance after the step [m], negative when penetrating, shape (nc,)."""
        return self._field('gap')

    @property
    def moment(self) -> Array:
        """Moments of torsional and rolling friction on the robot [N m], world, shape (nc, 3)."""
        moment = self._field('contact_moment')
        return moment if len(moment) else np.zeros((len(self.names), 3))

    @property
    def turn(self) -> Array:
        """Angle between the contact normals before and after the step [rad], shape (nc,).

        From the normal along which it acted to the nearest of those that its contact point has
        after the step; 0 where it has none then. On edges and curved ground it is small. Where a
        point inside a body crosses its medial axis the normal flips (theory T11): this says so.
        """
        slots = (-1, self._features)
        before = self._field('frame_start')[:, 2].reshape(*slots, 3)
        cosine = np.einsum('psi,pti->pst', before, self.normal.reshape(*slots, 3))
        near = self._field('feature').reshape(*slots) != NO_FEATURE
        nearest = np.where(near[:, None, :], cosine, -1.0).max(axis=2)
        known = (self._field('feature_start').reshape(*slots) != NO_FEATURE) & near.any(
            axis=1, keepdims=True
        )
        return np.where(known, np.arccos(np.clip(nearest, -1.0, 1.0)), 0.0).ravel()

    def _field(self, name: str) -> Array:
        start, stop, shape = self._places[name]
        return self._buffer[start:stop].reshape(shape)


# --- Feet and links: forces and torques of the contacts that belong to one of them

(
    FORCE_COLUMN,
    TORQUE_COLUMN,
    ORIGIN_COLUMN,
    GAP_COLUMN,
    LOADED_COLUMN,
    MODE_COLUMN,
    SLIP_COLUMN,
    COLUMNS,
) = 0, 3, 6, 9, 10, 11, 12, 13
"""First column of each quantity in what `group_values` returns, and how many there are."""


@dataclass(frozen=True, eq=False)
class ContactGroups:
    """Contacts grouped by foot or by link."""

    names: tuple[str, ...]
    """Names of the groups, length n."""
    of_contact: Indices
    """Group of each contact, shape (nc,); of feet those of the rest of the body have none."""
    of_solid: Indices
    """Group of each solid of `robot.collisions`, −1 if it belongs to none, shape (n_solids,)."""
    body: Indices
    """Body of the kinematic tree that carries each group, shape (n,)."""
    origin: Array
    """Point about which the torque of each group is taken, axes of that body [m], (n, 3)."""

    __repr__ = one_line


def foot_groups(work: Workspace) -> ContactGroups:
    """Return the contacts by foot; torques are about the origins of the frames of the feet."""
    feet, model, solids = work.robot.feet, work.model, work.robot.collisions.solids
    of_point = {k: group for group, foot in enumerate(feet) for k in foot.points}
    of_solid = [-1] * len(solids)
    for group, foot in enumerate(feet):
        names = link_names(model, foot)
        for k, solid in enumerate(solids):
            of_solid[k] = group if solid.frame in names else of_solid[k]
    carriers = {foot.name: foot.joint for foot in feet}
    offsets = [foot_frame(model, foot).placement.translation for foot in feet]
    return _groups(work, carriers, offsets, [of_point[k] for k in range(len(of_point))], of_solid)


def link_groups(work: Workspace) -> ContactGroups:
    """Return the contacts by link; torques are about the origins of the joints."""
    points, solids = work.robot.contact_points, work.robot.collisions.solids
    joints = [point.joint for point in points] + [solid.joint for solid in solids]
    names = list(dict.fromkeys(joints))
    groups, offsets = [names.index(joint) for joint in joints], [np.zeros(3) for _ in names]
    of_point, of_solid = groups[: len(points)], groups[len(points) :]
    return _groups(work, dict(zip(names, names, strict=True)), offsets, of_point, of_solid)


def _groups(
    work: Workspace,
    carriers: dict[str, str],
    offsets: list[Array],
    of_point: list[int],
    of_solid: list[int],
) -> ContactGroups:
    """Return groups by name and joint; origins are `offsets` in the axes of the joints."""
    joints = [work.model.getJointId(joint) for joint in carriers.values()]
    body = np.array([work.tree.body_of_joint[joint] for joint in joints], dtype=np.int64)
    origin = [work.tree.axes[k].T @ offset for k, offset in zip(body, offsets, strict=True)]
    return ContactGroups(
        tuple(carriers), np.repeat(np.array(of_point, dtype=np.int64), work.sizes.features),
        np.array(of_solid, dtype=np.int64), body,
        np.array(origin, dtype=float).reshape(-1, 3),
    )  # fmt: skip


class FootReport:
    """Feet, or links, in a step: one row each, those without load included.

    Args:
        buffer: step data.
        groups: which contacts belong together.
        values: returns the rows of `group_values`; called once.
    """

    def __init__(
        self,
        buffer: Array,
        groups: ContactGroups,
        values: Callable[[Array, ContactGroups], Array],
    ) -> None:
        self._buffer, self._groups, self._make = buffer, groups, values

    def __repr__(self) -> str:
        forces = zip(self.names, self.force[:, 2].tolist(), strict=True)
        listed = ', '.join(f'{name} {force:.4g} N' for name, force in forces)
        return shortened(f'FootReport(vertical forces: {listed or "none"})', LONGEST_SUMMARY)

    @cached_property
    def _values(self) -> Array:
        return self._make(self._buffer, self._groups)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the feet in the order of `robot.feet`, or of the joints that move the links.

        Links come in the order of their first contact points.
        """
        return self._groups.names

    @property
    def force(self) -> Array:
        """Force of the ground on each foot [N], world, shape (n, 3)."""
        return self._values[:, FORCE_COLUMN:TORQUE_COLUMN]

    @property
    def torque(self) -> Array:
        """Torque of the contacts about `origin` [N m], world, shape (n, 3).

        That of their forces, which act where the contacts were at the start of the step, and of
        their moments.
        """
        return self._values[:, TORQUE_COLUMN:ORIGIN_COLUMN]

    @property
    def origin(self) -> Array:
        """Origins of the frames of feet, or of the joints of links [m], world, shape (n, 3).

        They are those at the start of the step.
        """
        return self._values[:, ORIGIN_COLUMN:GAP_COLUMN]

    @property
    def gap(self) -> Array:
        """Least signed distance of its contacts after the step [m], shape (n,)."""
        return self._values[:, GAP_COLUMN]

    @property
    def loaded(self) -> NDArray[np.bool_]:
        """Whether any of its contacts presses on the ground, shape (n,)."""
        return self._values[:, LOADED_COLUMN] > 0.0

    @property
    def mode(self) -> NDArray[np.int64]:
        """Largest mode of its contacts, shape (n,).

        2 slip where any contact with a force slips, else 1 stick where any has a force, else 0.
        """
        return self._values[:, MODE_COLUMN].astype(np.int64)

    @property
    def slip_speed(self) -> Array:
        """Largest tangential speed of its contacts after the step [m/s], shape (n,).

        Of those with a force; of all where none has any.
        """
        return self._values[:, SLIP_COLUMN]


@kernel
def group_values(buffer, numbers, indices, layout, of_contact, of_solid, body, origin):
    """Return the numbers of a `FootReport`, one row per group, shape (n, COLUMNS).

    `buffer` are the step data. `numbers`, `indices` and `layout` are those of a workspace of the
    same simulation, whose field `pose` is scratch; the rest are the fields of `ContactGroups`.
    """
    out = np.zeros((body.shape[0], COLUMNS))
    data = arrays_of(numbers, indices, layout, 0)
    step = Arrays(int(buffer.ctypes.data), data.indices, data.layout)
    pose = matrix(data, f.POSE)
    if integers(data, f.EXTERNAL_TERMS)[0] == 0:
        place_bodies(
            integers(data, f.KIND), integers(data, f.PARENT), integers(data, f.Q_INDEX),
            matrix(data, f.PLACEMENT), vector(step, f.Q_START), pose,
        )  # fmt: skip
    # origins in world, and the gap of a group without contacts
    for g in range(body.shape[0]):
        R, o, row = pose[body[g]], origin[g], out[g]
        row[GAP_COLUMN] = np.inf
        for k in range(3):
            row[ORIGIN_COLUMN + k] = R[k] * o[0] + R[3 + k] * o[1] + R[6 + k] * o[2] + R[9 + k]
    # contacts with the ground; those of the rest of the body belong to no foot
    gap = vector(step, f.GAP)
    for i in range(of_contact.shape[0]):
        add_contact(step, i, 1.0, gap[i], out[of_contact[i]])
    # contacts between bodies belong to the groups of both, with the gap before the step
    pairs, gap_start = integers(step, f.PAIRS), vector(step, f.GAP_START)
    for i in range(integers(step, f.LEAF_DOF).shape[0], gap_start.shape[0]):
        k = PAIR_NUMBERS * pair_of(vector(step, f.FEATURE_START)[i])
        if k >= 0:
            for side in range(2):
                group = of_solid[pairs[k + side]] if pairs[k + side] >= 0 else -1
                if group >= 0:
                    add_contact(step, i, 1.0 - 2.0 * side, gap_start[i], out[group])
    return out


@kernel
def add_contact(step, i, sign, gap, row):
    """Add contact i to a group; its force acts with this sign."""
    frame, point = frames(step, f.FRAME_START)[i], matrix(step, f.POSITION_START)[i]
    impulse, u, force = vector(step, f.IMPULSE), vector(step, f.U_NEXT), (0.0, 0.0, 0.0)
    for a in range(3):
        force = add(force, scaled(impulse[3 * i + a], vec(frame[a], 0)))
    force = scaled(sign / vector(step, f.TIME_STEP)[0], force)
    torque = cross(sub(vec(point, 0), vec(row, ORIGIN_COLUMN)), force)
    if i < matrix(step, f.CONTACT_MOMENT).shape[0]:
        torque = add(torque, vec(matrix(step, f.CONTACT_MOMENT)[i], 0))
    put(row, FORCE_COLUMN, add(vec(row, FORCE_COLUMN), force))
    put(row, TORQUE_COLUMN, add(vec(row, TORQUE_COLUMN), torque))
    # gap, load, mode and tangential speed
    normal_impulse, speed = impulse[3 * i + 2], np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2)
    mode = mode_of(normal_impulse, speed)
    row[GAP_COLUMN] = min(row[GAP_COLUMN], gap)
    if normal_impulse > 0.0:
        row[LOADED_COLUMN] = 1.0
    if mode != OPEN and row[MODE_COLUMN] == OPEN:
        row[SLIP_COLUMN] = speed  # from now on only contacts with a force count
    elif mode != OPEN or row[MODE_COLUMN] == OPEN:
        row[SLIP_COLUMN] = max(row[SLIP_COLUMN], speed)
    row[MODE_COLUMN] = max(row[MODE_COLUMN], mode)


# --- Contacts between bodies


class PairReport(ContactTable):
    """Contacts of nearby bodies at the start of the step, with each other and with the ground.

    Forces are those of the second body on the first, velocities those of the first on the second;
    the ground is the second one.

    Args:
        buffer: step data.
        sizes: of the simulation.
        collisions: solids and pairs of the robot.
    """

    __slots__ = ('_buffer', '_collisions', '_places', '_slots', 'solids')

    def __init__(self, buffer: Array, sizes: Sizes, collisions: Collisions) -> None:
        self._buffer, self._places, self._collisions = buffer, sizes.layout, collisions
        self._slots = np.arange(sizes.n_ground, sizes.nc)
        features = self._field('feature_start')
        near = features != NO_FEATURE
        self._slots = self._slots[near]
        pairs = features[near].astype(np.int64) // CONTACTS
        self.solids: Indices = collisions.solids_of_pairs[pairs]
        """First and second solid of each contact, indices into `robot.collisions.solids`, (n, 2);
        −1 is the ground."""

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.solids)

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """Names of both solids of each contact, the second 'ground' for the ground, length n."""
        names = [*(solid.name for solid in self._collisions.solids), 'ground']
        return tuple((names[i], names[j]) for i, j in self.solids.tolist())

    @property
    def on_ground(self) -> NDArray[np.bool_]:
        """Whether the second body is the ground, shape (n,)."""
        return np.asarray(self.solids[:, 1] < 0)

    @property
    def position(self) -> Array:
        """Contact points on the first body [m], world, shape (n, 3)."""
        return self._field('position_start')

    @property
    def normal(self) -> Array:
        """Normals out of the second body, world, shape (n, 3)."""
        return self._field('frame_start')[:, 2]

    @property
    def gap(self) -> Array:
        """Signed distance [m], negative when penetrating, shape (n,)."""
        return self._field('gap_start')

    def acting_on(self, links: Iterable[str]) -> Array:
        """Return 1 for contacts whose first body is one of these links.

        −1 where it is the second one, 0 for the others, shape (n,).
        """
        names = set(links)
        chosen = np.array([*(solid.frame in names for solid in self._collisions.solids), False])
        first, second = chosen[self.solids].T
        pushed: Array = first.astype(float) - second.astype(float)
        return pushed

    def load_on(self, links: Iterable[str]) -> float:
        """Return the sum of the normal forces on links [N]; pulls count 0."""
        return float(np.abs(self.acting_on(links)) @ self.normal_force.clip(min=0.0))

    def _field(self, name: str) -> NDArray[Any]:
        start, stop, shape = self._places[name]
        chosen: NDArray[Any] = self._buffer[start:stop].reshape(shape)[self._slots]
        return chosen


# --- Bilateral constraints


@dataclass(frozen=True)
class ConstraintState:
    """One constraint in a step; rows as its class says, world axes."""

    force: Array
    """Mean force [N], torque [N m] or effort of every row on the robot, shape (rows,)."""
    error: Array
    """h after the step [m, rad], shape (rows,); 0 for what is driven."""
    rate: Array
    """ḣ after the step [m/s, rad/s], less the speed that is asked for, shape (rows,)."""

    @property
    def drift(self) -> float:
        """|h| [m, rad]."""
        return float(np.linalg.norm(self.error))

    @property
    def drift_rate(self) -> float:
        """|ḣ| [m/s, rad/s]."""
        return float(np.linalg.norm(self.rate))


class ConstraintReport(Mapping[str, ConstraintState]):
    """The constraints of a step by their names."""

    def __init__(self, record: StepData, table: ConstraintTable) -> None:
        self._record = record
        self.described: tuple[Constraint, ...] = tuple(table.constraints)
        """The constraints themselves, in the order of their names."""
        self._rows = {
            constraint.name: slice(int(row[1]), int(row[1] + row[2]))
            for constraint, row in zip(table.constraints, table.indices, strict=True)
        }

    def __repr__(self) -> str:
        return summary(self, names=list(self._rows))

    def __getitem__(self, name: str) -> ConstraintState:
        """Return a constraint by its name."""
        record, rows = self._record, self._rows[name]
        return ConstraintState(
            record.bilateral_impulse[rows] / float(record.time_step[0]),
            record.bilateral_error[rows],
            record.bilateral_rate[rows],
        )

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._rows)

    def __len__(self) -> int:
        """Return the number of constraints."""
        return len(self._rows)


# --- Links that touch the ground


@dataclass(frozen=True)
class Touch:
    """A link that presses on the ground."""

    link: str
    time: float
    """At the end of the step [s]."""
    force: float
    """Sum of the normal forces of its contacts [N]."""

    def __str__(self) -> str:
        return f'{self.link} touches the ground at t = {self.time:.9g} s with {self.force:.4g} N'


class TouchGuard:
    """Detects contacts of links that must not touch the ground.

    Args:
        robot: what moves.
        links: names of links, or of feet, that have contact points.
    """

    def __init__(self, robot: RobotModel, links: Iterable[str]) -> None:
        model, collisions = robot.pinocchio_model, robot.collisions
        parts: dict[str, list[int]] = {}
        for k, point in enumerate(robot.contact_points):
            for name in {point.frame, link_of(model, point.frame)}:
                parts.setdefault(name, []).append(k)
        solids: dict[str, list[int]] = {}
        for place in collisions.grounded_places.tolist():
            solids.setdefault(collisions.solids[place].frame, []).append(place)
        chosen = as_tuple('end_on_contact', links, 'a list of names of links')
        for name in chosen:
            if name not in parts | solids:
                raise UnknownName('link that touches the ground', name, parts | solids)
        self._candidates = len(robot.contact_points)
        self._parts = {name: (parts.get(name, []), solids.get(name, [])) for name in chosen}

    def touch(self, report: StepReport) -> Touch | None:
        """Return the link with the largest normal force, or None if none has any."""
        if not self._parts:
            return None
        force = report.contacts.normal_force.reshape(self._candidates, -1).clip(min=0.0)
        pairs = report.pairs
        on_ground = pairs.normal_force.clip(min=0.0) * (pairs.solids[:, 1] < 0)
        pressing = {
            name: float(force[points].sum())
            + float(on_ground[np.isin(pairs.solids[:, 0], solids)].sum())
            for name, (points, solids) in self._parts.items()
        }
        link = max(pressing, key=pressing.__getitem__)
        if pressing[link] <= 0.0:
            return None
        return Touch(link, report.time, pressing[link])
