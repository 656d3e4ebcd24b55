"""One arc: a Runge-Kutta step of 4th order in which the contacts hold their modes.

The state at the start of the arc stays until `accept`, so that an arc can be integrated again to
another length while an event is located.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contact_sim.contact.delassus import multiply_rows
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.hybrid.guards import allow_start, fill_guards
from contact_sim.contact_models.hybrid.constrained_motion import fill_instant, hold, rest_exactly
from contact_sim.dynamics.integrate import move_base
from contact_sim.dynamics.runge_kutta import fill_rates, next_stage, weighted_mean
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]
ROUGH = 1e-2
"""Error of the velocity over one arc that calls for shorter arcs, relative to 1 and the speed."""


class Arc:
    """State, modes and stages of the arc at hand.

    Attributes:
        q: configuration, of the last accepted state, shape (nq,).
        v: velocity, shape (nv,).
        closed: 1 for contacts that are held, shape (nc,).
        mode: OPEN, STICK or SLIP, shape (nc,).
        direction: direction of slip that friction opposes, shape (nc, 2).
        heading: direction of slip at the start of the arc, shape (nc, 2).
        frozen: 1 where `direction` is kept over the arc, shape (nc,).
        joint_mode: 0 stuck, ±1 direction of turning, shape (ns,).
        reference: forces near which redundant ones stay [N], rows of the record.
        force: forces at the end of the arc [N], rows of the record.
        mean_force: mean over the arc [N], rows of the record.
        guards: at the end of the arc; slack: how far below zero each may be; guards_before: at the
            start; violated: number of violations at the end.
        error: estimate of the error of the arc, 1 is tolerable.
        position, frame, gap, jt, u, drift, factor, free: see `instant.fill_instant`; of the state
            evaluated last.
    """

    def __init__(self, workspace: Workspace, stiction_speed: float, stabilisation: float) -> None:
        w, sizes = workspace, workspace.sizes
        self._terms, self._record = w.terms, w.record
        nv, nc, ns, rows = sizes.nv, sizes.nc, sizes.ns, sizes.rows
        self.q, self._q_end = np.zeros(sizes.nq), np.zeros(sizes.nq)
        self.v, self._v_stage, self._v_end = (np.zeros(nv) for _ in range(3))
        self._w, self._displacement, self._increment = (np.zeros(nv) for _ in range(3))
        self._rates, self._w_rates = np.zeros((4, nv)), np.zeros((4, nv))
        self._forces, self._acceleration = np.zeros((4, rows)), np.zeros(nv)
        self.force, self.mean_force, self.reference = (np.zeros(rows) for _ in range(3))
        self.closed, self.gap, self._no_gap = np.zeros(nc), np.zeros(nc), np.zeros(nc)
        self.mode, self.joint_mode = np.zeros(nc, dtype=np.int64), np.zeros(ns, dtype=np.int64)
        self.direction, self.heading = np.zeros((nc, 2)), np.zeros((nc, 2))
        self.frozen = np.zeros(nc, dtype=np.int64)
        self._position, self._frame = np.zeros((nc, 3)), np.zeros((nc, 3, 3))
        self.jt, self.u = w.record.jacobian_transposed.copy(), np.zeros(rows)
        self.drift, self.free = np.zeros(rows), np.zeros(nv)
        self.factor = np.zeros((nv, nv))
        self.guards, self.slack = np.zeros(2 * nc + ns), np.zeros(2 * nc + ns)
        self.guards_before, self._allowance = np.zeros(2 * nc + ns), np.zeros(2 * nc + ns)
        self.violated, self.error = 0, 0.0
        self._turned = np.zeros((len(w.terms.free_flyer_v), 9))
        self._stiction_speed = stiction_speed
        self._bind(workspace, stabilisation)

    def _bind(self, w: Workspace, stabilisation: float) -> None:
        """Build the argument lists of the kernels once."""
        t, r, s = w.terms, w.record, w.spheres
        self._instant = (
            t.placements, t.twists, t.bias_accelerations, t.jacobian, t.inertia,
            t.nonlinear_effects, s.joint, s.offset, s.radius, s.leaf_dof, w.plane, r.gravity,
            t.dof_parent, w.damping, r.tau,
        )  # fmt: skip
        self._points = (
            self._position, self._frame, self.gap, self._no_gap, self.jt, self.u, self.drift,
            self.factor, self.free,
        )  # fmt: skip
        self._hold = (
            self.closed, self.jt, self.factor, t.dof_parent, self.free, self.drift, self.u,
            w.row_of, w.Y, w.rows.delassus, r.friction,
            w.friction_effort, self.mode, self.direction, self.frozen, self.joint_mode,
            self.reference,
        )  # fmt: skip
        self._hold_here = (*self._hold, self.force, self._acceleration)
        self._guards = (
            self.mode, self.heading, self.joint_mode, self.gap, self.u, self.force, r.friction,
            w.friction_effort, self._stiction_speed, self._allowance, self.guards, self.slack,
        )  # fmt: skip
        self._rest = (
            self.closed, self.u, self.gap, stabilisation, w.row_of, w.Y, w.rows.delassus,
            self.factor, t.dof_parent, r.friction, w.friction_effort, self.mode, self.joint_mode,
        )  # fmt: skip

    def load(self) -> None:
        """Take the state from the record; Pinocchio's terms are up to date with it."""
        self.q[:], self.v[:] = self._record.q, self._record.v
        placements, joints = self._terms.placements, self._terms.free_flyer_joint
        self._turned[:] = placements[joints, :9]
        fill_instant(*self._instant, self.v, *self._points)

    def update_velocity(self) -> None:
        """Bring the instant in line with a velocity that has changed."""
        self._terms.update_velocity(self.q, self.v)
        fill_instant(*self._instant, self.v, *self._points)

    def begin(self, lenience: float) -> bool:
        """Start arcs in the modes at hand; return False if no finite force holds them.

        Bounds of forces may be missed by `lenience` slacks before it counts as an event.
        """
        held = hold(*self._hold_here)
        self._allowance[:] = 0.0
        fill_guards(*self._guards)
        allow_start(self.mode, self.joint_mode, lenience, self.guards, self.slack, self._allowance)
        self._start_here()
        return bool(held)

    def _start_here(self) -> None:
        """Make forces, guards and rates of the instant evaluated last those of the start."""
        self._forces[0] = self.force
        self.guards_before[:] = self.guards
        self._displacement[:] = 0.0
        fill_rates(
            self.v, self.v, self._acceleration, self._displacement, self._terms.free_flyer_v,
            self._rates[0], self._w_rates[0],
        )  # fmt: skip

    def rest(self, impulse: Array) -> None:
        """Take the drift out of the velocity of what is held; its impulses go to `impulse`."""
        rest_exactly(*self._rest, self.v, impulse)
        multiply_rows(self.jt, self.v, self.u)

    def integrate(self, dt: float) -> bool:
        """Integrate by dt from the start of the arc; return False if it is not finite."""
        terms, held = self._terms, True
        for stage in (1, 2, 3):
            start_stage(
                stage, dt, self.v, self._rates, self._w_rates, self._displacement, self._w,
                terms.free_flyer_v, self._increment, self._v_stage,
            )  # fmt: skip
            self._evaluate(terms.integrate(self.q, self._increment), self._v_stage)
            held &= finish_stage(
                *self._hold, self._forces[stage], self._acceleration, self._v_stage, self._w,
                self._displacement, terms.free_flyer_v, self._rates[stage], self._w_rates[stage],
            )  # fmt: skip
        self.error = finish_arc(
            dt, self.v, self._rates, self._w_rates, self._forces, terms.free_flyer_v,
            self._displacement, self._w, self._increment, self._v_end, self.mean_force,
        )  # fmt: skip
        if not (held and np.isfinite(self._v_end.sum())):
            return False
        self._q_end[:] = terms.integrate(self.q, self._increment)
        self._evaluate(self._q_end, self._v_end)
        held = hold(*self._hold_here)
        self.violated = fill_guards(*self._guards)
        return bool(held)

    def accept(self) -> None:
        """Make the end of the arc its start."""
        self.q[:], self.v[:] = self._q_end, self._v_end
        self.reference[:] = self.force
        self._start_here()

    def velocity_in_axes_of_start(self) -> Array:
        """Return v with the linear velocity of free flyers in their axes at `load`, (nv,)."""
        v = self.v.copy()
        terms = self._terms
        for k, i in enumerate(terms.free_flyer_v):
            before = self._turned[k].reshape(3, 3)  # rows are the axes: stored column by column
            now = terms.placements[terms.free_flyer_joint[k], :9].reshape(3, 3)
            v[i : i + 3] = before @ (now.T @ v[i : i + 3])
        return v

    def _evaluate(self, q: Array, v: Array) -> None:
        """Fill the instant at q, v."""
        self._terms.update_configuration(q)
        self._terms.update_velocity(q, v)
        fill_instant(*self._instant, v, *self._points)


