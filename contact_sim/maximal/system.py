"""The sparse system of free bodies and constraint rows (theory 2.14).

    [ M  −Jᵀ ] [ v̇ ]   [  f ]
    [ J   0  ] [ λ ] = [ −c ]

Unknowns go from the leaves of the tree to its root, each body before the rows of the joint that
carries it: elimination in this order fills in nothing outside the blocks of M and J, and its cost
is linear in the number of bodies [Baraff 1996].
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from contact_sim.errors import InvalidInput
from contact_sim.maximal.bodies import Array
from contact_sim.maximal.rows import JointRows

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

        Raises:
            InvalidInput: the matrix is singular.
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

    def solve(self, force: Array, asked: Array) -> tuple[Array, Array]:
        """Return accelerations (..., nb, 6) and multipliers (..., m) of the factored system.

        Args:
            force: on the bodies, shape (..., nb, 6).
            asked: −c, shape (..., m).
        """
        right = np.zeros((*force.shape[:-2], self.size))
        right[..., self.body_unknown[1:, self._kept]] = force[..., 1:, self._kept]
        right[..., self.row_unknown] = asked
        if self._dense:
            found = lu_solve(self._factor, right.T, check_finite=False).T
        else:
            found = self._factor.solve(np.ascontiguousarray(right.T)).T
        acceleration = np.zeros(force.shape)
        unknown = self.body_unknown[1:, self._kept]
        acceleration[..., 1:, self._kept] = found[..., unknown]
        return acceleration, found[..., self.row_unknown]
