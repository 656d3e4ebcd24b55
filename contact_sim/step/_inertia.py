"""The inertia M̂ of a step: factor, solves and Delassus matrix, of a formed matrix or a deep tree.

Most robots form the mass matrix and factorise it along the tree (solvers/_delassus.py). That of a
deep tree, with long branches, is never formed: articulated bodies apply its factor
(dynamics/_articulated.py), in a time that is linear in the number of dofs. Few robots are deep, so
what they need is compiled apart, when it first runs; numbers go into the field `deep_task`.
"""

from __future__ import annotations

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import front, integers, matrix, square, stage_on_demand, vector
from contact_sim.dynamics._articulated import (
    articulate,
    base_columns,
    bodies_energy,
    half_solves,
    inertia_diagonal,
    inertia_product,
    products,
    solve_articulated,
    tree_inertia,
)
from contact_sim.dynamics._forces import add_joint_springs, add_spring_forces, implicit_inertia
from contact_sim.dynamics._rigid_body import kinetic_energy, mass_matrix
from contact_sim.solvers._delassus import (
    delassus,
    delassus_diagonal,
    factorise,
    solve,
    solve_factor,
    solve_transposed,
)
from contact_sim.solvers._jit import kernel, numbers_at
from contact_sim.step._contact_rows import tree_of

IMPLICIT, UNDAMPED, BARE = range(3)
"""Matrices of which there are factors: M̂; M̂ − h D; M, in place of M̂."""
WHICH, ADDRESS, COLUMNS, ROWS = range(4)
"""Places in the field `deep_task`: the matrix; address of a vector x or of Jᵀ; columns of Jᵀ and
rows of the problem."""


@kernel
def is_deep(data):
    """Return whether the mass matrix is never formed."""
    return vector(data, f.MASS_DIAGONAL).shape[0] > 0


@kernel
def bodies_of(data):
    """Return the bodies of the tree, see dynamics/_articulated.py."""
    return (
        integers(data, f.PARENT), integers(data, f.V_INDEX), matrix(data, f.COLUMNS),
        matrix(data, f.WORLD_INERTIA),
    )  # fmt: skip


@kernel
def articulated_motion(data, which):
    """Return dof_parent, columns and factor of a deep tree."""
    nv, both = integers(data, f.DOF_PARENT).shape[0], matrix(data, f.ARTICULATED)
    first = nv if which == UNDAMPED else 0
    return integers(data, f.DOF_PARENT), matrix(data, f.COLUMNS), both[first : first + nv]


# --- M at the present placements.


@kernel
def fill_mass_matrix(data):
    """Fill M, or its diagonal alone."""
    if is_deep(data):
        fill_diagonal(data)
        return
    mass_matrix(
        integers(data, f.PARENT), integers(data, f.V_INDEX), integers(data, f.DOF_PARENT),
        matrix(data, f.COLUMNS), matrix(data, f.WORLD_INERTIA), vector(data, f.ARMATURE),
        matrix(data, f.COMPOSITE), matrix(data, f.MASS_MATRIX),
    )  # fmt: skip


@stage_on_demand
def fill_diagonal(data):
    """Fill the diagonal of M of a deep tree."""
    inertia_diagonal(
        bodies_of(data), vector(data, f.ARMATURE), matrix(data, f.COMPOSITE),
        vector(data, f.MASS_DIAGONAL),
    )  # fmt: skip


@kernel
def fill_kinetic_energy(data):
    """Fill ½ vᵀ M v."""
    if is_deep(data):
        fill_deep_energy(data)
        return
    vector(data, f.ENERGY)[0] = kinetic_energy(
        matrix(data, f.MASS_MATRIX), integers(data, f.DOF_PARENT), vector(data, f.V)
    )


@stage_on_demand
def fill_deep_energy(data):
    """Fill ½ vᵀ M v of a deep tree."""
    vector(data, f.ENERGY)[0] = bodies_energy(
        bodies_of(data), vector(data, f.ARMATURE), vector(data, f.V), matrix(data, f.BODY_WRENCH)
    )


@kernel
def base_matrix(data, first, end):
    """Return a matrix with the columns of M of the free base at a dof, and where they begin."""
    if is_deep(data):
        out = matrix(data, f.BASE_COLUMNS)
        base_columns(
            bodies_of(data), integers(data, f.DOF_PARENT), matrix(data, f.COMPOSITE),
            vector(data, f.ARMATURE), (first, end), out,
        )  # fmt: skip
        return out, 0
    return matrix(data, f.MASS_MATRIX), first


