"""Support analysis of a set of feet: ranks, internal forces, motions of the base beyond control.

With J = [J_b J_j], base and joint columns (theory E5, E7):

    base fully controllable   iff rank J_b = 6
    internal constraints      rank J − rank J_b
    uncontrollable motions    6 − rank J_b, the null space of J_b

The condition on J_b says that the feet can push the base in every direction. Whether legs can
also follow is another matter: with `base_mobility` < 6 they are too few or too short of joints
(solo8), and the base moves in fewer directions as long as all feet stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._terrain import TerrainLike, as_terrain
from contact_sim.robot._model import RobotModel
from contact_sim.support import _geometry
from contact_sim.support._geometry import (
    RigidMotion,
    distance_inside,
    named_motions,
    support_polygon,
)
from contact_sim.support._stance_dynamics import (
    DIRECTIONS,
    StanceDynamics,
    require_floating_base,
    stance_dynamics,
)


@dataclass(frozen=True, eq=False)
class Support:
    """A set of feet under a robot; everything is computed when it is read."""

    robot: RobotModel
    stance: StanceDynamics
    q: Array
    """Configuration, shape (nq,)."""

    @property
    def feet(self) -> tuple[str, ...]:
        """Names of the feet in contact."""
        return self.stance.feet

    @property
    def contact_jacobian(self) -> Array:
        """J, rows (t1, t2, n) per foot, shape (m, nv); theory E3."""
        return self.stance.contact_jacobian

    @property
    def base_jacobian(self) -> Array:
        """J_b, the columns of the base, shape (m, n_b)."""
        return np.asarray(self.contact_jacobian[:, self.stance.base_dofs])

    @property
    def joint_jacobian(self) -> Array:
        """J_j, all other columns, shape (m, nv − n_b)."""
        return np.delete(self.contact_jacobian, self.stance.base_dofs, axis=1)

    @cached_property
    def rank(self) -> int:
        """Rank of J: velocities that the support takes away."""
        return _geometry.rank(self.contact_jacobian)

    @cached_property
    def base_rank(self) -> int:
        """Rank of J_b: directions in which the feet can push the base."""
        return _geometry.rank(self.base_jacobian)

    @cached_property
    def joint_rank(self) -> int:
        """Rank of J_j; below the number of rows some forces need no joint torque."""
        return _geometry.rank(self.joint_jacobian)

    @property
    def internal_constraints(self) -> int:
        """Rank J − rank J_b: constraints between the joints, internal forces they can make."""
        return self.rank - self.base_rank

    @property
    def uncontrollable_base_dof(self) -> int:
        """n_b − rank J_b: motions of the base (n_b = 6) that no contact force can act on."""
        return len(self.stance.base_dofs) - self.base_rank

    @cached_property
    def base_mobility(self) -> int:
        """Directions in which the base can move while the feet stay, the rank of Z_b."""
        return _geometry.rank(self.null_space_basis[self.stance.base_dofs])

    @cached_property
    def uncontrollable_base_directions(self) -> tuple[RigidMotion, ...]:
        """The uncontrollable motions of a floating base, one per `uncontrollable_base_dof`.

        Raises:
            InvalidInput: the base is fixed.
        """
        require_floating_base(self.robot, 'uncontrollable_base_directions')
        data = self.robot.pinocchio_model.createData()
        pin.forwardKinematics(self.robot.pinocchio_model, data, self.q)
        base = data.oMi[1]
        local = _geometry.null_space_basis(self.base_jacobian)
        world = np.vstack([base.rotation @ local[:3], base.rotation @ local[3:]])
        points = dict(zip(self.feet, self.stance.position, strict=True))
        return named_motions(world, np.array(base.translation), points)

    @cached_property
    def conditioning(self) -> float:
        """Largest singular value of J over the smallest that is not zero; 1 without feet."""
        return _geometry.conditioning(self.contact_jacobian)

    @cached_property
    def base_conditioning(self) -> float:
        """The same of J_b."""
        return _geometry.conditioning(self.base_jacobian)

    @cached_property
    def null_space_projector(self) -> Array:
        """N_c = I − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J, shape (nv, nv); theory E4, E10."""
        return _geometry.null_space_projector(self.stance.inertia, self.contact_jacobian)

    @cached_property
    def null_space_basis(self) -> Array:
        """Orthonormal Z with J Z = 0, shape (nv, nv − rank); may replace N_c (theory E11)."""
        return _geometry.null_space_basis(self.contact_jacobian)

    @cached_property
    def polygon(self) -> Array:
        """Corners of the support polygon [m], world, counter-clockwise seen from above, (k, 3)."""
        return support_polygon(self.stance.position, self.stance.frame[:, 2])

    @cached_property
    def centre_of_mass(self) -> Array:
        """Centre of mass [m], world, shape (3,)."""
        model = self.robot.pinocchio_model
        return np.array(pin.centerOfMass(model, model.createData(), self.q))

    @cached_property
    def margin(self) -> float:
        """Distance of the centre of mass inside the polygon, seen along world z [m].

        Negative outside; a robot at rest on level ground falls there. −inf without feet.
        """
        return distance_inside(self.polygon[:, :2], self.centre_of_mass[:2])


@checked
def analyse_support(
    robot: RobotModel,
    q: ArrayLike,
    active: Iterable[str | int],
    directions: Sequence[str] = DIRECTIONS,
    terrain: TerrainLike = 'plane',
) -> Support:
    """Return the support of `robot` by the feet `active` at q (nq,); theory E5, E7.

    Args:
        robot: with a floating or a fixed base; the base of the latter are the coordinates that no
            joint drives.
        q: configuration.
        active: names or indices of the feet in contact; empty in flight.
        directions: which rows of each contact frame are held.
        terrain: the ground, which gives the contact frames.

    Raises:
        UnknownName: a foot or terrain that does not exist.
        InvalidInput: a wrong size, values that are not finite, a foot listed twice.
    """
    stance = stance_dynamics(robot, q, None, active, directions, as_terrain(terrain))
    return Support(robot, stance, robot.checked_configuration(q))
