"""Constraints between parts of a robot: h(q) = 0, their rows, and what they leave free.

Rows are those of theory 4.6: points together in world axes, turns of full closures behind them,
joints that follow others. Passive joints move as the others make them,

    H v = 0    →    v = N w,    v̇ = N ẇ + n

with w of the base and the driven joints, and n from Ḣ v.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.linalg import orth

from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot.constraints import (
    Constraint,
    JointCoupling,
    LoopClosure,
    checked_constraints,
)
from contact_sim.robot.contact_point import Array
from contact_sim.robot.frames import frame_called

Dofs = NDArray[np.intp]
UNIVERSE, FLOATING = 'universe', 'JointModelFreeFlyer'
ROUNDS, CLOSED, LONGEST = 100, 1e-12, 0.3
"""Newton steps that close loops; error [m, rad] that counts as closed; largest change of a
coordinate in a step [rad or m]."""
FAR = 1e-3
"""Error [m, rad] above which a projection is no small correction of a step."""
SINGULAR = 1e-9
"""Share of the largest singular value below which a direction counts as none."""


class ClosedLoops:
    """h, H and Ḣ v of constraints between parts of a robot, by Pinocchio.

    Args:
        model: of the robot.
        constraints: loop closures and joints that follow others.

    Raises:
        InvalidInput: a constraint of another kind, two of one name, a loop closed to the world,
            joints without a single coordinate.
        UnknownName: a frame or joint that the model does not have.
    """

    def __init__(self, model: pin.Model, constraints: Sequence[Constraint]) -> None:
        self.constraints = checked_constraints(constraints)
        self._model = model
        self._joint_dofs = _joint_dofs(model)
        couplings = [one for one in self.constraints if isinstance(one, JointCoupling)]
        closures = [one for one in self.constraints if isinstance(one, LoopClosure)]
        if len(couplings) + len(closures) < len(self.constraints):
            raise InvalidInput(
                f'constraints of a robot: {shown(self.constraints)}: expected LoopClosure and '
                'JointCoupling; give others to the Simulator'
            )
        full = [one for one in closures if one.full]
        self._owners = [*np.repeat(np.array([*closures, *full], dtype=object), 3), *couplings]
        self._full = np.array([one.full for one in closures], dtype=bool)
        self._ends = [
            [_end(model, frame, point) for frame, point in
             ((one.frame, one.point), (one.other, one.other_point))]
            for one in closures
        ]  # fmt: skip
        self._moved = np.array(
            [[_moves(model, joint) for joint, _ in ends] for ends in self._ends]
        ).reshape(-1, 2, model.nv)
        rows = [_coupling_row(model, one) for one in couplings]
        self._followers = [(place, one.ratio, one.offset) for (place, _), one in
                           zip(rows, couplings, strict=True)]  # fmt: skip
        self._coupled = np.array([row for _, row in rows]).reshape(-1, model.nv)

    def __len__(self) -> int:
        """Return the number of constraints."""
        return len(self.constraints)

    @property
    def tied(self) -> frozenset[str]:
        """Names of the joints that the constraints tie to each other."""
        dofs = np.abs(self._moved[:, 0] - self._moved[:, 1]).any(axis=0)
        dofs |= self._coupled.any(axis=0)
        model = self._model
        return frozenset(
            str(model.names[j])
            for j in range(1, model.njoints)
            if dofs[model.joints[j].idx_v : model.joints[j].idx_v + model.joints[j].nv].any()
        )

    def error(self, q: Array) -> Array:
        """Return h at q (nq,) [m, rad], shape (rows,)."""
        data = self._model.createData()
        pin.forwardKinematics(self._model, data, q)
        place, turn = self._places(data)
        rows = [place[:, 0] - place[:, 1]]
        rows += [pin.log3(a @ b.T) for a, b in turn[self._full]]
        follows = [q[one] - ratio * q[leader] - offset
                   for (one, leader), ratio, offset in self._followers]  # fmt: skip
        return np.concatenate([np.ravel(part) for part in (*rows, np.array(follows))])

    def jacobian(self, q: Array) -> Array:
        """Return H at q (nq,), shape (rows, nv)."""
        data = self._model.createData()
        pin.computeJointJacobians(self._model, data, q)
        return self.rows(data)

    def rows(self, data: pin.Data) -> Array:
        """Return H at data whose joint Jacobians were computed, shape (rows, nv)."""
        columns = np.reshape(data.J, (6, -1))  # a vector if nv = 1
        place, _ = self._places(data)
        at = columns[:3] - _across(place) @ columns[3:]  # (n, 2, 3, nv)
        own = (at[:, 0] * self._moved[:, 0, None], at[:, 1] * self._moved[:, 1, None])
        turns = (self._moved[:, 0] - self._moved[:, 1])[self._full, None] * columns[3:]
        nv = columns.shape[1]
        return np.vstack([(own[0] - own[1]).reshape(-1, nv), turns.reshape(-1, nv), self._coupled])

    def drift(self, data: pin.Data, v: Array) -> Array:
        """Return Ḣ v at data whose Jacobians have their time variation, v (nv,); (rows,)."""
        place, _ = self._places(data)
        twist = (self._moved * v) @ np.reshape(data.J, (6, -1)).T  # of both bodies, (n, 2, 6)
        rate = (self._moved * v) @ np.reshape(data.dJ, (6, -1)).T
        spin, turning = twist[..., 3:], rate[..., 3:]
        speed = twist[..., :3] + np.cross(spin, place)
        own = rate[..., :3] + np.cross(turning, place) + np.cross(spin, speed)
        turns = (turning[:, 0] - turning[:, 1])[self._full]
        still = np.zeros(len(self._coupled))
        return np.concatenate([(own[:, 0] - own[:, 1]).ravel(), turns.ravel(), still])

    def motion(
        self, rows: Array, independent: Dofs, drift: Array | None = None
    ) -> tuple[Array, Array]:
        """Return N, what moves with each of the dofs `independent`, (nv, n), and n (nv,).

        A base that is not among them is held.

        Args:
            rows: H, shape (rows, nv).
            independent: dofs, shape (n,).
            drift: Ḣ v, shape (rows,); None: 0.
        """
        passive = np.setdiff1d(self._joint_dofs, independent)
        motion, rest = np.zeros((self._model.nv, len(independent))), np.zeros(self._model.nv)
        motion[independent, np.arange(len(independent))] = 1.0
        if len(passive):
            inverse = np.linalg.pinv(rows[:, passive], rcond=SINGULAR)
            motion[passive] = -inverse @ rows[:, independent]
            if drift is not None:
                rest[passive] = -inverse @ drift
        return motion, rest

    def leave_free(self, q: Array, driven: Dofs) -> bool:
        """Return whether driven joints, dofs (n,), move at will at q and all others follow."""
        passive, rows = np.setdiff1d(self._joint_dofs, driven), self.jacobian(q)
        ranks = [orth(part, rcond=SINGULAR).shape[1] if part.size else 0
                 for part in (rows, rows[:, passive])]  # fmt: skip
        return ranks == [len(passive), len(passive)]

    def closed(self, q: Array, driven: Dofs, place: str = 'configuration') -> Array:
        """Return q with the constraints met, by moves of joints that are not driven, (nq,).

        Where those do not do it the driven joints move, too; bases do not.

        Args:
            q: where to begin, shape (nq,).
            driven: dofs of the driven joints, shape (n,).
            place: what to call q in a message.

        Raises:
            InvalidInput: there is no such configuration near.
        """
        for moving in (np.setdiff1d(self._joint_dofs, driven), self._joint_dofs):
            found = self._settled(q, moving)
            error = self.error(found)
            if np.abs(error).max(initial=0.0) <= CLOSED:
                return found
        raise InvalidInput(
            f'{place}: {self._worst(error)} are left near it; name a pose of all joints in which '
            'the constraints are met'
        )

    def check(self, q: Array, place: str) -> None:
        """Raise InvalidInput if an error at q (nq,) is none that a step corrects."""
        error = self.error(q)
        if np.abs(error).max(initial=0.0) > FAR:
            raise InvalidInput(f'{place}: {self._worst(error)}: start where it holds')

    def _worst(self, error: Array) -> str:
        k = int(np.abs(error).argmax())
        return f'constraint {self._owners[k]}: {abs(error[k]):.3g} m or rad'

    def _settled(self, q: Array, moving: Dofs) -> Array:
        """Return q after Newton steps of the dofs `moving`."""
        for _ in range(ROUNDS):
            error = self.error(q)
            if np.abs(error).max(initial=0.0) <= CLOSED:
                break
            step = np.zeros(self._model.nv)
            rows = self.jacobian(q)[:, moving]
            step[moving] = -np.linalg.pinv(rows, rcond=SINGULAR) @ error
            longest = float(np.abs(step).max(initial=0.0))
            if longest == 0.0:
                break
            q = pin.integrate(self._model, q, step * min(1.0, LONGEST / longest))
        return q

    def _places(self, data: pin.Data) -> tuple[Array, Array]:
        """Return points (n, 2, 3) and axes (n, 2, 3, 3) of both ends in world."""
        ends = [data.oMi[joint] * at for pair in self._ends for joint, at in pair]
        place = np.array([end.translation for end in ends]).reshape(-1, 2, 3)
        return place, np.array([end.rotation for end in ends]).reshape(-1, 2, 3, 3)


def _across(vectors: Array) -> Array:
    """Return the matrices of x ×, shape (..., 3, 3)."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    none = np.zeros_like(x)
    rows = [[none, -z, y], [z, none, -x], [-y, x, none]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _joint_dofs(model: pin.Model) -> Dofs:
    """Return the dofs of all joints but floating bases."""
    joints = [joint for joint in list(model.joints)[1:] if joint.shortname() != FLOATING]
    return np.array([joint.idx_v + k for joint in joints for k in range(joint.nv)], dtype=np.intp)


def _end(model: pin.Model, name: str, point: Sequence[float]) -> tuple[int, pin.SE3]:
    """Return the joint that carries a frame, and the placement of the point in its axes."""
    if name == UNIVERSE:
        raise InvalidInput(
            'constraints of a robot: a loop closed to the world: give the Simulator a PointAnchor'
        )
    frame = frame_called(model, name, 'frame of a loop:')
    return int(frame.parentJoint), frame.placement * pin.SE3(np.eye(3), np.array(point))


def _moves(model: pin.Model, joint: int) -> Array:
    """Return 1 where a dof moves the body of a joint and 0 elsewhere, (nv,)."""
    moved = np.zeros(model.nv)
    for j in list(model.supports[joint])[1:]:
        moved[model.joints[j].idx_v : model.joints[j].idx_v + model.joints[j].nv] = 1.0
    return moved


def _coupling_row(model: pin.Model, coupling: JointCoupling) -> tuple[tuple[int, int], Array]:
    """Return the coordinates of both joints, and the row."""
    row, places = np.zeros(model.nv), []
    for name, share in ((coupling.joint, 1.0), (coupling.leader, -coupling.ratio)):
        if not model.existJointName(name):
            raise UnknownName('joint of a coupling:', name, list(model.names)[1:])
        joint = model.joints[model.getJointId(name)]
        if joint.nq != 1 or joint.nv != 1:
            raise InvalidInput(
                f'constraint {coupling.name!r}: joint {name!r} has {joint.nq} coordinates, '
                'expected one'
            )
        row[joint.idx_v] = share
        places.append(int(joint.idx_q))
    return (places[0], places[1]), row
