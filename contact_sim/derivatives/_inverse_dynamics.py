"""Derivatives of inverse dynamics, τ = M v̇ + C v + g, with respect to q and v, in world axes.

With the twist V and the acceleration A (gravity as −g of the world) of the parent of a joint, and
the columns S of the joint,

    Ψ̇ = V × S,   Ψ̈ = A × S + V × Ψ̇,   Ṡ = V_own × S

and with I the inertia of a body and all behind it, F the wrench that moves them, and the matrix

    2 B e = 2 (e_ω × p,  K e_ω),   p = m ν + ω × m c,   K = −[ω] Σ − [m c][ν]

added up over these bodies (Σ the second moments ½ tr(J) 1 − J, J the inertia about the origin),
the derivatives are, for joint j of the branch up to joint k and for j before k,

    ∂τ_k/∂q_j = S_k·(2 B_k Ψ̇_j + I_k Ψ̈_j)      ∂τ_j/∂q_k = S_j·(2 B_k Ψ̇_k + I_k Ψ̈_k + S_k ×* F_k)
    ∂τ_k/∂v_j = S_k·(2 B_k S_j + I_k (Ψ̇_j + Ṡ_j))   ∂τ_j/∂v_k = S_j·(2 B_k S_k + I_k (Ψ̇_k + Ṡ_k))

The matrix B of a rigid body about any point acts on the angular part alone, and p and K of bodies
add. Derivatives to q are along the tangent q ⊕ δ, as everywhere.

[Singh et al. 2022] Efficient Analytical Derivatives of Rigid-Body Dynamics Using Spatial Vector
Algebra, section IV, with closed forms of B in world axes.
"""

from __future__ import annotations

from contact_sim.dynamics._vectors import ZERO, add, cross, dot, inertia_times, put, scaled, vec
from contact_sim.solvers._jit import kernel


@kernel
def fill_motion(parent, v_index, columns, v, twist):
    """Fill the twist (ν at the origin, ω) of every body at v (nv,), shape (nb, 6)."""
    put(twist[0], 0, ZERO)
    put(twist[0], 3, ZERO)
    for j in range(1, parent.shape[0]):
        V = twist[parent[j]]
        linear, angular = vec(V, 0), vec(V, 3)
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            linear = add(linear, scaled(v[k], vec(S, 0)))
            angular = add(angular, scaled(v[k], vec(S, 3)))
        put(twist[j], 0, linear)
        put(twist[j], 3, angular)


@kernel
def cross_linear(a, b):
    """Return the linear part of the product of two twists, each (linear, angular)."""
    return add(cross(a[1], b[0]), cross(a[0], b[1]))


@kernel
def fill_axes_motion(parent, v_index, columns, v, acceleration, gravity, twist, rate, axes):
    """Fill accelerations of the bodies, and Ψ̇, Ψ̈ and Ψ̇ + Ṡ of every dof.

    `twist` is that of `fill_motion`, `rate` becomes A (nb, 6), `axes` (nv, 18).
    """
    put(rate[0], 0, scaled(-1.0, vec(gravity, 0)))
    put(rate[0], 3, ZERO)
    for j in range(1, parent.shape[0]):
        V = vec(twist[parent[j]], 0), vec(twist[parent[j]], 3)
        A = vec(rate[parent[j]], 0), vec(rate[parent[j]], 3)
        own = vec(twist[j], 0), vec(twist[j], 3)
        a_linear, a_angular = A
        for k in range(v_index[j], v_index[j + 1]):
            S, row = (vec(columns[k], 0), vec(columns[k], 3)), axes[k]
            p_linear, p_angular = cross_linear(V, S), cross(V[1], S[1])
            first = p_linear, p_angular
            put(row, 0, p_linear)
            put(row, 3, p_angular)
            put(row, 6, add(cross_linear(A, S), cross_linear(V, first)))
            put(row, 9, add(cross(A[1], S[1]), cross(V[1], p_angular)))
            put(row, 12, add(p_linear, cross_linear(own, S)))
            put(row, 15, add(p_angular, cross(own[1], S[1])))
            # A of the body: S v̇ + V × S v
            a_linear = add(a_linear, scaled(acceleration[k], S[0]))
            a_linear = add(a_linear, scaled(v[k], p_linear))
            a_angular = add(a_angular, scaled(acceleration[k], S[1]))
            a_angular = add(a_angular, scaled(v[k], p_angular))
        put(rate[j], 0, a_linear)
        put(rate[j], 3, a_angular)


