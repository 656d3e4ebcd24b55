"""The contact problem in the arrays of a step, as the solvers take it."""

from __future__ import annotations

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import front, integers, matrix, square, vector
from contact_sim.contact.active_rows import ALL
from contact_sim.solvers.jit import kernel
from contact_sim.solvers.newton_work import NewtonWork
from contact_sim.solvers.rows import ConeWork, Rows
from contact_sim.solvers.spring_newton import SpringWork


@kernel
def interval_branches(data):
    """Return where the entries of the interval rows begin and end, see `active_rows`."""
    return integers(data, f.INTERVAL_DOF), integers(data, f.INTERVAL_END)


@kernel
def contact_branches(data):
    """Return on which branches the rows of the contacts of a step have entries."""
    return branches_with(data, vector(data, f.FEATURE_START))


@kernel
def branches_with(data, feature):
    """Return the same for what the slots hold at another instant, (nc,); see `active_rows`."""
    return integers(data, f.LEAF_DOF), feature, integers(data, f.PAIRS)


@kernel
def tree_of(data):
    """Return the tree of the dofs as the solvers take it, see solvers.tree."""
    return integers(data, f.DOF_PARENT), integers(data, f.LIMB), integers(data, f.ROOTED)[0]


@kernel
def all_islands(data):
    """Return islands of contacts and intervals, and all of them, see `active_rows`."""
    return integers(data, f.CONTACT_ISLAND), integers(data, f.INTERVAL_ISLAND), ALL


@kernel
def rows_of(data):
    """Return the active rows: G, g = u_f + b, μ and the bounds."""
    counts = integers(data, f.COUNTS)
    na, n = counts[0], counts[1]
    return Rows(
        square(data, f.DELASSUS, n), vector(data, f.G)[:n], vector(data, f.ROW_FRICTION)[:na],
        vector(data, f.ROW_LOWER)[: n - 3 * na], vector(data, f.ROW_UPPER)[: n - 3 * na],
    )  # fmt: skip


@kernel
def unbiased_rows_of(data):
    """Return the active rows with u_f in place of g: laws that have a bias of their own."""
    rows = rows_of(data)
    free = vector(data, f.ROW_FREE)[: rows.g.shape[0]]
    return Rows(rows.delassus, free, rows.friction, rows.lower, rows.upper)


@kernel
def cone_work_of(data):
    """Return the scratch of the solvers for the active rows."""
    n, work = integers(data, f.COUNTS)[1], matrix(data, f.CONE_WORK)
    return ConeWork(
        work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7],
        square(data, f.NEWTON_MATRIX, n), integers(data, f.MODE), integers(data, f.MODE_ROW),
    )  # fmt: skip


@kernel
def newton_work_of(data):
    """Return the scratch of `cone_newton.newton`; it is that of the other solvers too."""
    n, law = integers(data, f.COUNTS)[1], matrix(data, f.LAW_VECTORS)
    work = matrix(data, f.CONE_WORK)
    return NewtonWork(
        work[0], work[1], work[2], work[3], work[4], work[5], work[6], work[7], law[2],
        square(data, f.NEWTON_MATRIX, n), integers(data, f.MODE_ROW), law[3], law[4], law[5],
    )  # fmt: skip


@kernel
def spring_work_of(data):
    """Return the scratch of `spring_newton.end_of_step`; it is that of the other solvers too."""
    n, work = integers(data, f.COUNTS)[1], matrix(data, f.CONE_WORK)
    return SpringWork(
        work[0], work[1], work[2], work[3], work[4], work[5], work[6],
        front(data, f.LAW_VECTORS, n, 3), square(data, f.NEWTON_MATRIX, n),
        integers(data, f.MODE_ROW), work[7],
    )  # fmt: skip
