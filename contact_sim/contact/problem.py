"""ContactProblem: the question to every time-stepping model, as a value without a robot.

Find λ such that u⁺ = G λ + u_f obeys the law, with w = u⁺ + b in place of the gap and impact
terms. Blocks, in row order: friction cones K_μ (rows t1, t2, n), then scalar rows with
λ ∈ [lower, upper] (dry friction: box; limit: half line; bilateral: whole line).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked, listed
from contact_sim.arrays.fields import MEMORY_NUMBERS
from contact_sim.contact.blocks import Block, Cone, Interval
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import LARGEST, finite_array, real_array, real_number

Array = NDArray[np.float64]
NO_ROWS = np.zeros(0)
SEMIDEFINITE = 1e-6
"""Share of the largest eigenvalue below which a negative one is rounding."""
DIMENSIONS = {'time_step': 0, 'delassus': 2, 'inertia': 2, 'jacobian': 2, 'memory': 2}
"""Dimensions of the fields that are no vectors."""


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
        if not _is_semidefinite(self.delassus):
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
        given = listed('blocks', blocks, 'a list of cones and intervals')
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

        A mechanism with unit mass and J = G^(1/2) stands in, so that every model can be asked.
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
            with np.load(path) as file:
                values: dict[str, Any] = {item.name: file[item.name] for item in fields(cls)}
            return cls(**values)
        except Exception as error:  # whatever NumPy and zipfile raise at damaged files
            raise InvalidInput(f'{path}: not a saved ContactProblem ({error!r})') from error


def _is_semidefinite(matrix: Array) -> bool:
    """Return whether a symmetric matrix has no negative eigenvalue, but for rounding."""
    values = np.linalg.eigvalsh(matrix)
    return not len(values) or bool(values[0] >= -SEMIDEFINITE * np.abs(values).max())


def _delassus(inertia: Array, jacobian: Array) -> Array:
    """Return J M⁻¹ Jᵀ, or raise InvalidInput where M is singular."""
    try:
        return np.asarray(jacobian @ np.linalg.solve(inertia, jacobian.T))
    except np.linalg.LinAlgError as error:
        raise InvalidInput('inertia: expected a matrix that can be inverted') from error
