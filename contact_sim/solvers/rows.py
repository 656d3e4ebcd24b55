"""One contact problem as numbers, and the scratch of the solvers that do not allocate.

Rows come contact by contact, (t1, t2, n) each, then the scalar rows. A scalar row has its impulse
in an interval [lower, upper], which dry friction bounds on both sides, a limit on one and a
bilateral constraint on none: bounds may be −inf and inf.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from contact_sim.solvers.jit import kernel


class Rows(NamedTuple):
    """The numbers of one problem: w = G λ + g per row, n = 3 nc + ns rows."""

    delassus: Any
    """G [1/kg], shape (n, n)."""
    g: Any
    """Velocity of the rows without impulses [m/s], shape (n,)."""
    friction: Any
    """μ [-], shape (nc,)."""
    lower: Any
    """Lower bounds of the scalar impulses [N s], shape (ns,); −inf allowed."""
    upper: Any
    """Upper bounds, shape (ns,); inf allowed."""


class ConeWork(NamedTuple):
    """Scratch of `cones.solve_cones`; only the first n entries are used, there may be more."""

    rho: Any
    """Step length of every row in the natural map [kg], shape (n,)."""
    velocity: Any
    """w of the impulse [m/s], shape (n,)."""
    trial: Any
    """Impulse that is tried [N s], shape (n,)."""
    trial_velocity: Any
    """w of that impulse [m/s], shape (n,)."""
    best: Any
    """Best impulse so far [N s], shape (n,)."""
    direction: Any
    """Unit vector of λ_t of the slipping contacts in their tangential rows, shape (n,)."""
    line: Any
    """One equation of the modes before it is reduced to the unknowns, shape (n,)."""
    step: Any
    """Newton step of the unknowns, shape (n,)."""
    matrix: Any
    """Matrix of the modes, shape (n, n)."""
    kind: Any
    """Kind of every unknown, integers, shape (n,)."""
    row: Any
    """Row of every unknown, integers, shape (n,)."""


@kernel
def cone_work(n):
    """Return scratch for problems of up to `n` rows."""
    return ConeWork(
        np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
        np.empty(n), np.empty((n, n)), np.empty(n, np.int64), np.empty(n, np.int64),
    )  # fmt: skip
