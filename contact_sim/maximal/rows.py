"""Constraint rows of joints between free bodies, from two primitives (theory 2.14).

    point    h = d · (x_c − x_p)      the joint's origin on child and parent; d is fixed in the
                                      world, or in the parent where the joint slides
    angle    h = s_c · s_p            vectors fixed in child and parent that stay perpendicular

ḣ = J v over the velocities (ṗ, ω) of parent and child; ḧ = J v̇ + J̇ v.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from contact_sim.maximal.bodies import Array, BodyState, cross, turned

Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class JointRows:
    """The rows of all joints: those of points first, then those of angles.

    Joint j is between body j, its child, and body parent[j]; nb bodies, the world included.
    """

    parent: Index
    """Shape (nb,)."""
    parent_anchor: Array
    """Origin of each joint from the parent's centre of mass, parent's axes [m], shape (nb, 3)."""
    child_anchor: Array
    """The same from the child's centre of mass, child's axes [m], shape (nb, 3)."""
    point_joint: Index
    """Joint of each point row, shape (n,)."""
    direction: Array
    """d, in world or parent's axes, shape (n, 3)."""
    slides: NDArray[np.bool_]
    """Whether d is fixed in the parent, shape (n,)."""
    angle_joint: Index
    """Joint of each angle row, shape (a,)."""
    of_parent: Array
    """s_p in the parent's axes, shape (a, 3)."""
    of_child: Array
    """s_c in the child's axes, shape (a, 3)."""

    @cached_property
    def joint(self) -> Index:
        """Joint of each row, shape (m,), m = n + a."""
        return np.concatenate([self.point_joint, self.angle_joint])

    @cached_property
    def structure(self) -> NDArray[np.bool_]:
        """Which entries of J may differ from 0, shape (m, 2, 6): parent, child."""
        found = np.zeros((len(self.joint), 2, 6), dtype=bool)
        n = len(self.point_joint)
        along = (self.direction != 0.0) | self.slides[:, None]
        across = np.stack([along[:, [1, 2]].any(axis=1), along[:, [2, 0]].any(axis=1),
                           along[:, [0, 1]].any(axis=1)], axis=1)  # fmt: skip
        found[:n, :, :3], found[:n, :, 3:] = along[:, None], across[:, None]
        found[n:, :, 3:] = True
        found[:, 0] &= (self.parent[self.joint] > 0)[:, None]  # the world does not move
        return found

    def at(self, state: BodyState) -> PlacedRows:
        """Return the rows of bodies at their places."""
        return PlacedRows(self, state)


class PlacedRows:
    """Rows at a state: their errors, J, and what the velocities add to the accelerations."""

    def __init__(self, rows: JointRows, state: BodyState) -> None:
        self._rows, parent = rows, rows.parent
        R_parent = state.rotation[parent]
        self.parent_lever = turned(R_parent, rows.parent_anchor)
        """From the parent's centre of mass to the joint, world axes [m], shape (nb, 3)."""
        self.child_lever = turned(state.rotation, rows.child_anchor)
        """The same from the child's, shape (nb, 3)."""
        self._apart = (
            state.position + self.child_lever - state.position[parent] - self.parent_lever
        )
        k = rows.point_joint
        own = turned(R_parent[k], rows.direction)
        self._d = np.where(rows.slides[:, None], own, rows.direction)
        self._s_parent = turned(R_parent[rows.angle_joint], rows.of_parent)
        self._s_child = turned(state.rotation[rows.angle_joint], rows.of_child)

    @cached_property
    def error(self) -> Array:
        """Errors h: distances [m], then cosines, shape (m,)."""
        points = (self._d * self._apart[self._rows.point_joint]).sum(axis=1)
        return np.concatenate([points, (self._s_parent * self._s_child).sum(axis=1)])

    @cached_property
    def jacobian(self) -> Array:
        """J over the velocities of parent and child of each row, shape (m, 2, 6)."""
        k, n, d = self._rows.point_joint, len(self._rows.point_joint), self._d
        J = np.zeros((len(self._rows.joint), 2, 6))
        # ḋ · (x_c − x_p) = (ω_p × d) · (x_c − x_p)
        reach = self.parent_lever[k] + self._rows.slides[:, None] * self._apart[k]
        J[:n, 0, :3], J[:n, 0, 3:] = -d, cross(d, reach)
        J[:n, 1, :3], J[:n, 1, 3:] = d, cross(self.child_lever[k], d)
        J[n:, 1, 3:] = cross(self._s_child, self._s_parent)
        J[n:, 0, 3:] = -J[n:, 1, 3:]
        return J

    def rate(self, velocity: Array) -> Array:
        """Return ḣ = J v for velocities (nb, 6), shape (m,)."""
        joint, parent = self._rows.joint, self._rows.parent
        both = np.stack([velocity[parent[joint]], velocity[joint]], axis=1)
        return np.asarray((self.jacobian * both).sum(axis=(1, 2)))

    def drift(self, velocity: Array) -> Array:
        """Return J̇ v, ḧ while v̇ = 0, for velocities (nb, 6), shape (m,)."""
        rows, parent = self._rows, self._rows.parent
        v, w = velocity[:, :3], velocity[:, 3:]
        swing_child = cross(w, self.child_lever)
        swing_parent = cross(w[parent], self.parent_lever)
        apart_rate = v + swing_child - v[parent] - swing_parent
        apart_acceleration = cross(w, swing_child) - cross(w[parent], swing_parent)
        k = rows.point_joint
        w_d = np.where(rows.slides[:, None], w[parent[k]], 0.0)
        d_rate = cross(w_d, self._d)
        points = (
            self._d * apart_acceleration[k]
            + 2.0 * d_rate * apart_rate[k]
            + cross(w_d, d_rate) * self._apart[k]
        ).sum(axis=1)
        a = rows.angle_joint
        w_p, w_c = w[parent[a]], w[a]
        normal_rate = cross(cross(w_c, self._s_child), self._s_parent) + cross(
            self._s_child, cross(w_p, self._s_parent)
        )
        return np.concatenate([points, ((w_c - w_p) * normal_rate).sum(axis=1)])

    def wrenches(self, multipliers: Array) -> Array:
        """Return force and torque that the joints exert on their children, shape (nb, 6).

        About the child's centre of mass, world axes [N, N m]; the parent feels the opposite force.
        """
        found = np.zeros((len(self._rows.parent), 6))
        np.add.at(found, self._rows.joint, multipliers[:, None] * self.jacobian[:, 1])
        return found
