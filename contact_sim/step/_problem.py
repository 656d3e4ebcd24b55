"""ContactProblem: input of the time-stepping laws, with solution and residuals.

Find λ such that u⁺ = G λ + u_f obeys the law, with w = u⁺ + b in place of the gap and impact
terms (theory 0, 4.3). Blocks, in row order: friction cones K_μ (rows t1, t2, n), then interval
rows with λ ∈ [lower, upper] (dry friction: box; limit: half line; bilateral: whole line).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import (
    LARGEST,
    as_tuple,
    checked,
    checked_fields,
    finite_array,
    real_array,
    real_number,
    shaped,
)
from contact_sim.arrays._fields import MEMORY_NUMBERS, Sizes
from contact_sim.errors import InvalidInput, one_line, shown
from contact_sim.solvers._cone_problem import Rows, fill_rho, fill_velocity, natural_map_at
from contact_sim.solvers._delassus import EVERYWHERE
from contact_sim.solvers._jit import kernel
from contact_sim.step._workspace import Workspace

NO_ROWS = np.zeros(0)

SEMIDEFINITE = 1e-6
"""Share of the largest eigenvalue below which a negative one is rounding."""

DIMENSIONS = {'time_step': 0, 'delassus': 2, 'inertia': 2, 'jacobian': 2, 'memory': 2}
"""Dimensions of the fields that are no vectors."""


# --- Blocks: the parts of a contact problem, each with its set and its rows (theory 4.3).
#
# Cone       λ ∈ K_μ = {|λ_t| ≤ μ λ_n}, rows t1, t2, n        a contact
# Interval   λ ∈ [lower, upper], one row                      dry friction [−h τ, h τ],
#            a limit [0, ∞), a bilateral row (−∞, ∞)


@checked_fields
@dataclass(frozen=True, eq=False)
class Cone:
    """A contact with a circular friction cone.

    Raises:
        InvalidInput: a Jacobian or bias of another shape, values that are not finite, μ < 0.
    """

    jacobian: Array
    """Rows t1, t2, n: u = J v [m/s], shape (3, nv)."""
    friction: float
    """μ [-]."""
    gap: float = 0.0
    """Signed distance [m], negative when penetrating."""
    bias: ArrayLike = (0.0, 0.0, 0.0)
    """b [m/s], shape (3,)."""

    def __post_init__(self) -> None:
        _check_block(self, 3)
        if not (np.isfinite(self.friction) and self.friction >= 0.0):
            raise InvalidInput(
                f'Cone.friction = {shown(self.friction)}: expected a finite value >= 0'
            )


@checked_fields
@dataclass(frozen=True, eq=False)
class Interval:
    """One row whose impulse lies in an interval; bounds may be infinite.

    Raises:
        InvalidInput: a Jacobian of another shape, lower > upper, bounds that are not numbers, an
            interval without a finite impulse, other values that are not finite.
    """

    jacobian: Array
    """u = J v [m/s, rad/s], shape (1, nv)."""
    lower: float
    """Least impulse [N s, N m s]; −inf for none."""
    upper: float
    """Largest impulse [N s, N m s]; inf for none."""
    gap: float = 0.0
    """Position error of the row [m, rad]; 0 for friction."""
    bias: ArrayLike = (0.0,)
    """b [m/s, rad/s], shape (1,)."""

    def __post_init__(self) -> None:
        _check_block(self, 1)
        if not self.lower <= self.upper:  # so NaN is refused
            raise InvalidInput(
                f'Interval: lower = {shown(self.lower)}, upper = {shown(self.upper)}: '
                'expected lower <= upper'
            )
        if self.lower == np.inf or self.upper == -np.inf:
            raise InvalidInput(f'Interval: [{self.lower}, {self.upper}] holds no finite impulse')


Block = Cone | Interval


def _check_block(block: Block, rows: int) -> None:
    """Check what both kinds have; Jacobian and bias become arrays that cannot be written."""
    kind = type(block).__name__
    for name, rank in (('jacobian', 2), ('bias', 1)):
        value = np.array(real_array(f'{kind}.{name}', getattr(block, name)))
        if value.ndim != rank or value.shape[0] != rows:
            raise InvalidInput(f'{kind}.{name}: shape {value.shape}, expected {rows} rows')
        if not np.isfinite(value).all():
            raise InvalidInput(f'{kind}.{name}: all entries must be finite')
        value.setflags(write=False)
        object.__setattr__(block, name, value)
    if not np.isfinite(block.gap):
        raise InvalidInput(f'{kind}.gap = {shown(block.gap)}: expected a finite number')


# --- The problem.


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """One step's contact problem.

    Raises:
        InvalidInput: sizes that do not fit, values that are not finite, negative friction,
            a Delassus matrix that is not symmetric and positive semidefinite, bounds that leave
            no impulse, a time step that is not > 0.
    """

    delassus: Array
    """G = J M̂⁻¹ Jᵀ [1/kg], shape (n, n), n = 3 nc + ns."""
    free_velocity: Array
    """u_f = J v_f [m/s], shape (n,)."""
    bias: Array
    """b [m/s], shape (n,)."""
    friction: Array
    """μ [-], shape (nc,)."""
    lower: Array
    """Lower bounds of the scalar impulses [N s], shape (ns,); −inf allowed."""
    upper: Array
    """Upper bounds, shape (ns,); inf allowed."""
    gap: Array
    """Signed distance at the start of the step [m], shape (nc,)."""
    start_velocity: Array
    """u⁻ = J v before the step [m/s], shape (n,)."""
    time_step: float
    """h [s]."""
    inertia: Array
    """M̂ [kg, kg m²], shape (nv, nv)."""
    jacobian: Array
    """J, shape (n, nv)."""
    velocity: Array
    """v before the step, shape (nv,)."""
    free_motion: Array
    """v_f, shape (nv,)."""
    inverse_weight: Array = field(default_factory=lambda: NO_ROWS)
    """Mean diagonal of G in the neutral pose [1/kg], shape (n,); empty: the diagonal of G."""
    memory: Array = field(default_factory=lambda: NO_ROWS)
    """Memory of the contact model for each contact: a vector in the contact frame and a number, in
    the model's units, shape (nc, 4); empty: zeros."""
    interval_gap: Array = field(default_factory=lambda: NO_ROWS)
    """Position error of the interval rows [m, rad], 0 for friction, shape (ns,); empty: zeros."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = real_array(f'ContactProblem.{item.name}', getattr(self, item.name))
            absent = item.name == 'memory' and not value.size
            if not absent and value.ndim != DIMENSIONS.get(item.name, 1):
                raise InvalidInput(f'ContactProblem.{item.name}: shape {value.shape}')
            object.__setattr__(self, item.name, value if value.ndim else float(value))
        if len(self.inverse_weight) == 0:
            object.__setattr__(self, 'inverse_weight', np.diag(self.delassus).copy())
        if len(self.memory) == 0:
            object.__setattr__(self, 'memory', np.zeros((self.n_contacts, MEMORY_NUMBERS)))
        if len(self.interval_gap) == 0:
            object.__setattr__(self, 'interval_gap', np.zeros(len(self.lower)))
        n, nc, ns, nv = self.n_rows, self.n_contacts, len(self.lower), len(self.velocity)
        shapes = {
            'delassus': (n, n), 'bias': (n,), 'friction': (nc,), 'lower': (ns,), 'upper': (ns,),
            'gap': (nc,), 'start_velocity': (n,), 'inertia': (nv, nv), 'jacobian': (n, nv),
            'velocity': (nv,), 'free_motion': (nv,), 'free_velocity': (3 * nc + ns,),
            'inverse_weight': (n,), 'memory': (nc, MEMORY_NUMBERS), 'interval_gap': (ns,),
        }  # fmt: skip
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value.shape != shape:
                raise InvalidInput(f'ContactProblem.{name}: shape {value.shape}, expected {shape}')
            if name not in ('lower', 'upper'):
                finite_array(f'ContactProblem.{name}', value)
        if not np.allclose(self.delassus, self.delassus.T, rtol=1e-9, atol=1e-12):
            raise InvalidInput('ContactProblem.delassus: must be symmetric')
        values = np.linalg.eigvalsh(self.delassus)
        if len(values) and not values[0] >= -SEMIDEFINITE * np.abs(values).max():
            raise InvalidInput('ContactProblem.delassus: must be positive semidefinite')
        own = np.diagonal(self.delassus)
        tiny = np.flatnonzero((own > 0.0) & (own < 1.0 / LARGEST))
        if len(tiny):
            row = tiny[0]
            raise InvalidInput(
                f'ContactProblem.delassus: {own[row]:g} 1/kg on the diagonal, in row {row}: '
                f'expected 0, or at least {1.0 / LARGEST:g}'
            )
        if (self.friction < 0.0).any():
            raise InvalidInput(f'ContactProblem.friction = {self.friction}: must be >= 0')
        possible = (self.lower <= self.upper) & (self.lower < np.inf) & (self.upper > -np.inf)
        crossed = np.flatnonzero(~possible)  # so NaN is refused
        if len(crossed):
            k = int(crossed[0])
            raise InvalidInput(
                f'ContactProblem: interval {k} has lower = {self.lower[k]}, upper = '
                f'{self.upper[k]}: expected lower <= upper'
            )
        if not (np.isfinite(self.time_step) and self.time_step > 0.0):
            raise InvalidInput(
                f'ContactProblem.time_step = {shown(self.time_step)} s: must be > 0'
            )

    @property
    def n_contacts(self) -> int:
        """Number of contacts nc."""
        return len(self.friction)

    @property
    def n_rows(self) -> int:
        """Number of rows n = 3 nc + ns."""
        return len(self.free_velocity)

    @property
    def g(self) -> Array:
        """u_f + b [m/s], shape (n,)."""
        return self.free_velocity + self.bias

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks of the problem: cones first, then intervals, in the order of the rows."""
        J, b, nc = self.jacobian, self.bias, self.n_contacts
        cones = [
            Cone(J[3 * i : 3 * i + 3], float(self.friction[i]), float(self.gap[i]),
                 b[3 * i : 3 * i + 3])
            for i in range(nc)
        ]  # fmt: skip
        intervals = [
            Interval(J[r : r + 1], float(self.lower[k]), float(self.upper[k]),
                     float(self.interval_gap[k]), b[r : r + 1])
            for k, r in enumerate(range(3 * nc, self.n_rows))
        ]  # fmt: skip
        return (*cones, *intervals)

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[Block],
        inertia: ArrayLike,
        velocity: ArrayLike,
        free_motion: ArrayLike,
        time_step: float,
    ) -> ContactProblem:
        """Return the problem of a mechanism with `blocks` on it; intervals go behind the cones.

        Args:
            blocks: cones and intervals, Jacobians with nv columns.
            inertia: M̂, shape (nv, nv).
            velocity: v before the step, shape (nv,).
            free_motion: v_f, shape (nv,).
            time_step: h [s].

        Raises:
            InvalidInput: something that is no block, Jacobians of another width.
        """
        given = as_tuple('blocks', blocks, 'a list of cones and intervals')
        nv = real_array('velocity', velocity).size
        for k, block in enumerate(given):
            if not isinstance(block, Cone | Interval):
                raise InvalidInput(f'blocks[{k}] = {shown(block)}: expected a Cone or an Interval')
            if block.jacobian.shape[1] != nv:
                raise InvalidInput(
                    f'blocks[{k}].jacobian: {block.jacobian.shape[1]} columns, expected {nv}'
                )
        cones = [block for block in given if isinstance(block, Cone)]
        intervals = [block for block in given if isinstance(block, Interval)]
        ordered: list[Cone | Interval] = [*cones, *intervals]
        problem = cls.from_dynamics(
            inertia, np.vstack([np.zeros((0, nv)), *(block.jacobian for block in ordered)]),
            velocity, free_motion, [cone.friction for cone in cones],
            [cone.gap for cone in cones], np.concatenate([NO_ROWS, *(b.bias for b in ordered)]),
            time_step, [row.lower for row in intervals], [row.upper for row in intervals],
        )  # fmt: skip
        return replace(problem, interval_gap=np.array([row.gap for row in intervals], float))

    @classmethod
    def from_dynamics(
        cls,
        inertia: ArrayLike,
        jacobian: ArrayLike,
        velocity: ArrayLike,
        free_motion: ArrayLike,
        friction: ArrayLike,
        gap: ArrayLike,
        bias: ArrayLike,
        time_step: float,
        lower: ArrayLike = NO_ROWS,
        upper: ArrayLike = NO_ROWS,
        delassus: ArrayLike | None = None,
    ) -> ContactProblem:
        """Return the problem of a mechanism; fields as in the class."""
        M, J = real_array('inertia', inertia), real_array('jacobian', jacobian)
        v, v_f = real_array('velocity', velocity), real_array('free_motion', free_motion)
        if J.ndim != 2 or M.shape != (J.shape[1],) * 2 or not v.shape == v_f.shape == M.shape[:1]:
            raise InvalidInput(
                f'inertia {M.shape}, jacobian {J.shape}, velocity {v.shape}, free_motion '
                f'{v_f.shape}: expected (nv, nv), (n, nv), (nv,), (nv,)'
            )
        G = _delassus(M, J) if delassus is None else real_array('delassus', delassus)
        return cls(
            delassus=G if delassus is not None else 0.5 * (G + G.T),
            free_velocity=J @ v_f,
            bias=real_array('bias', bias),
            friction=real_array('friction', friction),
            lower=real_array('lower', lower),
            upper=real_array('upper', upper),
            gap=real_array('gap', gap),
            start_velocity=J @ v,
            time_step=real_number('time_step', time_step),
            inertia=M,
            jacobian=J,
            velocity=v,
            free_motion=v_f,
        )

    @classmethod
    def from_delassus(
        cls, delassus: ArrayLike, g: ArrayLike, friction: ArrayLike, **bounds: Any
    ) -> ContactProblem:
        """Return the problem G, g, μ without a mechanism behind it.

        A mechanism with unit mass and J = G^(1/2) stands in, so that every model can solve it.
        `bounds` may hold `lower` and `upper` of the scalar rows.
        """
        G, g = real_array('delassus', delassus), real_array('g', g)
        if G.ndim != 2 or G.shape[0] != G.shape[1] or g.shape != G.shape[:1]:
            raise InvalidInput(f'delassus {G.shape} and g {g.shape}: expected (n, n) and (n,)')
        if not (np.isfinite(G).all() and np.isfinite(g).all()):
            raise InvalidInput('delassus and g: all entries must be finite')
        values, vectors = np.linalg.eigh(G)
        J = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        n, nc = len(g), real_array('friction', friction).size
        return cls(
            delassus=G,
            free_velocity=g,
            bias=np.zeros(n),
            friction=real_array('friction', friction),
            lower=real_array('lower', bounds.get('lower', NO_ROWS)),
            upper=real_array('upper', bounds.get('upper', NO_ROWS)),
            gap=np.zeros(nc),
            start_velocity=g,
            time_step=1.0,
            inertia=np.eye(n),
            jacobian=J,
            velocity=np.linalg.lstsq(J, g, rcond=None)[0],
            free_motion=np.linalg.lstsq(J, g, rcond=None)[0],
        )

    @checked
    def save(self, path: str | Path) -> None:
        """Write the problem to one `.npz` file: a failing step becomes a test case."""
        np.savez(path, **{item.name: getattr(self, item.name) for item in fields(self)})

    @classmethod
    @checked
    def load(cls, path: str | Path) -> ContactProblem:
        """Return a problem written by `save`.

        Raises:
            InvalidInput: the file is missing or does not hold a ContactProblem.
        """
        try:
            with _reading.reading(path):
                file = _reading.npz_file(path)
            values: dict[str, Any] = {item.name: file[item.name] for item in fields(cls)}
            return cls(**values)
        except _reading.Unreadable:
            raise
        except Exception as error:  # any exception of NumPy and zipfile for damaged files
            raise InvalidInput(f'{path}: not a saved ContactProblem ({error!r})') from error

    __repr__ = one_line