@kernel
def fill_wrenches(inertia, twist, rate, wrench, couple):
    """Fill the wrench that moves each body (nb, 6), and its p and K by rows (nb, 12)."""
    for j in range(1, inertia.shape[0]):
        own, mc = inertia[j], vec(inertia[j], 1)
        linear, angular = vec(twist[j], 0), vec(twist[j], 3)
        a, alpha = add(vec(rate[j], 0), cross(angular, linear)), vec(rate[j], 3)
        spin = cross(angular, mc)
        f = add(add(scaled(own[0], a), cross(alpha, mc)), cross(angular, spin))
        n = add(cross(mc, a), inertia_times(own, alpha))
        put(wrench[j], 0, f)
        put(wrench[j], 3, add(n, cross(angular, inertia_times(own, angular))))
        put(couple[j], 0, add(scaled(own[0], linear), spin))
        half = 0.5 * (own[4] + own[7] + own[9])
        moments = (
            (half - own[4], -own[5], -own[6]), (-own[5], half - own[7], -own[8]),
            (-own[6], -own[8], half - own[9]),
        )  # fmt: skip
        # columns of K: −ω × Σ e − m c × (ν × e)
        units = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
        for c in range(3):
            one = cross(angular, moments[c])
            two = cross(mc, cross(linear, units[c]))
            for r in range(3):
                couple[j, 3 + 3 * r + c] = -one[r] - two[r]


@kernel
def inertia_of(C, linear, angular):
    """Return I (linear, angular), C a row of `world_inertia`."""
    mc = vec(C, 1)
    f = add(scaled(C[0], linear), cross(angular, mc))
    return f, add(inertia_times(C, angular), cross(mc, linear))


@kernel
def couple_of(B, angular):
    """Return 2 B e of the angular part of e."""
    n = (
        B[3] * angular[0] + B[4] * angular[1] + B[5] * angular[2],
        B[6] * angular[0] + B[7] * angular[1] + B[8] * angular[2],
        B[9] * angular[0] + B[10] * angular[1] + B[11] * angular[2],
    )
    return scaled(2.0, cross(angular, vec(B, 0))), scaled(2.0, n)


@kernel
def couple_row(B, S):
    """Return the angular row 2 Sᵀ B of a column S."""
    x, y = cross(vec(B, 0), vec(S, 0)), vec(S, 3)
    return (
        2.0 * (x[0] + B[3] * y[0] + B[6] * y[1] + B[9] * y[2]),
        2.0 * (x[1] + B[4] * y[0] + B[7] * y[1] + B[10] * y[2]),
        2.0 * (x[2] + B[5] * y[0] + B[8] * y[1] + B[11] * y[2]),
    )


@kernel
def fill_inverse_dynamics(tree, columns, axes, inertia, wrench, couple, dq, dv):
    """Fill ∂τ/∂q and ∂τ/∂v, (nv, nv) each, zero where dofs are on different branches.

    `tree` is (parent, v_index, dof_parent); `inertia` (nb, 10), `wrench` and `couple` of the
    bodies become those of the bodies with all behind them.
    """
    parent, v_index, dof_parent = tree
    dq[:] = 0.0
    dv[:] = 0.0
    for j in range(parent.shape[0] - 1, 0, -1):
        C, F, B, first = inertia[j], wrench[j], couple[j], v_index[j]
        force = vec(F, 0), vec(F, 3)
        for k in range(first, v_index[j + 1]):
            S, row = columns[k], axes[k]
            s = vec(S, 0), vec(S, 3)
            y, b = inertia_of(C, s[0], s[1]), couple_row(B, S)
            # z, w: columns of dofs before k to q_k and v_k
            one, two = couple_of(B, vec(row, 3)), inertia_of(C, vec(row, 6), vec(row, 9))
            z_linear = add(add(one[0], two[0]), cross(s[1], force[0]))
            z_angular = add(add(one[1], two[1]), cross(s[1], force[1]))
            z_angular = add(z_angular, cross(s[0], force[0]))
            one, two = couple_of(B, s[1]), inertia_of(C, vec(row, 12), vec(row, 15))
            w_linear, w_angular = add(one[0], two[0]), add(one[1], two[1])
            i = v_index[j + 1] - 1
            while i >= 0:
                other, moves = columns[i], axes[i]
                own = vec(other, 0), vec(other, 3)
                dq[k, i] = (
                    dot(b, vec(moves, 3)) + dot(y[0], vec(moves, 6)) + dot(y[1], vec(moves, 9))
                )
                dv[k, i] = dot(b, own[1]) + dot(y[0], vec(moves, 12)) + dot(y[1], vec(moves, 15))
                if i < first:
                    dq[i, k] = dot(own[0], z_linear) + dot(own[1], z_angular)
                    dv[i, k] = dot(own[0], w_linear) + dot(own[1], w_angular)
                i = dof_parent[i]
        up = parent[j]
        for e in range(10):
            inertia[up, e] += C[e]
        for e in range(6):
            wrench[up, e] += F[e]
        for e in range(12):
            couple[up, e] += B[e]
