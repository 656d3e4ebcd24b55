"""Rigid-body dynamics in world axes: kinematics, mass matrix, bias forces, energy (theory 4.1).

    forward_kinematics   poses of the bodies, twists of unit joint speed (columns of the Jacobian)
    world_inertia        inertias of the bodies about the origin
    mass_matrix          composite rigid bodies (CRBA), [Featherstone 2008] section 6.2
    bias_forces          recursive Newton-Euler (RNEA) with v̇ = 0, section 5.3
    PinocchioTerms       the same by Pinocchio, for joints that the kernels do not support

All quantities are in world axes about one reference point, the origin; twists are (linear at the
origin, angular). In these coordinates the passes through the tree need no transforms: velocities,
forces and inertias of a parent and its child add.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import real_array
from contact_sim.dynamics._integration import pinocchio_increment
from contact_sim.dynamics._tree import (
    CONTINUOUS,
    FIXED,
    FREE_FLYER,
    HELICAL,
    PLANAR,
    PRISMATIC,
    REVOLUTE,
)
from contact_sim.dynamics._vectors import (
    ZERO,
    add,
    cross,
    dot,
    inertia_times,
    put,
    quaternion_axes,
    rotated,
    scaled,
    sub,
    turned,
    vec,
)
from contact_sim.errors import InvalidInput, shown
from contact_sim.robot._trees import data_of
from contact_sim.solvers._jit import kernel


@kernel
def forward_kinematics(kind, parent, q_index, v_index, placement, q, origin, pose, columns):
    """Fill placements in world, twists of unit joint speeds, and the point that they are about.

    The first five arguments are arrays of the `Tree`. `pose` is the rotation column by column,
    then the position [m], (nb, 12); `columns` the twist of the bodies behind a dof per unit of its
    speed, (nv, 6); `origin` a point of the robot [m], so that no digits are lost far from the
    world's origin.
    """
    place_bodies(kind, parent, q_index, placement, q, pose)
    # the origin is that of the first body, or of the one that its prismatic chain leads to
    last = kind.shape[0] - 1
    j = min(1, last)
    while j < last and (kind[j] == PRISMATIC or kind[j] == FIXED) and parent[j + 1] == j:
        j += 1
    put(origin, 0, vec(pose[j], 9))
    fill_columns(kind, v_index, placement, pose, origin, columns)


@kernel
def place_bodies(kind, parent, q_index, placement, q, pose):
    """Fill `pose`; the arguments are those of `forward_kinematics`."""
    put(pose[0], 0, (1.0, 0.0, 0.0))
    put(pose[0], 3, (0.0, 1.0, 0.0))
    put(pose[0], 6, (0.0, 0.0, 1.0))
    put(pose[0], 9, ZERO)
    for j in range(1, kind.shape[0]):
        P, T = pose[parent[j]], placement[j]
        # frame of the joint at q = 0: pose of the parent times `placement`
        px, py, pz = vec(P, 0), vec(P, 3), vec(P, 6)
        x = rotated(px, py, pz, vec(T, 0))
        y = rotated(px, py, pz, vec(T, 3))
        z = rotated(px, py, pz, vec(T, 6))
        p = add(vec(P, 9), rotated(px, py, pz, vec(T, 9)))
        # motion of the joint; quaternions turn the three axes
        i, what = q_index[j], kind[j]
        if what == REVOLUTE:
            x, y = turned(np.cos(q[i]), np.sin(q[i]), x, y)
        elif what == PRISMATIC:
            p = add(p, scaled(q[i], z))
        elif what == CONTINUOUS:
            x, y = turned(q[i], q[i + 1], x, y)
        elif what == HELICAL:
            p = add(p, scaled(T[12] * q[i], z))
            x, y = turned(np.cos(q[i]), np.sin(q[i]), x, y)
        elif what == PLANAR:
            p = add(p, add(scaled(q[i], x), scaled(q[i + 1], y)))
            x, y = turned(q[i + 2], q[i + 3], x, y)
        elif what != FIXED:
            if what == FREE_FLYER:
                p = add(p, rotated(x, y, z, vec(q, i)))
                i += 3
            ex, ey, ez = quaternion_axes(q, i)
            x, y, z = rotated(x, y, z, ex), rotated(x, y, z, ey), rotated(x, y, z, ez)
        R = pose[j]
        put(R, 0, x)
        put(R, 3, y)
        put(R, 6, z)
        put(R, 9, p)


@kernel
def fill_columns(kind, v_index, placement, pose, origin, columns):
    """Fill `columns`; the arguments are those of `forward_kinematics`."""
    o = vec(origin, 0)
    for j in range(1, kind.shape[0]):
        R, k, what = pose[j], v_index[j], kind[j]
        lever, z = sub(vec(R, 9), o), vec(R, 6)
        # one axis, z; below: free flyer, planar and spherical joints
        if what in (REVOLUTE, CONTINUOUS):
            put(columns[k], 0, cross(lever, z))
            put(columns[k], 3, z)
        elif what == PRISMATIC:
            put(columns[k], 0, z)
            put(columns[k], 3, ZERO)
        elif what == HELICAL:
            put(columns[k], 0, add(cross(lever, z), scaled(placement[j, 12], z)))
            put(columns[k], 3, z)
        elif what != FIXED:
            x, y = vec(R, 0), vec(R, 3)
            if what == FREE_FLYER:
                fill_slides(x, y, columns[k], columns[k + 1])
                put(columns[k + 2], 0, z)
                put(columns[k + 2], 3, ZERO)
                k += 3
            if what == PLANAR:
                fill_slides(x, y, columns[k], columns[k + 1])
            else:
                put(columns[k], 0, cross(lever, x))
                put(columns[k], 3, x)
                put(columns[k + 1], 0, cross(lever, y))
                put(columns[k + 1], 3, y)
            put(columns[k + 2], 0, cross(lever, z))
            put(columns[k + 2], 3, z)


@kernel
def fill_slides(x, y, first, second):
    """Fill the twists of motions along x and y."""
    put(first, 0, x)
    put(first, 3, ZERO)
    put(second, 0, y)
    put(second, 3, ZERO)


@kernel
def world_inertia(body, pose, origin, inertia):
    """Fill mass [kg], m (c − origin) [kg m] and inertia about the origin [kg m²] of every body.

    World axes, inertia as xx, xy, xz, yy, yz, zz, (nb, 10); the row of the world is zero. `body`
    is `Tree.body`.
    """
    o = vec(origin, 0)
    inertia[0] = 0.0
    for j in range(1, body.shape[0]):
        b, R, out = body[j], pose[j], inertia[j]
        x, y, z = vec(R, 0), vec(R, 3), vec(R, 6)
        # centre of mass from the origin
        m = b[0]
        c = add(sub(vec(R, 9), o), rotated(x, y, z, vec(b, 1)))
        # u, v, w: columns of R I; R I Rᵀ is the inertia in world axes, plus Steiner's terms
        u = rotated(x, y, z, (b[4], b[5], b[6]))
        v = rotated(x, y, z, (b[5], b[7], b[8]))
        w = rotated(x, y, z, (b[6], b[8], b[9]))
        mc = scaled(m, c)
        xx, yy, zz = mc[0] * c[0], mc[1] * c[1], mc[2] * c[2]
        out[0] = m
        put(out, 1, mc)
        out[4] = u[0] * x[0] + v[0] * y[0] + w[0] * z[0] + yy + zz
        out[5] = u[0] * x[1] + v[0] * y[1] + w[0] * z[1] - mc[0] * c[1]
        out[6] = u[0] * x[2] + v[0] * y[2] + w[0] * z[2] - mc[0] * c[2]
        out[7] = u[1] * x[1] + v[1] * y[1] + w[1] * z[1] + xx + zz
        out[8] = u[1] * x[2] + v[1] * y[2] + w[1] * z[2] - mc[1] * c[2]
        out[9] = u[2] * x[2] + v[2] * y[2] + w[2] * z[2] + xx + yy


@kernel
def mass_matrix(parent, v_index, dof_parent, columns, inertia, armature, composite, M):
    """Fill the lower triangle of M(q) along the tree; nothing else of M is touched.

    Column k of M is the force, along the dofs before k, that gives dof k unit acceleration: the
    momentum of everything behind k at unit speed of k. Where the first body flies freely, its
    position is the origin: its columns are its axes, linear for three dofs, angular for three.
    `composite` becomes the inertia of every body with all behind it, (nb, 10).
    """
    base = 6 if parent.shape[0] > 1 and v_index[2] == 6 else 0  # dofs of a free-flying base
    for j in range(parent.shape[0]):
        for e in range(10):
            composite[j, e] = inertia[j, e]
    # backward pass: I_c of a body is complete when its children have been added
    for j in range(parent.shape[0] - 1, 0, -1):
        C, P = composite[j], composite[parent[j]]
        for k in range(v_index[j], v_index[j + 1]):
            # (f, n) = I_c S_k: linear momentum, and angular momentum about the origin
            S = columns[k]
            mc, linear, angular = vec(C, 1), vec(S, 0), vec(S, 3)
            f = sub(scaled(C[0], linear), cross(mc, angular))
            n = add(inertia_times(C, angular), cross(mc, linear))
            row = M[k]
            # M_ki = S_i · (f, n) along the branch
            row[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n) + armature[k]
            i = dof_parent[k]
            while i >= base:
                S = columns[i]
                row[i] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
                i = dof_parent[i]
            # the free-flying base: the axes of its columns need one product each
            if i >= 0:
                for i in range(min(k, 3)):
                    row[i] = dot(vec(columns[i], 0), f)
                for i in range(3, min(k, 6)):
                    row[i] = dot(vec(columns[i], 3), n)
        # add the composite inertia to the parent
        for e in range(10):
            P[e] += C[e]


@kernel
def bias_forces(parent, v_index, columns, inertia, v, gravity, twist, bias, wrench, nle):
    """Fill C(q, v) v + g(q) in `nle`, and twists and accelerations of the bodies on the way.

    A twist is (ν, ω): the velocity ν of the body's point that is at the origin now, and its
    angular velocity. `bias` is the rate (ν̇, ω̇) of that at v̇ = 0, the origin staying where it is
    in the world (so ν̇ is not the acceleration of a material point), and with gravity taken as an
    acceleration of the world: its linear part is ν̇ − g. `wrench` is the force and the moment
    about the origin that move a body and all behind it with `bias`. All (nb, 6), world axes.
    """
    # the world: at rest, accelerated by −g
    put(twist[0], 0, ZERO)
    put(twist[0], 3, ZERO)
    put(bias[0], 0, scaled(-1.0, vec(gravity, 0)))
    put(bias[0], 3, ZERO)
    put(wrench[0], 0, ZERO)
    put(wrench[0], 3, ZERO)
    # forward pass: twists, accelerations, and the wrench that moves each body
    for j in range(1, parent.shape[0]):
        V, A = twist[parent[j]], bias[parent[j]]
        linear, angular = vec(V, 0), vec(V, 3)
        first = v_index[j]  # every joint moves
        # joint twist S v
        S = columns[first]
        joint_linear, joint_angular = scaled(v[first], vec(S, 0)), scaled(v[first], vec(S, 3))
        for k in range(first + 1, v_index[j + 1]):
            S = columns[k]
            joint_linear = add(joint_linear, scaled(v[k], vec(S, 0)))
            joint_angular = add(joint_angular, scaled(v[k], vec(S, 3)))
        # acceleration: the axes of the joint move with the parent, Ṡ v = twist × S v
        drift = add(cross(angular, joint_linear), cross(linear, joint_angular))
        a_linear = add(vec(A, 0), drift)
        a_angular = add(vec(A, 3), cross(angular, joint_angular))
        linear, angular = add(linear, joint_linear), add(angular, joint_angular)
        put(twist[j], 0, linear)
        put(twist[j], 3, angular)
        put(bias[j], 0, a_linear)
        put(bias[j], 3, a_angular)
        # Newton and Euler about the origin, a the acceleration of the material point there:
        # f = m a + α × m c + ω × (ω × m c),   n = m c × a + I α + ω × I ω
        own, mc = inertia[j], vec(inertia[j], 1)
        a = add(a_linear, cross(angular, linear))
        f = add(scaled(own[0], a), cross(a_angular, mc))
        n = add(cross(mc, a), inertia_times(own, a_angular))
        put(wrench[j], 0, add(f, cross(angular, cross(angular, mc))))
        put(wrench[j], 3, add(n, cross(angular, inertia_times(own, angular))))
    # backward pass: nle_k = S_k · wrench; the wrench goes on to the parent
    for j in range(parent.shape[0] - 1, 0, -1):
        F, P = wrench[j], wrench[parent[j]]
        f, n = vec(F, 0), vec(F, 3)
        for k in range(v_index[j], v_index[j + 1]):
            S = columns[k]
            nle[k] = dot(vec(S, 0), f) + dot(vec(S, 3), n)
        put(P, 0, add(vec(P, 0), f))
        put(P, 3, add(vec(P, 3), n))


@kernel
def point_bias(twist, bias, gravity, r):
    """Return J̇ v of a point of a body: its acceleration [m/s²] at v̇ = 0; r from the origin."""
    # ν̇ + ω̇ × r + ω × (ν + ω × r), `twist` and `bias` as in `bias_forces`
    angular = vec(twist, 3)
    velocity = add(vec(twist, 0), cross(angular, r))
    fixed = add(add(vec(bias, 0), vec(gravity, 0)), cross(vec(bias, 3), r))
    return add(fixed, cross(angular, velocity))


# --- Energy and momentum.


@kernel
def kinetic_energy(M, dof_parent, v):
    """Return ½ vᵀ M v [J], armature included, from the lower triangle of M along the tree."""
    energy = 0.0
    for k in range(v.shape[0]):
        row, momentum = M[k], 0.5 * M[k, k] * v[k]
        i = dof_parent[k]
        while i >= 0:
            momentum += row[i] * v[i]
            i = dof_parent[i]
        energy += v[k] * momentum
    return energy


@kernel
def mass_moment(inertia, origin, out):
    """Fill Σ m c of all bodies [kg m], c in world; the potential energy is −g · Σ m c."""
    mass, moment = 0.0, ZERO
    for j in range(1, inertia.shape[0]):
        mass += inertia[j, 0]
        moment = add(moment, vec(inertia[j], 1))
    put(out, 0, add(moment, scaled(mass, vec(origin, 0))))


def mechanical_energy(model: pin.Model, q: Array, v: Array, gravity: Array) -> float:
    """Return T + U [J] at q (nq,), v (nv,): T with armature, U = −m g·c, c the centre of mass."""
    data = data_of(model)
    M = pin.crba(model, data, q)  # pin.computeKineticEnergy forgets armature on unaligned axes
    kinetic = 0.5 * v @ (np.triu(M) + np.triu(M, 1).T) @ v
    weight = pin.computeTotalMass(model) * gravity
    return float(kinetic - weight @ pin.centerOfMass(model, data, q))


def gravity_vector(gravity: float | ArrayLike) -> Array:
    """Return gravity as a vector in world [m/s²], shape (3,); a number g means (0, 0, −g)."""
    value = real_array('gravity', gravity)
    if value.shape == ():
        value = np.array([0.0, 0.0, -float(value)])
    if value.shape != (3,) or not np.isfinite(value).all():
        raise InvalidInput(
            f'gravity = {shown(gravity)} m/s²: expected a finite number or 3 of them'
        )
    return value


# --- Robots with joints that the kernels do not support. Slow: all is copied before every step.


class PinocchioTerms:
    """Fills the fields of a workspace that otherwise the kernels of dynamics/ fill, by Pinocchio.

    The reference point of twists and inertias is the origin of the world.
    """

    def __init__(self, workspace: Any) -> None:
        self._work, self._tree = workspace, workspace.tree
        self._model = workspace.model.copy()
        self._data = data_of(self._model)

    def update_configuration(self, q: Array) -> None:
        """Fill `mass_matrix`, `columns`, `pose` and `world_inertia` at q, shape (nq,)."""
        model, data, work = self._model, self._data, self._work
        pin.crba(model, data, q)
        pin.computeJointJacobians(model, data, q)
        work.mass_matrix[:] = np.tril(data.M.T)
        work.columns[:] = data.J.T
        work.origin[:] = 0.0
        work.world_inertia[:] = 0.0
        for joint, placement in enumerate(data.oMi):
            body = self._tree.body_of_joint[joint]
            axes = placement.rotation @ self._tree.axes[body]
            work.pose[body, :9] = axes.ravel(order='F')
            work.pose[body, 9:] = placement.translation
            if joint:
                inertia, row = placement.act(model.inertias[joint]), work.world_inertia[body]
                row[0] += inertia.mass
                row[1:4] += inertia.mass * inertia.lever
                row[4:] += inertia.matrix()[3:, 3:][np.triu_indices(3)]

    def update_velocity(self, q: Array, v: Array) -> None:
        """Fill `nonlinear_effects`, `twist` and `bias_acceleration` at q (nq,), v (nv,)."""
        model, data, work = self._model, self._data, self._work
        model.gravity.linear = work.data.gravity
        work.data.nonlinear_effects[:] = pin.nonLinearEffects(model, data, q, v)
        for joint, placement in enumerate(data.oMi):
            body = self._tree.body_of_joint[joint]
            work.twist[body] = placement.act(data.v[joint]).vector
            work.bias_acceleration[body] = placement.act(data.a_gf[joint]).vector

    def moved(self, q: Array, displacement: Array) -> Array:
        """Return q ⊕ displacement, free flyers displaced along their axes, shape (nq,)."""
        increment = np.zeros(self._model.nv)
        pinocchio_increment(displacement, self._work.free_flyer_v, increment)
        return np.asarray(pin.integrate(self._model, q, increment))