def _delassus(inertia: Array, jacobian: Array) -> Array:
    """Return J M⁻¹ Jᵀ, or raise InvalidInput where M is singular."""
    try:
        return np.asarray(jacobian @ np.linalg.solve(inertia, jacobian.T))
    except np.linalg.LinAlgError as error:
        raise InvalidInput('inertia: expected a matrix that can be inverted') from error


class ProblemArrays(Workspace):
    """The arrays of a step with a contact problem in them, for compiled laws; all rows active."""

    def __init__(self, problem: ContactProblem, guess: Array | None = None) -> None:
        nc, ns, n = problem.n_contacts, len(problem.lower), problem.n_rows
        self.sizes = Sizes(0, len(problem.velocity), 0, nc, ns)
        self._allocate()
        self.counts[:2] = nc, n
        self.row_of[:], self.row_leaf[:] = range(n), EVERYWHERE
        self.delassus[:] = problem.delassus.ravel()
        self.row_impulse[:] = 0.0 if guess is None else shaped('guess', guess, n)
        self.row_memory[:] = self.row_memory_next[:] = problem.memory
        for name, value in (
            ('g', problem.g), ('row_free', problem.free_velocity),
            ('row_start', problem.start_velocity), ('row_friction', problem.friction),
            ('row_gap', problem.gap), ('row_lower', problem.lower),
            ('row_upper', problem.upper), ('row_interval_gap', problem.interval_gap),
            ('row_weight', problem.inverse_weight),
        ):  # fmt: skip
            getattr(self, name)[:] = value
        self.data.time_step[0] = problem.time_step
        self.inertia[:] = problem.inertia
        self.jacobian_transposed[:] = problem.jacobian.T


