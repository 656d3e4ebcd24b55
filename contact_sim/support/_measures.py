"""The numbers of a support, computed in every step of a simulation.

`analyse_support` checks its arguments and computes inertia and drift as well. `SupportMeasures`
keeps what does not change for a robot on a ground, and each singular value decomposition serves
all numbers that need it: a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.collision._detection import candidates_of, contact_rows, detect
from contact_sim.collision._surface import Ground
from contact_sim.collision._terrain import Terrain, addresses_of
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.support._analysis import distance_inside, named_motions, support_polygon
from contact_sim.support._stance_dynamics import RANK_TOLERANCE, unforced_dofs

MEASURES = (
    'rank', 'base_rank', 'internal_constraints', 'uncontrollable_base_dof', 'base_mobility',
    'conditioning', 'base_conditioning', 'margin', 'free_direction_x', 'free_direction_y',
    'free_direction_z', 'free_point_x', 'free_point_y', 'free_point_z', 'free_rotation',
)  # fmt: skip
"""Names of the numbers: those of `Support`, then its first uncontrollable base motion."""


class SupportMeasures:
    """Computes the numbers of the supports of one robot on one ground; for one thread.

    Args:
        robot: any robot.
        terrain: the ground, which gives the contact frames.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain) -> None:
        self.robot, self.terrain = robot, terrain
        self._model, spheres = robot.pinocchio_model, candidates_of(robot)
        self._data = data_of(self._model)
        self._names = [point.name for point in robot.contact_points]
        self._carriers = sorted(set(spheres.joint.tolist()))
        self._spheres = spheres.joint, spheres.offset, spheres.radius
        self._base = unforced_dofs(robot)
        self._ground = Ground(
            terrain.kind, terrain.data, terrain.relief, *addresses_of(terrain.kind)[:2],
            terrain.features, 0,
        )  # fmt: skip
        slots = terrain.features * len(self._names)
        self._pose = np.tile([*np.eye(3).ravel(), 0.0, 0.0, 0.0], (self._model.njoints, 1))
        self._position, self._frame = np.zeros((slots, 3)), np.zeros((slots, 3, 3))
        self._gap, self._feature, self._open = np.zeros((3, slots))
        self._leaf = np.repeat(spheres.leaf_dof, terrain.features)
        self._parent = np.array(list(self._data.parents_fromRow)[: robot.nv], dtype=np.int64)
        self._rows = np.zeros((robot.nv, 3 * slots))
        self._first = terrain.features * np.arange(len(self._names))

    def of(self, q: Array, feet: Sequence[int]) -> list[float]:
        """Return the numbers of MEASURES at q (nq,) for feet by their indices.

        `free_direction`, `free_point` [m] and `free_rotation`, whether it turns, are of the first
        motion of a floating base that the feet cannot act on; zeros where there is none, all of
        them in flight. The margin [m] is 0 in flight.
        """
        if not len(feet):
            base = len(self._base)
            return [0.0, 0.0, 0.0, base, base, 1.0, 1.0, *[0.0] * 8]
        jacobian, position, normal = self._contacts(q, feet)
        on_base = jacobian[:, self._base]
        _, values, directions = np.linalg.svd(jacobian)
        rank, conditioning = _counted(values)
        base_rank, base_conditioning = 0, 1.0
        if on_base.size:
            values_of_base = np.linalg.svd(on_base, compute_uv=False)
            base_rank, base_conditioning = _counted(values_of_base)
        free = directions[rank:, self._base]  # Z_b, see Support
        mobility = _counted(np.linalg.svd(free, compute_uv=False))[0] if free.size else 0
        missing = len(self._base) - base_rank
        motion = [0.0] * 7
        if missing and self.robot.floating_base:
            motion = self._free_motion(on_base, base_rank, feet, position)
        centre = pin.centerOfMass(self._model, self._data, q)
        margin = distance_inside(support_polygon(position, normal)[:, :2], centre[:2])
        return [
            rank, base_rank, rank - base_rank, missing, mobility, conditioning, base_conditioning,
            margin, *motion,
        ]  # fmt: skip

    def _contacts(self, q: Array, feet: Sequence[int]) -> tuple[Array, Array, Array]:
        """Return Jacobian, positions and normals of feet, as `stance_dynamics`."""
        data = self._data
        pin.computeJointJacobians(self._model, data, q)
        for joint in self._carriers:
            placement = data.oMi[joint]
            self._pose[joint, :9] = placement.rotation.T.ravel()
            self._pose[joint, 9:] = placement.translation
        detect(
            self._ground, self._pose, *self._spheres, self._position, self._frame, self._gap,
            self._feature,
        )  # fmt: skip
        columns = np.array(data.J.T).reshape(self.robot.nv, 6)
        self._rows.fill(0.0)
        contact_rows(
            columns, np.zeros(3), (self._leaf, self._feature), self._parent, self._position,
            self._frame, self._open, self._rows,
        )  # fmt: skip
        slot = self._first
        if self.terrain.features > 1:  # the nearest feature holds the foot
            slot = slot + self._gap.reshape(len(slot), -1).argmin(axis=1)
        slot = slot[list(feet)]
        rows = (3 * slot[:, None] + np.arange(3)).ravel()
        return self._rows.T[rows], self._position[slot], self._frame[slot, 2]

    def _free_motion(
        self, on_base: Array, rank: int, feet: Sequence[int], position: Array
    ) -> list[float]:
        """Return direction, point and whether it turns of the first uncontrollable motion."""
        local = np.linalg.svd(on_base)[2][rank:].T
        base = self._data.oMi[1]
        world = np.vstack([base.rotation @ local[:3], base.rotation @ local[3:]])
        points = dict(zip([self._names[k] for k in feet], position, strict=True))
        (motion,) = named_motions(world, np.array(base.translation), points, most=1)
        return [*motion.direction, *motion.point, float(np.isfinite(motion.pitch))]


def _counted(values: NDArray[Any]) -> tuple[int, float]:
    """Return the number of singular values that count as not zero, and their largest ratio."""
    count = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    return count, float(values[0] / values[count - 1]) if count else 1.0
