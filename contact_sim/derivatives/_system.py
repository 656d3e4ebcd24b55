"""The linearised step: R_z dz = −R_θ dθ for v⁺ and the impulses, on the active set.

    M̂ dv⁺ − Jᵀ dλ = R dθ                                          momentum
    A dλ + B du⁺ + C du⁻ + c dφ = 0,   du⁺ = J dv⁺ + ∂(J v⁺)/∂q dq  the law, row by row

so with X = M̂⁻¹ R and G = J M̂⁻¹ Jᵀ

    (A + B G) dλ = −(B (J X + ∂(J v⁺)) + C du⁻ + c dφ) dθ,   dv⁺ = X dθ + M̂⁻¹ Jᵀ dλ

Where contacts are redundant, A + B G is singular, and dλ is the solution of least norm. Interval
rows that stay at a bound, as those of dry friction in joints that move, have dλ = 0: left out.

[Le Lidec et al. 2024] End-to-end and highly-efficient differentiable simulation for robotics.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import front, integers, matrix, square, vector
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._inverse_dynamics import (
    fill_axes_motion,
    fill_inverse_dynamics,
    fill_motion,
    fill_wrenches,
)
from contact_sim.derivatives._step_map import map_columns
from contact_sim.dynamics._rigid_body import forward_kinematics, world_inertia
from contact_sim.dynamics._vectors import vec
from contact_sim.solvers._dense import eliminate_right_sides
from contact_sim.solvers._jit import kernel
from contact_sim.step._contact_rows import tree_of

NO_GRAVITY = (0.0, 0.0, 0.0)
PIVOT = 1e-10
"""Pivot of a system, whose rows have the largest entry 1, below which it counts as singular."""


@kernel
def fill_dynamics(data, linear):
    """Fill the kinematics at the start, and h ∂rnea/∂q and h ∂rnea/∂v with sign, in `dq`, `dv`."""
    parent, v_index = integers(data, f.PARENT), integers(data, f.V_INDEX)
    columns, pose = matrix(linear, d.D_COLUMNS), matrix(linear, d.D_POSE)
    origin, inertia = vector(linear, d.D_ORIGIN), matrix(linear, d.D_INERTIA)
    forward_kinematics(
        integers(data, f.KIND), parent, integers(data, f.Q_INDEX), v_index,
        matrix(data, f.PLACEMENT), vector(data, f.Q_START), origin, pose, columns,
    )  # fmt: skip
    world_inertia(matrix(data, f.BODY), pose, origin, inertia)
    v, v_next = vector(data, f.V_START), vector(data, f.V_NEXT)
    twist, rate, axes = (
        matrix(linear, d.D_TWIST),
        matrix(linear, d.D_RATE),
        matrix(linear, d.D_AXES),
    )
    fill_motion(parent, v_index, columns, v, twist)
    fill_motion(parent, v_index, columns, v_next, matrix(linear, d.D_TWIST_NEXT))
    fill_axes_motion(
        parent, v_index, columns, v, vector(data, f.ACCELERATION), vector(data, f.GRAVITY), twist,
        rate, axes,
    )  # fmt: skip
    wrench, couple = matrix(linear, d.D_WRENCH), matrix(linear, d.D_COUPLE)
    fill_wrenches(inertia, twist, rate, wrench, couple)
    dq, dv = matrix(linear, d.D_DQ), matrix(linear, d.D_DV)
    fill_inverse_dynamics(
        (parent, v_index, integers(data, f.DOF_PARENT)), columns, axes, inertia, wrench, couple,
        dq, dv,
    )  # fmt: skip
    h, given = vector(data, f.TIME_STEP)[0], matrix(linear, d.D_GIVEN_FORCE)
    use_given = integers(linear, d.D_COUNTS)[d.GIVEN] != 0
    pushed, use_pushed = matrix(linear, d.D_PUSHED), integers(linear, d.D_COUNTS)[d.PUSHED] != 0
    for j in range(v.shape[0]):
        for k in range(v.shape[0]):
            dq[j, k] *= -h
            dv[j, k] *= -h
            if use_given:
                dq[j, k] += given[j, k]
            if use_pushed:
                dq[j, k] += pushed[j, k]
    add_inertia_of_start(data, linear, h)
    add_joint_springs(data, dq, dv, h)


@kernel
def add_joint_springs(data, dq, dv, h):
    """Add −h K to `dq`, and take h a K of M̂ out of `dv`: R = M v − h K (q − q₀) + ..."""
    v_index, stiffness = integers(data, f.SPRING_V), vector(data, f.JOINT_STIFFNESS)
    ahead = h * vector(data, f.IMPLICIT_SPRINGS)[0]
    for i in range(v_index.shape[0]):
        k = v_index[i]
        dq[k, k] -= h * stiffness[i]
        dv[k, k] -= h * ahead * stiffness[i]


@kernel
def add_inertia_of_start(data, linear, h):
    """Add M (1 + h ∂(ω × v_lin)/∂v) to `dv`, M without damping but with all else of M̂."""
    inertia, damping, dv = matrix(data, f.INERTIA), vector(data, f.DAMPING), matrix(linear, d.D_DV)
    v, share = vector(data, f.V_START), vector(data, f.DAMPING_INERTIA)[0]
    nv = v.shape[0]
    for j in range(nv):
        for k in range(j):
            dv[j, k] += inertia[j, k]
            dv[k, j] += inertia[j, k]
        dv[j, j] += inertia[j, j] - h * damping[j]
        if share != 0.0:  # the explicit damping b diag(M) v of todorov in its form of 2014
            armature = inertia[j, j] - h * damping[j]
            dv[j, j] -= h * share * armature / (1.0 + share)
    for i in integers(data, f.FREE_FLYER_V):
        linear_v, omega = vec(v, i), vec(v, i + 3)
        for j in range(nv):
            x, y, z = inertia_column(inertia, damping, h, j, i)
            # M (h dω × v_lin + h ω × dv_lin): columns of the cross products
            dv[j, i] += h * (y * omega[2] - z * omega[1])
            dv[j, i + 1] += h * (z * omega[0] - x * omega[2])
            dv[j, i + 2] += h * (x * omega[1] - y * omega[0])
            dv[j, i + 3] += h * (z * linear_v[1] - y * linear_v[2])
            dv[j, i + 4] += h * (x * linear_v[2] - z * linear_v[0])
            dv[j, i + 5] += h * (y * linear_v[0] - x * linear_v[1])


@kernel
def inertia_column(inertia, damping, h, j, i):
    """Return M[j, i], M[j, i + 1], M[j, i + 2] from the lower triangle of M̂."""
    x = inertia[j, i] if j >= i else inertia[i, j]
    y = inertia[j, i + 1] if j >= i + 1 else inertia[i + 1, j]
    z = inertia[j, i + 2] if j >= i + 2 else inertia[i + 2, j]
    drop = h * damping[j]
    return (
        x - (drop if j == i else 0.0), y - (drop if j == i + 1 else 0.0),
        z - (drop if j == i + 2 else 0.0),
    )  # fmt: skip


# --- efforts behind the actuators


@kernel
def fill_effort_slopes(data, slope):
    """Fill ∂effort/∂command, then ∂effort/∂q̇ of the joint, (2, n_joints)."""
    command, effort = vector(data, f.COMMAND), vector(data, f.EFFORT)
    limit, fastest = vector(data, f.EFFORT_LIMIT), vector(data, f.VELOCITY_LIMIT)
    standstill, v = vector(data, f.SATURATION_EFFORT), vector(data, f.V_START)
    delay, decay, joint_v = (
        integers(data, f.DELAY),
        vector(data, f.LAG_DECAY),
        integers(data, f.JOINT_V),
    )
    lags = vector(data, f.LAGGED_EFFORT).shape[0] > 0
    for i in range(effort.shape[0]):
        inside = abs(command[i]) <= limit[i]
        slope[0, i] = 1.0 if delay[i] == 0 and inside else 0.0
        if lags:
            slope[0, i] *= 1.0 - decay[i]
        slope[1, i] = 0.0
        if standstill[i] < np.inf:
            drop = standstill[i] * v[joint_v[i]] / fastest[i]
            low, high = -standstill[i] - drop, standstill[i] - drop
            on_line = (effort[i] == low and low > -limit[i]) or (
                effort[i] == high and high < limit[i]
            )
            if on_line:
                slope[0, i], slope[1, i] = 0.0, -standstill[i] / fastest[i]
            elif high < -limit[i] or low > limit[i]:
                slope[0, i] = 0.0
        elif effort[i] == 0.0 and abs(v[joint_v[i]]) >= fastest[i]:
            slope[0, i] = 0.0


# --- rows that are solved for


@kernel
def list_solved(linear):
    """List the rows whose impulses may change: those of contacts, intervals that are free, others.

    The first are those of contacts, as in the list of all rows; the last are bilateral.
    """
    counts, solved = integers(linear, d.D_COUNTS), integers(linear, d.D_SOLVED)
    on_velocity, on_start = matrix(linear, d.D_ON_VELOCITY), matrix(linear, d.D_ON_START)
    on_gap, on_weight = vector(linear, d.D_ON_GAP), matrix(linear, d.D_ON_WEIGHT)
    s = 0
    for a in range(counts[d.ROWS]):
        free = on_velocity[a, 0] != 0.0 or on_start[a, 0] != 0.0 or on_gap[a] != 0.0
        weighed = on_weight[a, 0] != 0.0 or on_weight[a, 1] != 0.0
        if a < 3 * counts[d.CONTACTS] or free or weighed:
            solved[s] = a
            s += 1
    counts[d.SOLVED] = s


# --- M̂⁻¹ of the right-hand sides


@kernel
def solve_columns(L, tree, X):
    """Overwrite X (nv, m) with M̂⁻¹ X, L the factor of M̂."""
    parent, nv, m = tree[0], X.shape[0], X.shape[1]
    for i in range(nv - 1, -1, -1):
        j = parent[i]
        while j >= 0:
            factor = L[i, j]
            for c in range(m):
                X[j, c] -= factor * X[i, c]
            j = parent[j]
    for i in range(nv):
        inverse = L[i, i]
        for c in range(m):
            X[i, c] *= inverse
        j = parent[i]
        while j >= 0:
            factor = L[i, j]
            for c in range(m):
                X[i, c] -= factor * X[j, c]
            j = parent[j]


@kernel
def fill_response(data, linear):
    """Fill M̂⁻¹ [R, Jᵀ] and J of that, for all inputs and rows."""
    dq, dv, rows = (
        matrix(linear, d.D_DQ),
        matrix(linear, d.D_DV),
        matrix(linear, d.D_ROWS_JACOBIAN),
    )
    slope, joint_v = matrix(linear, d.D_EFFORT_SLOPE), integers(data, f.JOINT_V)
    n, nv, nj = integers(linear, d.D_COUNTS)[d.SOLVED], dq.shape[0], joint_v.shape[0]
    h, m, solved = vector(data, f.TIME_STEP)[0], 2 * nv + nj, integers(linear, d.D_SOLVED)
    X = front(linear, d.D_RIGHT, nv, m + n)
    fill_effort_slopes(data, slope)
    for j in range(nj):
        dv[joint_v[j], joint_v[j]] += h * slope[1, j]
    for k in range(nv):
        for c in range(nv):
            X[k, c], X[k, nv + c] = dq[k, c], dv[k, c]
        for c in range(nj):
            X[k, 2 * nv + c] = 0.0
        for a in range(n):
            X[k, m + a] = rows[solved[a], k]
    for j in range(nj):
        X[joint_v[j], 2 * nv + j] = h * slope[0, j]
    seen = X
    if integers(linear, d.D_COUNTS)[d.UNDAMPED] != 0:
        seen = front(linear, d.D_UNDAMPED, nv, m + n)
        fill_undamped_columns(data, linear, h, X, seen)
    solve_columns(matrix(data, f.FACTOR), tree_of(data), X)
    Y, dofs = front(linear, d.D_RESPONSE, n, m + n), np.empty(nv, np.int64)
    for a in range(n):
        count, row = 0, rows[solved[a]]
        for k in range(nv):
            if row[k] != 0.0:
                dofs[count] = k
                count += 1
        fill_sum(row, dofs[:count], seen, Y[a])


@kernel
def fill_sum(row, dofs, X, out):
    """Fill `out` with Σ_k row[k] X[k] over the dofs k, three at a time."""
    count, m = dofs.shape[0], X.shape[1]
    out[:] = 0.0
    for i in range(0, count - count % 3, 3):
        p, q, r = dofs[i], dofs[i + 1], dofs[i + 2]
        x, y, z = row[p], row[q], row[r]
        for c in range(m):
            out[c] += x * X[p, c] + y * X[q, c] + z * X[r, c]
    for i in range(count - count % 3, count):
        p = dofs[i]
        x = row[p]
        for c in range(m):
            out[c] += x * X[p, c]


@kernel
def fill_undamped_columns(data, linear, h, X, seen):
    """Fill M⁻¹ [R', Jᵀ]: contacts see v' with M (v' − v⁺) = h D (v⁺ − v).

    R' is R − ∂(M x)/∂q for x = v' − v⁺, and R − h D in the columns of v.
    """
    parent, v_index = integers(data, f.PARENT), integers(data, f.V_INDEX)
    columns, inertia = matrix(linear, d.D_COLUMNS), matrix(linear, d.D_INERTIA)
    v_next, v_law, x = vector(data, f.V_NEXT), vector(linear, d.D_V_LAW), vector(data, f.UNDAMPING)
    still, damping = vector(data, f.MOMENTUM), vector(data, f.DAMPING)
    for k in range(x.shape[0]):
        x[k], still[k] = v_law[k] - v_next[k], 0.0
    twist, rate, axes = matrix(data, f.TWIST), matrix(linear, d.D_RATE), matrix(linear, d.D_AXES)
    wrench, couple = matrix(linear, d.D_WRENCH), matrix(linear, d.D_COUPLE)
    world_inertia(
        matrix(data, f.BODY), matrix(linear, d.D_POSE), vector(linear, d.D_ORIGIN), inertia
    )
    fill_motion(parent, v_index, columns, still, twist)
    fill_axes_motion(parent, v_index, columns, still, x, NO_GRAVITY, twist, rate, axes)
    fill_wrenches(inertia, twist, rate, wrench, couple)
    dq = matrix(linear, d.D_DQ_UNDAMPED)
    fill_inverse_dynamics(
        (parent, v_index, integers(data, f.DOF_PARENT)), columns, axes, inertia, wrench, couple,
        dq, matrix(linear, d.D_DV_UNDAMPED),
    )  # fmt: skip
    nv = x.shape[0]
    for k in range(nv):
        for c in range(X.shape[1]):
            seen[k, c] = X[k, c]
        for c in range(nv):
            seen[k, c] -= dq[k, c]
        seen[k, nv + k] -= h * damping[k]
    solve_columns(matrix(data, f.UNDAMPED_FACTOR), tree_of(data), seen)


# --- the law


@kernel
def fill_system(data, linear):
    """Fill A + B G and the right-hand sides of all inputs, rows scaled to the largest entry 1."""
    counts, nv = integers(linear, d.D_COUNTS), matrix(linear, d.D_DQ).shape[0]
    n, contacts, solved = counts[d.SOLVED], counts[d.CONTACTS], integers(linear, d.D_SOLVED)
    m = matrix(linear, d.D_FREE).shape[1]
    W, right = square(linear, d.D_SYSTEM, n), front(linear, d.D_IMPULSE, n, m)
    Y, rows = front(linear, d.D_RESPONSE, n, m + n), matrix(linear, d.D_ROWS_JACOBIAN)
    on_impulse, on_velocity = matrix(linear, d.D_ON_IMPULSE), matrix(linear, d.D_ON_VELOCITY)
    on_start, on_gap = matrix(linear, d.D_ON_START), vector(linear, d.D_ON_GAP)
    nxt, start = matrix(linear, d.D_MOTION_NEXT), matrix(linear, d.D_MOTION_START)
    gap, given = matrix(linear, d.D_GAP_SLOPE), matrix(linear, d.D_GIVEN_BILATERAL)
    weight = matrix(linear, d.D_WEIGHT_SLOPE)
    on_weight = matrix(linear, d.D_ON_WEIGHT)
    for s in range(n):
        # place s of the system is row r; rows of contacts are the first of both
        r = solved[s]
        block = s - s % 3 if s < 3 * contacts else s
        width = 3 if s < 3 * contacts else 1
        right[s, :] = 0.0
        W[s, :] = 0.0
        for b in range(width):
            place, row = block + b, solved[block + b]
            slope, before = on_velocity[r, b], on_start[r, b]
            W[s, place] += on_impulse[r, b]
            if slope != 0.0:
                for a in range(n):
                    W[s, a] += slope * Y[place, m + a]
                for c in range(m):
                    right[s, c] -= slope * Y[place, c]
                for c in range(nv):
                    right[s, c] -= slope * nxt[row, c]
            if before != 0.0:
                for c in range(nv):
                    right[s, c] -= before * start[row, c]
                    right[s, nv + c] -= before * rows[row, c]
        if on_gap[r] != 0.0:
            for c in range(nv):
                right[s, c] -= on_gap[r] * gap[r, c]
        if on_weight[r, 0] != 0.0 or on_weight[r, 1] != 0.0:
            first = solved[block]
            for c in range(nv):
                right[s, c] -= on_weight[r, 0] * weight[first, c]
                right[s, c] -= on_weight[r, 1] * weight[first, nv + c]
        if r >= counts[d.ROWS] - counts[d.BILATERAL]:
            b = r - counts[d.ROWS] + counts[d.BILATERAL]
            for c in range(nv):
                right[s, nv + c] -= given[b, nv + c]
    scale_rows(W, right)


@kernel
def scale_rows(W, right):
    """Divide the rows of a system by their largest entries."""
    n, m = right.shape
    for r in range(n):
        largest = 0.0
        for a in range(n):
            largest = max(largest, abs(W[r, a]))
        if largest > 0.0:
            for a in range(n):
                W[r, a] /= largest
            for c in range(m):
                right[r, c] /= largest


@kernel
def solve_rows(linear):
    """Solve for dλ of all inputs; where the system is singular, note so and leave it."""
    counts = integers(linear, d.D_COUNTS)
    n, m = counts[d.SOLVED], matrix(linear, d.D_FREE).shape[1]
    W = square(linear, d.D_SYSTEM, n)
    right = front(linear, d.D_IMPULSE, n, m)
    counts[d.SINGULAR] = 1 if eliminate_right_sides(W, right, PIVOT) == 0.0 else 0


# --- redundant contacts: complete pivoting, then the solution of least norm
#
#     P W Q = L [U₁₁ U₁₂],   x = Q (x_p − N c),   x_p = (U₁₁⁻¹ y, 0),   N = (−U₁₁⁻¹ U₁₂, 1)
#
# with c = (Nᵀ N)⁻¹ Nᵀ x_p; N spans the impulses that move nothing, and Nᵀ N ≥ 1.


@kernel
def eliminate_completely(A, B, order):
    """Eliminate A (n, n) and B (n, m) with pivots of rows and columns; return the rank."""
    n, m = B.shape
    for k in range(n):
        order[k] = k
    for k in range(n):
        row, column, largest = k, k, 0.0
        for i in range(k, n):
            for j in range(k, n):
                if abs(A[i, j]) > largest:
                    row, column, largest = i, j, abs(A[i, j])
        if largest < PIVOT:
            return k
        if row != k:
            for j in range(n):
                A[k, j], A[row, j] = A[row, j], A[k, j]
            for j in range(m):
                B[k, j], B[row, j] = B[row, j], B[k, j]
        if column != k:
            for i in range(n):
                A[i, k], A[i, column] = A[i, column], A[i, k]
            order[k], order[column] = order[column], order[k]
        for i in range(k + 1, n):
            factor = A[i, k] / A[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    A[i, j] -= factor * A[k, j]
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
    return n


@kernel
def solve_redundant(linear):
    """Solve for the dλ of least norm of a singular system, filled anew."""
    n, m = integers(linear, d.D_COUNTS)[d.SOLVED], matrix(linear, d.D_FREE).shape[1]
    A, B = square(linear, d.D_SYSTEM, n), front(linear, d.D_IMPULSE, n, m)
    order = np.empty(n, np.int64)
    r = eliminate_completely(A, B, order)
    s = n - r
    # U₁₁⁻¹ of the right-hand sides, and of U₁₂ in its place
    for k in range(r - 1, -1, -1):
        inverse = 1.0 / A[k, k]
        for j in range(m):
            B[k, j] *= inverse
        for j in range(r, n):
            A[k, j] *= inverse
        for i in range(k):
            factor = A[i, k]
            if factor != 0.0:
                for j in range(m):
                    B[i, j] -= factor * B[k, j]
                for j in range(r, n):
                    A[i, j] -= factor * A[k, j]
    gram, share = np.zeros((s, s)), np.zeros((s, m))
    for a in range(s):
        gram[a, a] = 1.0
        for k in range(r):
            factor = A[k, r + a]
            for b in range(s):
                gram[a, b] += factor * A[k, r + b]
            for j in range(m):
                share[a, j] -= factor * B[k, j]
    eliminate_right_sides(gram, share)
    found = np.empty((n, m))
    for k in range(n):
        for j in range(m):
            total = B[k, j] if k < r else -share[k - r, j]
            for a in range(s if k < r else 0):
                total += A[k, r + a] * share[a, j]
            found[order[k], j] = total
    for k in range(n):
        for j in range(m):
            B[k, j] = found[k, j]


@kernel
def add_combination(X, k, first, B, out):
    """Add Σ_a X[k, first + a] B[a] to row k of `out`, four rows of B at a time."""
    n, m = B.shape
    for a in range(0, n - n % 4, 4):
        x, y, z, w = X[k, first + a], X[k, first + a + 1], X[k, first + a + 2], X[k, first + a + 3]
        for c in range(m):
            out[k, c] += x * B[a, c] + y * B[a + 1, c] + z * B[a + 2, c] + w * B[a + 3, c]
    for a in range(n - n % 4, n):
        x = X[k, first + a]
        for c in range(m):
            out[k, c] += x * B[a, c]


@kernel
def fill_results(data, linear):
    """Fill dv⁺ from dλ, then the results of the step for all inputs."""
    counts = integers(linear, d.D_COUNTS)
    change = matrix(linear, d.D_FREE)
    n, (nv, m) = counts[d.SOLVED], change.shape
    X, impulse = front(linear, d.D_RIGHT, nv, m + n), front(linear, d.D_IMPULSE, n, m)
    for k in range(nv):
        for c in range(m):
            change[k, c] = X[k, c]
        add_combination(X, k, m, impulse, change)
    configuration = matrix(linear, d.D_CONFIGURATION)
    own = matrix(linear, d.D_OWN)
    own[:] = 0.0
    map_columns(
        data, vector(data, f.TIME_STEP)[0], change, own, nv, matrix(linear, d.D_VELOCITY),
        configuration,
    )  # fmt: skip