# --- The answer. Non-convergence is a status; bad input is an exception.


class SolverStatus(Enum):
    """Status of a solve; the value is the message for the user."""

    FREE = 'nothing to solve: no contact was active'
    CONVERGED = 'the solver met its tolerance'
    CONVERGED_BY_FALLBACK = 'the first method stalled; another one met the tolerance'
    MAX_ITERATIONS = 'the solver ran out of iterations; the best impulses found were used'
    RAY_TERMINATION = 'complementary pivoting found no answer; the circular cone was used'
    NONFINITE = 'not-a-number met in the solver; look at the effort and the mass matrix first'
    UNSTABLE = (
        'the explicit springs are too stiff for the time step (h ω > 2) and will explode; lower '
        'the stiffness or the time step, or integrate implicitly'
    )
    INCONSISTENT = (
        'no contact force obeys the laws here: rigid friction jams (Painlevé; hybrid takes one '
        'time-stepping step), or rows contradict each other'
    )
    TOO_MANY_EVENTS = (
        'contact events too many to follow one by one; a time-stepping step met the tolerance'
    )
    PULLING = 'the stance is held, but the ground would have to pull on a foot'
    OUTSIDE_CONE = 'the stance is held, but a foot needs more friction than there is'
    SINKING = 'the stance is held, but a foot outside the given support sinks into the ground'
    IMMOVABLE = (
        'solved without contacts that no motion of the robot can open, whose force is not '
        'determined; `immovable` of the report tells which'
    )

    @property
    def converged(self) -> bool:
        """True where the impulses satisfy the law to the solver's tolerance."""
        solved = (
            self.FREE, self.CONVERGED, self.CONVERGED_BY_FALLBACK, self.TOO_MANY_EVENTS,
            self.IMMOVABLE,
        )  # fmt: skip
        return self in solved or not self.physical

    @property
    def physical(self) -> bool:
        """False where a law without cones (null_space) was solved, with forces no ground has."""
        return self not in (self.PULLING, self.OUTSIDE_CONE, self.SINKING)


