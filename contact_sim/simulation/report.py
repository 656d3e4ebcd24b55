"""What one step did: a copy of the step's record, read lazily."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.contact.delassus import fill_delassus
from contact_sim.contact.memory import recall
from contact_sim.contact.problem import ContactProblem
from contact_sim.contact.record import MEMORY, Record, Sizes
from contact_sim.contact.residuals import (
    TOUCHING,
    EnergyBalance,
    Residuals,
    law_residuals,
)
from contact_sim.contact.solution import STATUSES, SolverReport
from contact_sim.dynamics.energy import mechanical_energy
from contact_sim.solvers.springs import stiffness_ratio
from contact_sim.solvers.tree import factorise

if TYPE_CHECKING:
    from contact_sim.simulation.shadow import ShadowReport

Array = NDArray[np.float64]
OPEN, STICK, SLIP = 0, 1, 2
STICTION_SPEED = 1e-9
"""Tangential speed below which a loaded contact counts as sticking [m/s]."""


@dataclass(frozen=True, eq=False)
class StepContext:
    """What a report needs besides the record; shared by all reports of a simulation."""

    sizes: Sizes
    names: tuple[str, ...]
    model: pin.Model
    damping: Array
    dof_parent: NDArray[np.int64]
    inverse_weight: Array


class ContactReport:
    """Contacts at the end of a step, one row per contact point, open ones included."""

    def __init__(self, record: Record, names: tuple[str, ...]) -> None:
        self._record = record
        self.names = names
        """Names of the contact points, in the order of `robot.contact_points`."""

    @cached_property
    def force(self) -> Array:
        """Force on the robot [N], world, impulse / h, shape (nc, 3)."""
        world = self._to_world(self._record.impulse)
        return np.asarray(world / self._record.time_step[0])

    @cached_property
    def velocity(self) -> Array:
        """Velocity of the robot's contact points after the step [m/s], world, shape (nc, 3)."""
        return self._to_world(self._record.u_next)

    @property
    def position(self) -> Array:
        """Contact points after the step [m], world, shape (nc, 3)."""
        return self._record.position

    @property
    def normal(self) -> Array:
        """Normals out of the ground after the step, world, shape (nc, 3)."""
        return self._record.frame[:, 2]

    @property
    def gap(self) -> Array:
        """Signed distance after the step [m], negative when penetrating, shape (nc,)."""
        return self._record.gap

    @property
    def friction(self) -> Array:
        """Friction coefficients [-], shape (nc,)."""
        return self._record.friction

    @cached_property
    def normal_force(self) -> Array:
        """Normal forces on the robot [N], shape (nc,)."""
        return np.asarray(self._rows(self._record.impulse)[:, 2] / self._record.time_step[0])

    @cached_property
    def slip_speed(self) -> Array:
        """Tangential speed after the step [m/s], shape (nc,)."""
        return np.asarray(np.linalg.norm(self._rows(self._record.u_next)[:, :2], axis=1))

    @cached_property
    def mode(self) -> NDArray[np.int64]:
        """0 open, 1 stick, 2 slip, shape (nc,)."""
        loaded = self._rows(self._record.impulse)[:, 2] != 0.0  # null_space may pull
        slipping = self.slip_speed > STICTION_SPEED
        return np.where(loaded, np.where(slipping, SLIP, STICK), OPEN)

    def _rows(self, u: Array) -> Array:
        return u[: 3 * len(self.names)].reshape(-1, 3)

    def _to_world(self, u: Array) -> Array:
        """Return contact-frame rows in world axes, shape (nc, 3)."""
        return np.asarray(np.einsum('irk,ir->ik', self._record.frame_start, self._rows(u)))