@kernel
def start_stage(stage, dt, v_start, rates, w_rates, displacement, w, free_flyer_v, increment, v):
    """Fill displacement and velocity of a stage, in both axes."""
    next_stage(stage, dt, v_start, rates, w_rates, displacement, w)
    move_base(displacement, w, free_flyer_v, increment, v)


@kernel
def finish_stage(
    closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, friction,
    joint_friction, mode, direction, frozen, joint_mode, reference, force, acceleration, v, w,
     displacement, free_flyer_v, tangent, w_rate,
):  # fmt: skip
    """Fill forces and rates of one stage; return False if no finite force holds the modes."""
    held = hold(
        closed, jt, factor, parent, free, drift, u, row_of, Y, delassus, friction,
        joint_friction, mode, direction, frozen, joint_mode, reference, force, acceleration,
    )  # fmt: skip
    fill_rates(v, w, acceleration, displacement, free_flyer_v, tangent, w_rate)
    return held


@kernel
def finish_arc(
    dt, v_start, rates, w_rates, forces, free_flyer_v, displacement, w, increment, v, mean_force
):
    """Fill increment, velocity and mean forces of the whole arc from its four stages.

    Returns an estimate of the error of the velocity, relative to what is tolerable: large where
    the stages do not belong to one smooth motion.
    """
    error, fastest = 0.0, 1.0
    for k in range(v.shape[0]):
        spread = w_rates[0, k] - w_rates[1, k] - w_rates[2, k] + w_rates[3, k]
        error = max(error, dt / 6.0 * abs(spread))
        fastest = max(fastest, abs(v_start[k]))
    weighted_mean(rates, displacement)
    weighted_mean(w_rates, w)
    weighted_mean(forces, mean_force)
    for k in range(w.shape[0]):
        displacement[k] *= dt
        w[k] = v_start[k] + dt * w[k]
    move_base(displacement, w, free_flyer_v, increment, v)
    return error / (ROUGH * fastest)