STATUSES = tuple(SolverStatus)
"""By the codes of solvers/_cone_problem.py."""


@dataclass(frozen=True)
class SolverReport:
    """Outcome of one solve."""

    status: SolverStatus
    iterations: int
    """Sweeps and iterations, summed over the solvers that took part."""
    residual: float
    """Value of the solver's own stopping criterion at the end [N s]."""

    @property
    def converged(self) -> bool:
        """True where the solver met its tolerance."""
        return self.status.converged

    @property
    def physical(self) -> bool:
        """False where the solution has forces that no ground can exert."""
        return self.status.physical

    @property
    def message(self) -> str:
        """The status as a sentence."""
        return self.status.value


@dataclass(frozen=True)
class ContactSolution:
    """Solution of a ContactProblem: impulses and solver report."""

    impulse: Array
    """On the robot [N s], rows (t1, t2, n) per contact, then the scalar rows, shape (n,)."""
    solver: SolverReport

    __repr__ = one_line


# --- The judge: one definition of each residual for all models; no solver grades itself.
#
# λ is the impulse on the robot [N s], u⁺ = G λ + u_f, w = u⁺ + b with the bias of the law,
# Γ(w) = (0, 0, μ |w_t|). theory 2.15.

TOUCHING = 1e-9
"""Gap above which a contact counts as apart [m]."""


