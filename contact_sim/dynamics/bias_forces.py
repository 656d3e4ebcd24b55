"""Coriolis, centrifugal and gravity forces by recursive Newton-Euler with v̇ = 0.

[Featherstone 2008] section 5.3, in world axes about one reference point.
"""

from __future__ import annotations

from contact_sim.dynamics.vectors import ZERO, add, cross, dot, inertia_times, put, scaled, vec
from contact_sim.solvers.jit import kernel


@kernel
def bias_forces(parent, v_index, columns, inertia, v, gravity, twist, bias, wrench, nle):
    """Fill C(q, v) v + g(q), and the twists and accelerations of the bodies on the way.

    A twist is (ν, ω): the velocity ν of the body's point that is at the origin now, and its
    angular velocity. `bias` is the rate (ν̇, ω̇) of that at v̇ = 0, the origin staying where it is
    in the world (so ν̇ is not the acceleration of a material point), and with gravity taken as an
    acceleration of the world: its linear part is ν̇ − g. A point of the body at r from the
    origin then accelerates with ν̇ + ω̇ × r + ω × (ν + ω × r), see `point_bias`.

    Args:
        parent: `Tree.parent`, shape (nb,).
        v_index: `Tree.v_index`, shape (nb + 1,).
        columns: twists of unit joint speeds, of `place`, shape (nv, 6).
        inertia: of the bodies about the origin, of `world_inertia`, shape (nb, 10).
        v: velocity, shape (nv,).
        gravity: in world [m/s²], shape (3,).
        twist: out, ν [m/s] and ω [rad/s] of every body, world axes, shape (nb, 6).
        bias: out, ν̇ − g [m/s²] and ω̇ [rad/s²] at v̇ = 0, world axes, shape (nb, 6).
        wrench: out, force and moment about the origin that moves a body and all behind it with
            `bias`, shape (nb, 6).
        nle: out, nonlinear effects [N, N m], shape (nv,).
    """
    put(twist[0], 0, ZERO)
    put(twist[0], 3, ZERO)
    put(bias[0], 0, scaled(-1.0, vec(gravity, 0)))
    put(bias[0], 3, ZERO)
    put(wrench[0], 0, ZERO)
    put(wrench[0], 3, ZERO)
    for j in range(1, parent.shape[0]):
        V, A = twist[parent[j]], bias[parent[j]]
        linear, angular = vec(V, 0), vec(V, 3)
        first = v_index[j]  # every joint moves
        S = columns[first]
        joint_linear, joint_angular = scaled(v[first], vec(S, 0)), scaled(v[first], vec(S, 3))
        for k in range(first + 1, v_index[j + 1]):
            S = columns[k]
            joint_linear = add(joint_linear, scaled(v[k], vec(S, 0)))
            joint_angular = add(joint_angular, scaled(v[k], vec(S, 3)))
        # the axes of the joint move with the body before it: Ṡ v = twist × S v
        turning = add(cross(angular, joint_linear), cross(linear, joint_angular))
        a_linear = add(vec(A, 0), turning)
        a_angular = add(vec(A, 3), cross(angular, joint_angular))
        linear, angular = add(linear, joint_linear), add(angular, joint_angular)
        put(twist[j], 0, linear)
        put(twist[j], 3, angular)
        put(bias[j], 0, a_linear)
        put(bias[j], 3, a_angular)
        f, n = inertial_wrench(
            inertia[j], angular, add(a_linear, cross(angular, linear)), a_angular
        )
        put(wrench[j], 0, f)
        put(wrench[j], 3, n)
    for j in range(parent.shape[0] - 1, 0, -1):
        F, P = wrench[j], wrench[parent[j]]
        f, n = vec(F, 0), vec(F, 3)
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            nle[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
        put(P, 0, add(vec(P, 0), f))
        put(P, 3, add(vec(P, 3), n))


@kernel
def inertial_wrench(inertia, angular, acceleration, a_angular):
    """Return the force and the moment about the origin that a body's motion takes (Newton-Euler).

        f = m a + α × m c + ω × (ω × m c),   n = m c × a + I α + ω × I ω

    Args:
        inertia: mass, first moment m c, inertia about the origin, shape (10,).
        angular: ω [rad/s], a tuple.
        acceleration: a of the body's material point at the origin [m/s²], a tuple.
        a_angular: α [rad/s²], a tuple.
    """
    mc = vec(inertia, 1)
    f = add(scaled(inertia[0], acceleration), cross(a_angular, mc))
    n = add(cross(mc, acceleration), inertia_times(inertia, a_angular))
    f = add(f, cross(angular, cross(angular, mc)))
    return f, add(n, cross(angular, inertia_times(inertia, angular)))


@kernel
def point_bias(twist, bias, gravity, r):
    """Return J̇ v of a point of a body: its acceleration [m/s²] at v̇ = 0, in world axes.

    Args:
        twist: of the body, of `bias_forces`, shape (6,).
        bias: of the body, of `bias_forces`, shape (6,).
        gravity: the one given to `bias_forces` [m/s²], shape (3,).
        r: the point, from the origin, in world axes [m], a tuple.
    """
    angular = vec(twist, 3)
    velocity = add(vec(twist, 0), cross(angular, r))
    fixed = add(add(vec(bias, 0), vec(gravity, 0)), cross(vec(bias, 3), r))
    return add(fixed, cross(angular, velocity))
