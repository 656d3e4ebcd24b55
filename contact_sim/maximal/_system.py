"""The sparse system of free bodies and constraint rows (theory 2.14).

    [ M  −Jᵀ ] [ v̇ ]   [  f ]
    [ J   0  ] [ λ ] = [ −c ]

Unknowns go from the leaves of the tree to its root, each body before the rows of the joint that
carries it: elimination in this order fills in nothing outside the blocks of M and J, and its cost
is linear in the number of bodies [Baraff 1996].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import block_diag, lu_factor, lu_solve
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from contact_sim._types import Array, IndexArray
from contact_sim.collision._contact_slots import UNUSED_GAP
from contact_sim.collision._surface import tangents
from contact_sim.collision._terrain import Terrain
from contact_sim.contact_models._ncp import Ncp
from contact_sim.errors import InvalidInput
from contact_sim.maximal._mechanism import BodyState, JointRows, Mechanism, cross, turned
from contact_sim.step._contact_rows import gap_bias
from contact_sim.step._problem import ContactProblem, SolverReport
from contact_sim.step._workspace import BAUMGARTE

# --- The system

INERTIA = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), np.ones((3, 3))]]) > 0.0
"""Entries of a body's block of M that may differ from 0."""


class KktSystem:
    """Pattern of the matrix, laid out once, and its factor at the latest state.

    Args:
        rows: of the joints.
        coordinates: which of the six velocities of a body are unknown.
        dense: factor as a full matrix instead, to compare.
    """

    def __init__(self, rows: JointRows, coordinates: tuple[int, ...], dense: bool = False) -> None:
        self._kept, self._dense = np.array(coordinates), dense
        bodies, count = len(rows.parent), len(coordinates)
        self.body_unknown = np.full((bodies, 6), -1, dtype=np.intp)
        """Number of the unknown of each velocity, −1 for none, shape (nb, 6)."""
        self.row_unknown = np.zeros(len(rows.joint), dtype=np.intp)
        """The same of each multiplier, shape (m,)."""
        self.size = 0
        """Number of unknowns."""
        for j in range(bodies - 1, 0, -1):
            self.body_unknown[j, self._kept] = self.size + np.arange(count)
            of_joint = np.flatnonzero(rows.joint == j)
            self.row_unknown[of_joint] = self.size + count + np.arange(len(of_joint))
            self.size += count + len(of_joint)
        self._lay_out(rows)
        self._factor: Any = None

    def _lay_out(self, rows: JointRows) -> None:
        """Find the entries of M and J, and their places in compressed columns."""
        known = self.body_unknown >= 0
        blocks = INERTIA & known[:, :, None] & known[:, None, :]
        side = np.stack([rows.parent[rows.joint], rows.joint], axis=1)
        entries = rows.structure & known[side]
        self._of_inertia, self._of_jacobian = np.flatnonzero(blocks), np.flatnonzero(entries)
        body, a, b = np.nonzero(blocks)
        row, end, k = np.nonzero(entries)
        above, below = self.body_unknown[side[row, end], k], self.row_unknown[row]
        i = np.concatenate([self.body_unknown[body, a], above, below])
        j = np.concatenate([self.body_unknown[body, b], below, above])
        self._order = np.lexsort((i, j))
        starts = np.searchsorted(j[self._order], np.arange(self.size + 1))
        columns = i[self._order].astype(np.int32), starts.astype(np.int32)  # as SuperLU wants
        self.matrix = csc_array((np.zeros(len(i)), *columns), shape=(self.size, self.size))
        """The matrix at the latest state."""

    def factor(self, inertia: Array, jacobian: Array) -> None:
        """Fill and factor the matrix.

        Args:
            inertia: block of M of every body, shape (nb, 6, 6).
            jacobian: J over the velocities of parent and child of each row, shape (m, 2, 6).
        """
        J = jacobian.ravel()[self._of_jacobian]
        values = np.concatenate([inertia.ravel()[self._of_inertia], -J, J])
        self.matrix.data[:] = values[self._order]
        try:
            if self._dense:
                self._factor = lu_factor(self.matrix.toarray(), check_finite=False)
            else:
                self._factor = splu(self.matrix, permc_spec='NATURAL')
        except RuntimeError as error:
            raise InvalidInput(
                'maximal coordinates: M and J leave motion or joint forces undetermined; expected '
                'bodies with mass and inertia wherever a joint can move them alone'
            ) from error

    def solve(self, force: Array, right_side: Array) -> tuple[Array, Array]:
        """Return accelerations (..., nb, 6) and multipliers (..., m) of the factored system.

        Args:
            force: on the bodies, shape (..., nb, 6).
            right_side: −c, shape (..., m).
        """
        right = np.zeros((*force.shape[:-2], self.size))
        right[..., self.body_unknown[1:, self._kept]] = force[..., 1:, self._kept]
        right[..., self.row_unknown] = right_side
        if self._dense:
            solution = lu_solve(self._factor, right.T, check_finite=False).T
        else:
            solution = self._factor.solve(np.ascontiguousarray(right.T)).T
        acceleration = np.zeros(force.shape)
        unknown = self.body_unknown[1:, self._kept]
        acceleration[..., 1:, self._kept] = solution[..., unknown]
        return acceleration, solution[..., self.row_unknown]


# --- Contact of spheres on free bodies with the ground
#
#     G = J_c K⁻¹ J_cᵀ,   u_f = J_c v_f
#
# with K⁻¹ f the accelerations of the system under forces f: joints answer contact forces at once.
# The contact problem is that of `Simulator` (theory 0, 2.11).