class LawResiduals(NamedTuple):
    """Residuals of impulses in the laws of contact; zero is exact."""

    signorini: float
    """max |λ_n w_n| [J]."""
    cone: float
    """max (|λ_t| − μ λ_n)₊ [N s]."""
    dissipation: float
    """max (μ λ_n |u_t| + λ_t·u_t) [J]: what maximum dissipation would dissipate in addition."""
    ncp: float
    """max |λ_i − Proj(λ_i − ρ_i (w_i + Γ(w_i)))| [N s], ρ_i = 1/λ_max(G_ii), over all blocks:
    natural map."""
    dual: float
    """max dist(w_i + Γ(w_i), K*_μ) [m/s]."""
    interval: float
    """max distance of an interval impulse from [lower, upper] [N s]."""
    dissipated: float
    """D = T(v⁺) − T(v_f) = ½ λᵀ(u_f + u⁺) [J]; ≤ −λᵀ b for a passive law."""
    bias_work: float
    """−λᵀ b [J]: work of the gap, stabilisation and restitution terms."""


LAW_RESIDUALS = len(LawResiduals._fields)


@checked
def law_residuals(problem: ContactProblem, impulse: Array) -> LawResiduals:
    """Return the residuals of `impulse` (n,) in `problem`.

    Raises:
        InvalidInput: impulses of the wrong size.
    """
    if np.shape(impulse) != (problem.n_rows,):
        raise InvalidInput(f'impulse: shape {np.shape(impulse)}, expected {(problem.n_rows,)}')
    rows = Rows(
        np.array(problem.delassus, order='C'), problem.g, np.array(problem.friction),
        np.array(problem.lower), np.array(problem.upper),
    )  # fmt: skip
    out, scratch = np.zeros(LAW_RESIDUALS), np.zeros((2, problem.n_rows))
    judge_rows(rows, np.array(problem.bias), np.array(impulse, dtype=float), *scratch, out)
    return LawResiduals(*out.tolist())