# --- M̂ = M + h D + h² K + b diag(M), b of todorov in its form of 2014, and its factor.


@kernel
def begin_inertia(data):
    """Fill M̂ and its factor, and τ − nle − (D + b diag(M)) v and the springs into `v_free`."""
    if is_deep(data):
        begin_deep_inertia(data)
        return
    damping, h, v = vector(data, f.DAMPING), vector(data, f.TIME_STEP)[0], vector(data, f.V_START)
    M, v_free, tree = matrix(data, f.MASS_MATRIX), vector(data, f.V_FREE), tree_of(data)
    tau, nle = vector(data, f.TAU), vector(data, f.NONLINEAR_EFFECTS)
    share, factor = vector(data, f.DAMPING_INERTIA)[0], matrix(data, f.FACTOR)
    implicit_inertia(M, tree[0], damping, h, share, matrix(data, f.INERTIA), factor)
    for k in range(v.shape[0]):
        v_free[k] = tau[k] - nle[k] - (damping[k] + share * M[k, k]) * v[k]
    if integers(data, f.SPRING_V).shape[0] > 0:
        apply_springs(data)
    added, armature, inertia = (
        vector(data, f.ADDED_INERTIA), vector(data, f.ARMATURE), matrix(data, f.INERTIA),
    )  # fmt: skip
    for k in range(v.shape[0]):
        added[k] = armature[k] + (inertia[k, k] - M[k, k])
    factorise(factor, tree)


@stage_on_demand
def apply_springs(data):
    """Add the springs of joints to M̂ and to the forces in v_f."""
    h = vector(data, f.TIME_STEP)[0]
    add_joint_springs(
        vector(data, f.Q_START), vector(data, f.V_START),
        (integers(data, f.SPRING_Q), integers(data, f.SPRING_V)),
        (vector(data, f.JOINT_STIFFNESS), vector(data, f.JOINT_REST)), h,
        h * vector(data, f.IMPLICIT_SPRINGS)[0], matrix(data, f.INERTIA), matrix(data, f.FACTOR),
        vector(data, f.V_FREE),
    )  # fmt: skip


@stage_on_demand
def begin_deep_inertia(data):
    """Do the same for a deep tree; of M̂ only what is on its diagonal besides the bodies."""
    added, armature = vector(data, f.ADDED_INERTIA), vector(data, f.ARMATURE)
    diagonal, share = vector(data, f.MASS_DIAGONAL), vector(data, f.DAMPING_INERTIA)[0]
    damping, h, v = vector(data, f.DAMPING), vector(data, f.TIME_STEP)[0], vector(data, f.V_START)
    v_free, tau = vector(data, f.V_FREE), vector(data, f.TAU)
    nle, spring_v = vector(data, f.NONLINEAR_EFFECTS), integers(data, f.SPRING_V)
    for k in range(v.shape[0]):
        added[k] = armature[k] + h * damping[k] + share * diagonal[k]
        v_free[k] = tau[k] - nle[k] - (damping[k] + share * diagonal[k]) * v[k]
    ahead, stiffness = h * vector(data, f.IMPLICIT_SPRINGS)[0], vector(data, f.JOINT_STIFFNESS)
    for i in range(spring_v.shape[0]):
        added[spring_v[i]] += h * ahead * stiffness[i]
    add_spring_forces(
        vector(data, f.Q_START), v, (integers(data, f.SPRING_Q), spring_v),
        (stiffness, vector(data, f.JOINT_REST)), ahead, v_free,
    )  # fmt: skip
    fill_deep_factor(data, IMPLICIT)


@kernel
def fill_deep_factor(data, which):
    """Fill a factor of a deep tree at the present placements."""
    integers(data, f.DEEP_TASK)[WHICH] = which
    articulate_bodies(data)


@stage_on_demand
def articulate_bodies(data):
    """Fill the factor of the matrix in `deep_task`."""
    which = integers(data, f.DEEP_TASK)[WHICH]
    parent, v_index, columns, inertia = bodies_of(data)
    diagonal = vector(data, f.ARMATURE if which == BARE else f.ADDED_INERTIA)
    h = vector(data, f.TIME_STEP)[0] if which == UNDAMPED else 0.0
    articulate(
        parent, v_index, columns, inertia, diagonal, (h, vector(data, f.DAMPING)),
        matrix(data, f.ARTICULATED_BODY), articulated_motion(data, which)[2],
    )  # fmt: skip


