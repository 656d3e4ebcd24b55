"""Newton's system of soft contact in the velocities of one tree of joints.

    (I + H G) Δx = d,   G = J A⁻¹ Jᵀ

with the stiffness H = −∂γ/∂u, a symmetric 3x3 block per contact and a number per scalar row, has
the same solution as

    (A + Jᵀ H J) y = Jᵀ d,   Δx = d − H J y,   J y = G Δx.

The rows of a contact with the ground have entries on one branch of the tree, so the matrix has
entries where the mass matrix has them, and is factorised as quickly (solvers/_delassus.py), while
G is full. Δx is a difference of numbers that are up to |H G| larger: where that is large the form
with G is used, and where there are fewer unknowns than dofs, because it is smaller.

[Todorov 2014] Convex and analytically-invertible dynamics with contacts and constraints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_sim._types import Indices
from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import ADDRESSES, Arrays, front, integers, matrix, square, vector
from contact_sim.dynamics._articulated import tree_inertia
from contact_sim.solvers._delassus import TRUNK_DOFS, factorise, limbs_of, solve
from contact_sim.solvers._jit import kernel, on_demand
from contact_sim.solvers._soft_newton import TreeSolver

FIRST, DOFS, MATRIX, DEFECT, CHANGE, PRODUCT, VELOCITY = range(7)
"""Places in the field `tree_task`: first dof and dofs of the tree, which matrix A is, and
the vectors of `cone_work` with d, Δx, G Δx and y."""
WITH_DAMPING, WITHOUT_DAMPING, UNDAMPED_FROM_FREE = range(3)
"""A is M̂; it is M; it is M, and velocities count from v_f, not from v_f + h M⁻¹ D (v_f − v): then
h D (v_f − v) is added to Jᵀ d, and M alone is not factorised."""


def tree_numbers(parent: Indices) -> Indices:
    """Return five numbers of every dof about the tree that it is in, shape (5, nv).

    They are the first dof of the tree, one past its last, or 0 where its dofs are not consecutive,
    the number of its dofs if it has a trunk, else 0; then parent and limb of the dof as in
    solvers/_delassus.py, but counted from the first dof.
    """
    nv = len(parent)
    root, numbers = np.arange(nv), np.zeros((5, nv), np.int64)
    for k in range(nv):
        if parent[k] >= 0:
            root[k] = root[parent[k]]
    for first in np.unique(root):
        dofs = np.flatnonzero(root == first)
        if dofs[-1] - first + 1 == len(dofs):
            within = np.where(parent[dofs] < 0, -1, parent[dofs] - first)
            limb, rooted = limbs_of(within)
            numbers[0, dofs], numbers[1, dofs], numbers[2, dofs] = first, first + len(dofs), rooted
            numbers[3, dofs], numbers[4, dofs] = within, limb
    return numbers


@kernel
def tree_solver(data, which, vectors):
    """Return the `TreeSolver` of the active rows, without dofs where it cannot be used.

    `which`: the matrix A; `vectors`: numbers of the vectors of `cone_work` with d, Δx, G Δx and y.
    """
    task = integers(data, f.TREE_TASK)
    task[FIRST], task[DOFS] = tree_of_rows(data)
    task[MATRIX] = which
    task[DEFECT], task[CHANGE], task[PRODUCT], task[VELOCITY] = vectors
    return TreeSolver(task[DOFS], address_of_solver(), data)


@kernel
def tree_of_rows(data):
    """Return first dof and number of dofs of the tree of the active rows, 0 dofs where not usable.

    It needs rows on one tree, and the G of `fill_delassus`, which constraints and moments change.
    """
    n, room = integers(data, f.COUNTS)[1], vector(data, f.ROW_RESPONSE).shape[0]
    first, dofs = common_tree(data, n)
    constraints = vector(data, f.BILATERAL_ERROR).shape[0]
    moments = vector(data, f.TORSIONAL_FRICTION).shape[0]
    usable = constraints == 0 and moments == 0 and dofs * dofs <= room and n >= 3
    return first, dofs if usable else 0


@kernel
def common_tree(data, n):
    """Return the first dof and the number of dofs of the tree of all `n` rows, 0 without one."""
    leaf = integers(data, f.ROW_LEAF)
    if n == 0 or leaf[0] < 0:
        return 0, 0
    first, end = integers(data, f.TREE_BEGIN)[leaf[0]], integers(data, f.TREE_END)[leaf[0]]
    for a in range(1, n):
        if leaf[a] < first or leaf[a] >= end:
            return 0, 0
    return first, max(end - first, 0)


@on_demand(ADDRESSES)
def solve_along_tree(numbers: Any, indices: Any, layout: Any) -> None:
    """Fill Δx and G Δx; the first number of G Δx is not-a-number if there is no solution."""
    data = Arrays(numbers, indices, layout)
    task, n = integers(data, f.TREE_TASK), integers(data, f.COUNTS)[1]
    work, H, A = matrix(data, f.CONE_WORK), front(data, f.NEWTON_MATRIX, n, 3), tree_matrix(data)
    d, change, product, y = work[task[3]], work[task[4]], work[task[5]], work[task[6]]
    nc = integers(data, f.COUNTS)[0]
    # A + Jᵀ H J and Jᵀ d
    begin_system(data, A, y)
    for r in range(0, 3 * nc, 3):
        add_contact(data, A, r, H, d, y)
    for r in range(3 * nc, n):
        add_scalar_row(data, A, r, H[r, 0], d[r], y)
    # y
    first, end = task[FIRST], task[FIRST] + task[DOFS]
    limb, rooted = integers(data, f.TREE_LIMB)[first:end], integers(data, f.TREE_ROOTED)[first]
    tree = tree_parents(data), limb, rooted
    factorise(A, tree)
    solve(A, tree, y)
    # G Δx = J y and Δx = d − H J y
    for r in range(0, 3 * nc, 3):
        u1, u2, u3 = contact_velocity(data, r, y)
        product[r], product[r + 1], product[r + 2] = u1, u2, u3
        for a in range(r, r + 3):
            change[a] = d[a] - (H[a, 0] * u1 + H[a, 1] * u2 + H[a, 2] * u3)
    for r in range(3 * nc, n):
        product[r] = scalar_velocity(data, r, y)
        change[r] = d[r] - H[r, 0] * product[r]
    for k in range(A.shape[0]):
        if not 0.0 < A[k, k] < np.inf:
            product[0] = np.nan


address_of_solver = solve_along_tree.current_address


@kernel
def tree_matrix(data):
    """Return room for the matrix of the tree."""
    return square(data, f.ROW_RESPONSE, integers(data, f.TREE_TASK)[DOFS])


@kernel
def tree_parents(data):
    """Return the parents of the dofs of the tree, counted from its first."""
    task = integers(data, f.TREE_TASK)
    return integers(data, f.TREE_PARENT)[task[FIRST] : task[FIRST] + task[DOFS]]


@kernel
def begin_system(data, A, y):
    """Fill A in the entries of the tree, and y with what is added to Jᵀ d."""
    task = integers(data, f.TREE_TASK)
    first = task[FIRST]
    for k in range(A.shape[0]):
        y[k] = 0.0
    if vector(data, f.MASS_DIAGONAL).shape[0] > 0:  # a deep tree
        form_matrix(data, A)
    else:
        copy_matrix(data, A)
    if task[MATRIX] == WITH_DAMPING:
        return
    damping, h = vector(data, f.DAMPING), vector(data, f.TIME_STEP)[0]
    for k in range(A.shape[0]):
        A[k, k] -= h * damping[first + k]
    if task[MATRIX] == UNDAMPED_FROM_FREE:
        v, v_free = vector(data, f.V_START), vector(data, f.V_FREE)
        for k in range(A.shape[0]):
            y[k] = h * damping[first + k] * (v_free[first + k] - v[first + k])


@kernel
def form_matrix(data, A):
    """Fill A with M̂ of a deep tree, which the step does not form."""
    bodies = (
        integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(data, f.COLUMNS),
        matrix(data, f.WORLD_INERTIA),
    )  # fmt: skip
    tree_inertia(
        bodies, integers(data, f.DOF_PARENT), matrix(data, f.COMPOSITE),
        vector(data, f.ADDED_INERTIA), integers(data, f.TREE_TASK)[FIRST], A,
    )  # fmt: skip


@kernel
def copy_matrix(data, A):
    """Fill A with M̂."""
    inertia, parent, trunk = matrix(data, f.INERTIA), tree_parents(data), trunk_of_tree(data)
    first = integers(data, f.TREE_TASK)[FIRST]
    for k in range(A.shape[0]):
        j = k
        while j >= trunk:
            A[k, j] = inertia[first + k, first + j]
            j = parent[j]
        for i in range(min(trunk, k + 1)):
            A[k, i] = inertia[first + k, first + i]


@kernel
def trunk_of_tree(data):
    """Return the dofs of the trunk of the tree, from which all others branch: TRUNK_DOFS or 0."""
    rooted = integers(data, f.TREE_ROOTED)[integers(data, f.TREE_TASK)[FIRST]]
    return TRUNK_DOFS if rooted > 0 else 0


@kernel
def add_contact(data, A, r, H, d, y):
    """Add Jᵀ H J of the contact in the rows from `r` on, and Jᵀ d."""
    J, parent, trunk = matrix(data, f.JACOBIAN_TRANSPOSED), tree_parents(data), trunk_of_tree(data)
    first, c = integers(data, f.TREE_TASK)[FIRST], integers(data, f.ROW_OF)[r]
    h11, h12, h13, h22 = H[r, 0], H[r, 1], H[r, 2], H[r + 1, 1]
    h23, h33, d1, d2, d3 = H[r + 1, 2], H[r + 2, 2], d[r], d[r + 1], d[r + 2]
    i = integers(data, f.ROW_LEAF)[r] - first
    while i >= 0:
        at = first + i
        j1, j2, j3 = J[at, c], J[at, c + 1], J[at, c + 2]
        y[i] += j1 * d1 + j2 * d2 + j3 * d3
        p1, p2 = h11 * j1 + h12 * j2 + h13 * j3, h12 * j1 + h22 * j2 + h23 * j3
        p3, j = h13 * j1 + h23 * j2 + h33 * j3, i
        while j >= trunk:
            at = first + j
            A[i, j] += p1 * J[at, c] + p2 * J[at, c + 1] + p3 * J[at, c + 2]
            j = parent[j]
        for j in range(min(trunk, i + 1)):
            at = first + j
            A[i, j] += p1 * J[at, c] + p2 * J[at, c + 1] + p3 * J[at, c + 2]
        i = parent[i]


@kernel
def contact_velocity(data, r, y):
    """Return J y of the contact in the rows from `r` on."""
    J, parent = matrix(data, f.JACOBIAN_TRANSPOSED), tree_parents(data)
    first, c = integers(data, f.TREE_TASK)[FIRST], integers(data, f.ROW_OF)[r]
    u1 = u2 = u3 = 0.0
    k = integers(data, f.ROW_LEAF)[r] - first
    while k >= 0:
        at = first + k
        u1, u2, u3 = u1 + J[at, c] * y[k], u2 + J[at, c + 1] * y[k], u3 + J[at, c + 2] * y[k]
        k = parent[k]
    return u1, u2, u3


@kernel
def scalar_branch(data, r):
    """Return the column of Jᵀ of scalar row `r`, and the dofs where its entries begin and end."""
    first, c = integers(data, f.TREE_TASK)[FIRST], integers(data, f.ROW_OF)[r]
    k = c - 3 * vector(data, f.GAP).shape[0]
    end = integers(data, f.INTERVAL_END)[k] - first
    return c, integers(data, f.INTERVAL_DOF)[k] - first, max(end, -1)


@kernel
def add_scalar_row(data, A, r, h, d, y):
    """Add h Jᵀ J of scalar row `r`, and Jᵀ d."""
    J, parent = matrix(data, f.JACOBIAN_TRANSPOSED), tree_parents(data)
    first, (c, i, end) = integers(data, f.TREE_TASK)[FIRST], scalar_branch(data, r)
    while i > end:
        entry, j = J[first + i, c], i
        y[i] += entry * d
        while j > end:
            A[i, j] += h * entry * J[first + j, c]
            j = parent[j]
        i = parent[i]


@kernel
def scalar_velocity(data, r, y):
    """Return J y of scalar row `r`."""
    J, parent = matrix(data, f.JACOBIAN_TRANSPOSED), tree_parents(data)
    first, (c, k, end) = integers(data, f.TREE_TASK)[FIRST], scalar_branch(data, r)
    u = 0.0
    while k > end:
        u += J[first + k, c] * y[k]
        k = parent[k]
    return u