@kernel
def judge_rows(rows, bias, impulse, w, rho, out):
    """Fill the fields of LawResiduals, in their order, into `out`; `w`, `rho` (n,) are scratch."""
    for k in range(LAW_RESIDUALS):
        out[k] = 0.0
    if impulse.shape[0] == 0:
        return
    fill_velocity(rows, impulse, w)
    fill_rho(rows, rho)
    for r in range(rho.shape[0]):
        if rho[r] == np.inf:  # nothing can move the row: no impulse is nearer to the law
            rho[r] = 0.0
    # residuals of the contacts: w, and Γ(w) in the dual one; the work is that of u
    nc = rows.friction.shape[0]
    for i in range(nc):
        mu, r = rows.friction[i], 3 * i
        t1, t2, n = impulse[r], impulse[r + 1], impulse[r + 2]
        w1, w2, wn = w[r], w[r + 1], w[r + 2]
        u1, u2 = w1 - bias[r], w2 - bias[r + 1]
        tangential = np.sqrt(w1 * w1 + w2 * w2)
        out[0] = max(out[0], abs(n * wn))
        out[1] = max(out[1], np.sqrt(t1 * t1 + t2 * t2) - mu * n)
        out[2] = max(out[2], mu * n * np.sqrt(u1 * u1 + u2 * u2) + t1 * u1 + t2 * u2)
        out[4] = max(out[4], distance_to_dual_cone(tangential, wn + mu * tangential, mu))
    for k in range(rows.lower.shape[0]):
        x = impulse[3 * nc + k]
        out[5] = max(out[5], rows.lower[k] - x, x - rows.upper[k])
    out[3] = natural_map_at(rows, impulse, w, rho, 0.0)
    for r in range(impulse.shape[0]):
        out[6] += 0.5 * impulse[r] * (rows.g[r] + w[r] - 2.0 * bias[r])
        out[7] -= impulse[r] * bias[r]


