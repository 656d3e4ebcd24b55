"""Report of one step: a copy of the step data, read lazily."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays.fields import Sizes
from contact_sim.arrays.step_data import StepData
from contact_sim.contact.contact_values import OPEN, SLIP, STICK
from contact_sim.contact.problem import ContactProblem
from contact_sim.contact.residuals import Residuals
from contact_sim.contact.solution import STATUSES, SolverReport
from contact_sim.contact.workspace import Workspace
from contact_sim.dynamics.given_terms import GivenTerms
from contact_sim.simulation.constraint_report import ConstraintReport
from contact_sim.simulation.contact_report import ContactReport
from contact_sim.simulation.foot_report import (
    ContactGroups,
    FootReport,
    foot_groups,
    group_values,
    link_groups,
)
from contact_sim.simulation.judge import judge_step, rebuild_problem
from contact_sim.simulation.pair_report import PairReport
from contact_sim.solvers.springs import LinearSprings, stiffness_ratio

Array = NDArray[np.float64]
__all__ = ['OPEN', 'SLIP', 'STICK', 'ContactReport', 'StepContext', 'StepReport']


class StepContext:
    """Parts of a report besides the step data, shared by all reports of a simulation.

    The workspace is one of its own, in which problems are built once more.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._judge = work = workspace.copy()
        self.feet, self.links = foot_groups(work), link_groups(work)
        self._terms = GivenTerms(work) if work.tree.unsupported else None
        self.sizes, self.names = workspace.sizes, workspace.names
        self.table = workspace.table
        self.layout, self.places = work.layout, workspace.sizes.layout
        self.on_ground, self.collisions = ground_places(self.sizes), work.robot.collisions
        self._front = self._judge.numbers[0, : self.sizes.length]
        self._residuals = np.zeros(len(Residuals._fields))

    def residuals(self, buffer: Array) -> Residuals:
        """Return the residuals of the step in `buffer`."""
        self._front[:] = buffer
        judge_step(*self._judge.arrays, self._residuals)
        return Residuals._make(self._residuals.tolist())

    def group_values(self, buffer: Array, groups: ContactGroups) -> Array:
        """Return the rows of `foot_report.group_values` of the step in `buffer`."""
        if self._terms is not None:
            self._terms.update_configuration(StepData(self.sizes, buffer).q_start)
        return np.asarray(
            group_values(
                buffer,
                *self._judge.arrays,
                groups.of_contact,
                groups.of_solid,
                groups.body,
                groups.origin,
            )
        )

    def problem(self, buffer: Array) -> ContactProblem:
        """Return the contact problem of the step in `buffer`, as a value."""
        work, data = self._judge, self._judge.data
        self._front[:] = buffer
        nc, n = rebuild_problem(*work.arrays)
        rows, ns = work.row_of[:n].copy(), n - 3 * nc
        M = np.tril(data.inertia)
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
            jacobian=data.jacobian_transposed.T[rows],
            velocity=data.v_start.copy(),
            free_motion=data.v_free.copy(),
            inverse_weight=work.row_weight[:n].copy(),
            memory=work.row_memory[:nc].copy(),
            interval_gap=work.row_interval_gap[:ns].copy(),
        )


def ground_places(sizes: Sizes) -> dict[str, tuple[int, int, tuple[int, ...]]]:
    """Return place and shape of the fields over contacts, of those with the ground alone."""
    front = {}
    for name, (start, _, shape) in sizes.layout.items():
        if shape[:1] == (sizes.nc,):
            shape = (sizes.n_ground, *shape[1:])
            front[name] = (start, start + math.prod(shape), shape)
    return front


class StepReport:
    """Outcome of `Simulator.step`; values are copies and stay valid after later steps."""

    __slots__ = ('__dict__', '_buffer', '_context', '_residuals', '_solve_shadows')

    def __init__(
        self,
        buffer: Array,
        context: StepContext,
        solve_shadows: Callable[[StepReport], Mapping[str, Any]] | None = None,
    ) -> None:
        self._buffer = buffer
        self._context = context
        self._solve_shadows = solve_shadows
        self._residuals: Residuals | None = None

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
        """Forces, positions, gaps, velocities and modes of the contacts with the ground."""
        context = self._context
        return ContactReport(
            self._buffer, context.on_ground, context.names, context.sizes.features
        )

    @cached_property
    def pairs(self) -> PairReport:
        """The contacts between bodies that acted in the step, see `robot.with_self_collision`."""
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
        """The same of the links that carry contact points, by the joints that move them."""
        return FootReport(self._buffer, self._context.links, self._context.group_values)

    @property
    def solver(self) -> SolverReport:
        """Status, iterations and residual of the solver."""
        start, stop, _ = self._context.places['solver']
        code, iterations, residual = self._buffer[start:stop].tolist()
        return SolverReport(STATUSES[int(code)], int(iterations), float(residual))

    @cached_property
    def shadows(self) -> Mapping[str, Any]:
        """The same step under the models in `Simulator.shadow`, by name; solved here.

        Values are `simulation.shadow.ShadowReport`.
        """
        return self._solve_shadows(self) if self._solve_shadows is not None else {}

    @property
    def solve_shadows(self) -> Callable[[StepReport], Mapping[str, Any]] | None:
        """What solves `shadows`; None where there are none."""
        return self._solve_shadows

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

    @property
    def residuals(self) -> Residuals:
        """Residuals of the laws of contact and of motion (theory 2.15)."""
        if self._residuals is None:
            self._residuals = self._context.residuals(self._buffer)
        return self._residuals

    def read(self) -> None:
        """Compute what is computed by compiled functions, so that later reading finds them."""
        _ = self.residuals, self.problem, self.feet.force