class StepReport:
    """Outcome of `Simulator.step`; values are copies and stay valid after later steps."""

    __slots__ = ('__dict__', '_buffer', '_context', '_solve_shadows')

    def __init__(
        self,
        buffer: Array,
        context: StepContext,
        solve_shadows: Callable[[StepReport], Mapping[str, ShadowReport]] | None = None,
    ) -> None:
        self._buffer = buffer
        self._context = context
        self._solve_shadows = solve_shadows

    @cached_property
    def record(self) -> Record:
        """Every array of the step by name."""
        return Record(self._context.sizes, self._buffer)

    @property
    def time(self) -> float:
        """Simulated time after the step [s]."""
        return float(self._buffer[0])

    @property
    def q(self) -> Array:
        """Configuration after the step, shape (nq,)."""
        return self.record.q

    @property
    def v(self) -> Array:
        """Velocity after the step, shape (nv,)."""
        return self.record.v

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

    @cached_property
    def contacts(self) -> ContactReport:
        """Forces, positions, gaps, velocities and modes of the contact points."""
        return ContactReport(self.record, self._context.names)

    @cached_property
    def solver(self) -> SolverReport:
        """How the contact problem was solved."""
        code, iterations, residual = self.record.solver
        return SolverReport(STATUSES[int(code)], int(iterations), float(residual))

    @cached_property
    def shadows(self) -> Mapping[str, ShadowReport]:
        """What the models in `Simulator.shadow` make of the same step, by name; solved here."""
        return self._solve_shadows(self) if self._solve_shadows is not None else {}

    @cached_property
    def active_rows(self) -> NDArray[np.int64]:
        """Rows of the record that took part in the contact problem."""
        nc, ns = self._context.sizes.nc, self._context.sizes.ns
        contacts = np.flatnonzero(self.record.active)
        return np.concatenate(
            [(3 * contacts[:, None] + [0, 1, 2]).ravel(), 3 * nc + np.arange(ns)]
        )

    @cached_property
    def problem(self) -> ContactProblem:
        """The contact problem that was solved, as a value, by the kernels that solved it."""
        r, rows, parent = self.record, self.active_rows, self._context.dof_parent
        contacts, n, nv = np.flatnonzero(r.active), len(rows), len(parent)
        factor, delassus = r.inertia.copy(), np.zeros(n * n)
        memory = np.zeros((len(contacts), MEMORY))
        recall(r.memory_start, r.frame_start, r.active, memory)
        factorise(factor, parent)
        fill_delassus(r.jacobian_transposed, factor, parent, rows, n, np.zeros(nv * n), delassus)
        return ContactProblem(
            delassus=delassus.reshape(n, n),
            free_velocity=r.u_free[rows],
            bias=r.bias[rows],
            friction=r.friction[contacts],
            lower=r.lower,
            upper=r.upper,
            gap=r.gap_start[contacts],
            start_velocity=r.u_start[rows],
            time_step=float(r.time_step[0]),
            inertia=np.tril(r.inertia) + np.tril(r.inertia, -1).T,
            jacobian=r.jacobian_transposed.T[rows],
            velocity=r.v_start,
            free_motion=r.v_free,
            inverse_weight=self._context.inverse_weight[rows],
            memory=memory,
        )

    @cached_property
    def stiffness_ratio(self) -> float:
        """H ω_max [-], ω_max² = k λ_max(G_nn) with the stiffness k of the contact model's springs.

        Above 2 the explicit compliant law is unstable (physics.md 2.1); 0 for a model without
        springs and while nothing touches.
        """
        problem, k = self.problem, float(self.record.stiffness[0])
        return float(stiffness_ratio(problem.delassus, problem.n_contacts, problem.time_step, k))

    @cached_property
    def residuals(self) -> Residuals:
        """How far the step is from the laws of contact and of motion (physics.md 2.15)."""
        r, problem = self.record, self.problem
        impulse = r.impulse[self.active_rows]
        normal = r.impulse[2 : 3 * self._context.sizes.nc : 3]
        change = problem.inertia @ (r.v_next - r.v_free) - problem.jacobian.T @ impulse
        loaded_slip = self.contacts.slip_speed[normal > 0.0]
        return Residuals(
            **vars(law_residuals(problem, impulse)),
            penetration=float(np.max(-r.gap, initial=0.0)),
            force_at_distance=float(normal[r.gap > TOUCHING].sum()),
            slip=float(loaded_slip.max(initial=0.0)),
            momentum=float(np.abs(change).max(initial=0.0)),
            energy_balance=self._energy_balance(),
        )

    def _energy_balance(self) -> EnergyBalance:
        r, model = self.record, self._context.model
        h, contacts = float(r.time_step[0]), 3 * self._context.sizes.nc
        mean = 0.5 * (r.v_start + r.v_next)
        row_work = 0.5 * r.impulse * (r.u_start + r.u_next)
        before = mechanical_energy(model, r.q_start, r.v_start, r.gravity)
        after = mechanical_energy(model, r.q, r.v, r.gravity)
        return EnergyBalance(
            change=after - before,
            actuation=float(h * mean @ r.tau),
            damping=float(-h * mean @ (self._context.damping * r.v_next)),
            contact=float(row_work[:contacts].sum()),
            joint_friction=float(row_work[contacts:].sum()),
            correction=float(-r.impulse @ r.bias),
        )