@kernel
def distance_to_dual_cone(tangential, normal, mu):
    """Return the distance of (t, n) from K*_μ = {|t| μ ≤ n}, `tangential` = |t|."""
    if tangential <= -mu * normal:  # nearest point is the tip
        return np.sqrt(tangential * tangential + normal * normal)
    return max((mu * tangential - normal) / np.sqrt(1.0 + mu * mu), 0.0)


class EnergyBalance(NamedTuple):
    """Energy balance of one step [J].

    change = actuation + damping + contact + joint_friction + constraints + integration.
    """

    change: float
    """ΔT + ΔU, exactly from the states before and after."""
    actuation: float
    """½ h (v + v⁺)ᵀ τ with τ the applied effort and external wrenches."""
    damping: float
    """Work of viscous joint damping, taken at the end of the step."""
    contact: float
    """½ λᵀ (u⁻ + u⁺) over the contacts, their moments included."""
    joint_friction: float
    """½ λᵀ (u⁻ + u⁺) over the interval rows: dry friction and limits of joints."""
    correction: float
    """−λᵀ b: the contact work of the gap, stabilisation and restitution terms."""
    constraints: float
    """½ λ_bᵀ H (v + v⁺) of the bilateral constraints."""

    @property
    def integration(self) -> float:
        """Remainder: the O(h²) residual of a step with frozen mass matrix."""
        work = self.actuation + self.damping + self.contact + self.joint_friction
        return self.change - work - self.constraints


class Residuals(NamedTuple):
    """The residuals of one step: those of the law as in LawResiduals, and those of the motion."""

    signorini: float
    """See LawResiduals; so the seven that follow."""
    cone: float
    dissipation: float
    ncp: float
    dual: float
    interval: float
    dissipated: float
    bias_work: float
    penetration: float
    """max (−φ(q⁺))₊ [m]."""
    force_at_distance: float
    """Σ λ_n over contacts with φ(q⁺) above 1e-9 m [N s]."""
    slip: float
    """Largest tangential speed of a contact that carries load [m/s]."""
    momentum: float
    """max |M̂ (v⁺ − v_f) − Jᵀ λ − Hᵀ λ_b| [N s, N m s]."""
    energy_change: float
    """See EnergyBalance; so the six that follow [J]."""
    energy_actuation: float
    energy_damping: float
    energy_contact: float
    energy_joint_friction: float
    energy_correction: float
    energy_constraints: float

    @property
    def energy_balance(self) -> EnergyBalance:
        """Energy balance of the step [J]."""
        return EnergyBalance(*self[-len(EnergyBalance._fields) :])

    @property
    def energy(self) -> float:
        """Integration residual of the energy balance [J]."""
        return self.energy_balance.integration

    def as_dict(self) -> dict[str, float]:
        """Return all residuals by name, `energy` included."""
        return {**self._asdict(), 'energy': self.energy}