@kernel
def rebuild_inertia(data):
    """Fill the M̂ of the step data where the bodies are placed at its start."""
    if is_deep(data):
        return
    M, inertia, dof_parent = (
        matrix(data, f.MASS_MATRIX), matrix(data, f.INERTIA), integers(data, f.DOF_PARENT),
    )  # fmt: skip
    added, armature = vector(data, f.ADDED_INERTIA), vector(data, f.ARMATURE)
    for k in range(added.shape[0]):
        j = k
        while j >= 0:
            inertia[k, j] = M[k, j]
            j = dof_parent[j]
        inertia[k, k] += added[k] - armature[k]


@kernel
def factor_inertia(data):
    """Fill the factor of M̂."""
    if is_deep(data):
        fill_deep_factor(data, IMPLICIT)
    else:
        factor_formed(data, matrix(data, f.INERTIA))


@kernel
def factor_bare_inertia(data):
    """Fill the factor of M in place of that of M̂."""
    if is_deep(data):
        fill_deep_factor(data, BARE)
    else:
        factor_formed(data, matrix(data, f.MASS_MATRIX))


@kernel
def factor_formed(data, M):
    """Fill the factor of a matrix in the pattern of the tree."""
    factor, tree = matrix(data, f.FACTOR), tree_of(data)
    for k in range(tree[0].shape[0]):
        j = k
        while j >= 0:
            factor[k, j] = M[k, j]
            j = tree[0][j]
    factorise(factor, tree)


@kernel
def factor_undamped_inertia(data):
    """Fill the factor of M̂ − h D."""
    if is_deep(data):
        fill_deep_factor(data, UNDAMPED)
        return
    tree, inertia, factor = tree_of(data), matrix(data, f.INERTIA), matrix(data, f.UNDAMPED_FACTOR)
    damping, h = vector(data, f.DAMPING), vector(data, f.TIME_STEP)[0]
    for k in range(damping.shape[0]):
        j = tree[0][k]
        while j >= 0:
            factor[k, j] = inertia[k, j]
            j = tree[0][j]
        factor[k, k] = inertia[k, k] - h * damping[k]
    factorise(factor, tree)


@kernel
def fill_inertia_diagonal(data, out):
    """Fill the diagonal of M̂ (nv,)."""
    if is_deep(data):
        added, armature = vector(data, f.ADDED_INERTIA), vector(data, f.ARMATURE)
        diagonal = vector(data, f.MASS_DIAGONAL)
        for k in range(out.shape[0]):
            out[k] = diagonal[k] + (added[k] - armature[k])
        return
    inertia = matrix(data, f.INERTIA)
    for k in range(out.shape[0]):
        out[k] = inertia[k, k]


# --- Products and solves.


@kernel
def solve_inertia(data, which, x):
    """Overwrite x (nv,) with M̂⁻¹ x, or (M̂ − h D)⁻¹ x."""
    if is_deep(data):
        task = integers(data, f.DEEP_TASK)
        task[WHICH], task[ADDRESS] = which, int(x.ctypes.data)
        solve_deep(data)
        return
    solve(matrix(data, f.UNDAMPED_FACTOR if which == UNDAMPED else f.FACTOR), tree_of(data), x)


@stage_on_demand
def solve_deep(data):
    """Solve for the vector in `deep_task`."""
    task = integers(data, f.DEEP_TASK)
    motion = articulated_motion(data, task[WHICH])
    x = numbers_at(task[ADDRESS], motion[0].shape[0])
    solve_articulated(motion, matrix(data, f.ARTICULATED_FORCE), x)


@kernel
def row_products(data, jacobian_transposed, which, n):
    """Fill G = J M̂⁻¹ Jᵀ of the `n` problem rows, or with M̂ − h D."""
    if is_deep(data):
        task = integers(data, f.DEEP_TASK)
        task[WHICH], task[ADDRESS] = which, int(jacobian_transposed.ctypes.data)
        task[COLUMNS], task[ROWS] = jacobian_transposed.shape[1], n
        row_products_deep(data)
        return
    # Y = L⁻ᵀ Jᵀ along the branches of the tree, G = Yᵀ Y
    delassus(
        jacobian_transposed,
        matrix(data, f.UNDAMPED_FACTOR if which == UNDAMPED else f.FACTOR), tree_of(data),
        integers(data, f.ROW_OF), integers(data, f.ROW_LEAF), n, row_response(data, n),
        square(data, f.DELASSUS, n),
    )  # fmt: skip


