"""Base and joint rows of the equation of motion, apart (theory E14).

    [M_bb M_bj; M_jb M_jj] (v̇_b; v̇_j) + (h_b; h_j) = (0; τ) + (J_bᵀ; J_jᵀ) f

The base rows are Newton's and Euler's equations of the whole robot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked
from contact_sim.errors import InvalidInput
from contact_sim.numbers import finite_array
from contact_sim.robot.configuration import checked_vector
from contact_sim.support.stance import Stance

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Partition:
    """Blocks of the equation of motion; b base, j all other coordinates."""

    base_dofs: NDArray[np.intp]
    """Coordinates of the base, shape (n_b,)."""
    joint_dofs: NDArray[np.intp]
    """All others, shape (nv − n_b,)."""
    inertia_bb: Array
    """M_bb, shape (n_b, n_b)."""
    inertia_bj: Array
    """M_bj, shape (n_b, nv − n_b)."""
    inertia_jj: Array
    """M_jj, shape (nv − n_b, nv − n_b)."""
    nonlinear_effects_b: Array
    """h_b [N, N m], shape (n_b,)."""
    nonlinear_effects_j: Array
    """h_j [N m], shape (nv − n_b,)."""
    contact_jacobian_b: Array
    """J_b, shape (m, n_b)."""
    contact_jacobian_j: Array
    """J_j, shape (m, nv − n_b)."""

    def base_residual(self, acceleration: ArrayLike, force: ArrayLike) -> Array:
        """Return M_bb v̇_b + M_bj v̇_j + h_b − J_bᵀ f [N, N m], zero in every motion, (n_b,).

        Args:
            acceleration: v̇, shape (nv,).
            force: f on the robot [N], shape (m,).

        Raises:
            InvalidInput: a wrong length or a value that is not finite.
        """
        size = len(self.base_dofs) + len(self.joint_dofs)
        v_dot = checked_vector('acceleration', acceleration, size)
        f = checked_vector('force', force, len(self.contact_jacobian_b))
        finite_array('acceleration', v_dot), finite_array('force', f)  # their products, too
        inertial = self.inertia_bb @ v_dot[self.base_dofs]
        inertial += self.inertia_bj @ v_dot[self.joint_dofs]
        return np.asarray(inertial + self.nonlinear_effects_b - self.contact_jacobian_b.T @ f)


@checked
def split_base(stance: Stance) -> Partition:
    """Return the base and joint blocks of a stance.

    Raises:
        InvalidInput: a robot that has neither a floating base nor a coordinate without a drive.
    """
    b = stance.base_dofs
    if not len(b):
        raise InvalidInput('split_base: every coordinate is driven, there is no base')
    j = np.setdiff1d(np.arange(len(stance.inertia)), b)
    M, h, J = stance.inertia, stance.nonlinear_effects, stance.contact_jacobian
    return Partition(
        base_dofs=b,
        joint_dofs=j,
        inertia_bb=M[np.ix_(b, b)],
        inertia_bj=M[np.ix_(b, j)],
        inertia_jj=M[np.ix_(j, j)],
        nonlinear_effects_b=h[b],
        nonlinear_effects_j=h[j],
        contact_jacobian_b=J[:, b],
        contact_jacobian_j=J[:, j],
    )