Response = Callable[[Array], tuple[Array, Array]]
"""Forces on the bodies (n, nb, 6) → accelerations (n, nb, 6) and multipliers (n, m)."""


@dataclass(frozen=True, eq=False)
class SphereContacts:
    """The contacts that spheres may have, nc of them."""

    body: IndexArray
    """Shape (nc,)."""
    gap: Array
    """Signed distance [m], shape (nc,)."""
    jacobian: Array
    """Velocity of the contact point, rows t1, t2, n, per velocity of its body, (nc, 3, 6)."""

    def wrenches(self, bodies: int) -> Array:
        """Return what unit forces along each row exert on all bodies, shape (3 nc, nb, 6)."""
        wrench = np.zeros((3 * len(self.body), bodies, 6))
        wrench[np.arange(len(wrench)), np.repeat(self.body, 3)] = self.jacobian.reshape(-1, 6)
        return wrench


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Forces of the ground in a step, and their effect."""

    acceleration: Array
    """Added to the bodies, shape (nb, 6)."""
    held: Array
    """Added to the multipliers of the joints, shape (m,)."""
    force: Array
    """On each contact point of the robot [N], world axes, shape (n, 3)."""
    solver: SolverReport | None
    """How the problem was solved; None: nothing touched."""


class GroundContacts:
    """Spheres of a robot on a ground with friction, without restitution.

    Args:
        mechanism: the free bodies.
        terrain: the ground.
        friction: μ [-].
        model: the law.
    """

    def __init__(
        self, mechanism: Mechanism, terrain: Terrain, friction: float, model: Ncp
    ) -> None:
        self._terrain, self._friction, self._model = terrain, friction, model
        robot, tree = mechanism.robot, mechanism.tree
        points = robot.candidates
        joints = [robot.pinocchio_model.getJointId(point.joint) for point in points]
        self._body: IndexArray = tree.body_of_joint[joints].astype(np.intp)
        offsets = np.array([point.offset for point in points]).reshape(-1, 3)
        own = turned(tree.axes[self._body].transpose(0, 2, 1), offsets)
        self._offset = own - tree.body[self._body, 1:4]
        self._radius = np.array([point.radius for point in points])

    def sphere_contacts(self, state: BodyState) -> tuple[SphereContacts, Array, IndexArray]:
        """Return the contacts, their frames (nc, 3, 3), and the sphere of each (nc,)."""
        lever = turned(state.rotation[self._body], self._offset)
        distance, normals = self._terrain.contacts(state.position[self._body] + lever)
        sphere, slot = np.nonzero(distance < UNUSED_GAP)
        gap, n = distance[sphere, slot] - self._radius[sphere], normals[sphere, slot]
        frames = np.array([[*tangents(*normal), normal] for normal in n]).reshape(-1, 3, 3)
        # halfway between sphere and ground, see collision/_detection.py
        at = lever[sphere] - (self._radius[sphere] + 0.5 * gap)[:, None] * n
        rows = np.concatenate([frames, cross(at[:, None], frames)], axis=2)
        return SphereContacts(self._body[sphere], gap, rows), frames, sphere

    def solve(
        self, state: BodyState, blocks: Array, free: Array, h: float, response: Response
    ) -> ContactForces:
        """Return the contact forces of a step.

        Contacts that close within the step are added until no further one does.

        Args:
            state: at the start of the step.
            blocks: of M, shape (nb, 6, 6).
            free: velocities after the step without contact, shape (nb, 6).
            h: time step [s].
            response: of the bodies to forces.
        """
        every, frames, sphere = self.sphere_contacts(state)
        force = np.zeros((len(self._body), 3))
        after, solver = free, None
        active = np.zeros(len(every.gap), dtype=bool)
        added: tuple[Array, Array] = (np.zeros_like(free), response(0.0 * free)[1])
        impulse = np.zeros((0, 3))
        while (closing := (self._closing(every, after, h) | active)).sum() > active.sum():
            active = closing
            some = SphereContacts(every.body[active], every.gap[active], every.jacobian[active])
            moves, holds = response(some.wrenches(len(free)))
            problem = self._problem(some, state, blocks, free, h, moves)
            solution = self._model.solve(problem)
            rates, solver = solution.impulse / h, solution.solver
            added = np.tensordot(rates, moves, 1), rates @ holds
            after, impulse = free + h * added[0], solution.impulse.reshape(-1, 3)
        along = (impulse[:, None] @ frames[active])[:, 0] / h
        np.add.at(force, sphere[active], along)
        return ContactForces(*added, force, solver)

    @staticmethod
    def _closing(contacts: SphereContacts, velocity: Array, h: float) -> Array:
        """Return which contacts close within the step at these velocities, shape (nc,)."""
        approach = (contacts.jacobian[:, 2] * velocity[contacts.body]).sum(axis=1)
        return np.asarray(contacts.gap + h * approach < 0.0)

    def _problem(
        self,
        some: SphereContacts,
        state: BodyState,
        blocks: Array,
        free: Array,
        h: float,
        moves: Array,
    ) -> ContactProblem:
        """Return the contact problem of some contacts."""
        J = some.wrenches(len(free))[:, 1:].reshape(3 * len(some.gap), -1)
        G = J @ moves[:, 1:].reshape(len(moves), -1).T
        bias = np.zeros((len(some.gap), 3))
        bias[:, 2] = [gap_bias(gap, h, BAUMGARTE) for gap in some.gap]
        return ContactProblem.from_dynamics(
            block_diag(*blocks[1:]), J, state.velocity[1:].ravel(), free[1:].ravel(),
            np.full(len(some.gap), self._friction), some.gap, bias.ravel(), h,
            delassus=0.5 * (G + G.T),
        )  # fmt: skip