@stage_on_demand
def row_products_deep(data):
    """Fill G of the problem in `deep_task`."""
    task, Y = integers(data, f.DEEP_TASK), vector(data, f.ROW_RESPONSE)
    n, columns, motion = task[ROWS], task[COLUMNS], articulated_motion(data, task[WHICH])
    row_leaf = integers(data, f.ROW_LEAF)
    half_solves(
        motion, numbers_at(task[ADDRESS], columns * motion[0].shape[0]), columns,
        (integers(data, f.ROW_OF), row_leaf, n), matrix(data, f.ARTICULATED_FORCE), Y,
    )  # fmt: skip
    products(motion[0], row_leaf, n, Y, square(data, f.DELASSUS, n))


# --- Half solves x = L⁻ᵀ b with M̂ = Lᵀ D L of a formed matrix, after `row_products`.


@kernel
def begin_solve(data, x):
    """Overwrite b (nv,) with x = L⁻ᵀ b."""
    solve_transposed(matrix(data, f.FACTOR), tree_of(data), x)


@kernel
def end_solve(data, x):
    """Overwrite x (nv,) with M̂⁻¹ b = L⁻¹ D⁻¹ x."""
    solve_factor(matrix(data, f.FACTOR), tree_of(data), x)


@kernel
def solved_rows(data, n):
    """Return what `row_products` has left of `n` rows: factor, tree, their last dofs and Y."""
    return (
        matrix(data, f.FACTOR), tree_of(data), integers(data, f.ROW_LEAF), row_response(data, n),
    )  # fmt: skip


@kernel
def fill_delassus_diagonal(data, n, first):
    """Fill the diagonal of G = J M̂⁻¹ Jᵀ of the `first` of `n` problem rows, of a formed M̂."""
    delassus_diagonal(
        matrix(data, f.JACOBIAN_TRANSPOSED), matrix(data, f.FACTOR), tree_of(data),
        integers(data, f.ROW_OF), integers(data, f.ROW_LEAF), first, row_response(data, first),
        square(data, f.DELASSUS, n),
    )  # fmt: skip


@kernel
def row_response(data, n):
    """Return room for Y = L⁻ᵀ Jᵀ, shape (nv, n)."""
    return front(data, f.ROW_RESPONSE, integers(data, f.DOF_PARENT).shape[0], n)


@kernel
def multiply_inertia(data, x):
    """Overwrite x (nv,) with M̂ x; the field `undamping` is scratch."""
    copy, dof_parent = vector(data, f.UNDAMPING), integers(data, f.DOF_PARENT)
    for k in range(x.shape[0]):
        copy[k] = x[k]
    if is_deep(data):
        task = integers(data, f.DEEP_TASK)
        task[ADDRESS] = int(x.ctypes.data)
        multiply_deep(data)
        return
    inertia = matrix(data, f.INERTIA)
    for k in range(x.shape[0]):
        x[k] = inertia[k, k] * copy[k]
    for k in range(x.shape[0]):
        j = dof_parent[k]
        while j >= 0:
            x[k] += inertia[k, j] * copy[j]
            x[j] += inertia[k, j] * copy[k]
            j = dof_parent[j]


@stage_on_demand
def multiply_deep(data):
    """Write M̂ times `undamping` to the vector in `deep_task`."""
    x = vector(data, f.UNDAMPING)
    out = numbers_at(integers(data, f.DEEP_TASK)[ADDRESS], x.shape[0])
    inertia_product(
        bodies_of(data), vector(data, f.ADDED_INERTIA), x, matrix(data, f.BODY_WRENCH), out
    )


@kernel
def form_inertia(data, M):
    """Fill the lower triangle of M̂ of a deep tree, (nv, nv)."""
    tree_inertia(
        bodies_of(data), integers(data, f.DOF_PARENT), matrix(data, f.COMPOSITE),
        vector(data, f.ADDED_INERTIA), 0, M,
    )  # fmt: skip
