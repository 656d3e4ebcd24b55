"""Bilateral constraints: their descriptions, and those of a robot itself (loops, mimic joints).

Descriptions are frozen and name frames; constraints/_constraint_rows.py makes arrays of them.
Points are in the axes of their frame [m], places in the world [m].
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin
import scipy

from contact_sim._types import Array, IndexArray
from contact_sim._validation import as_tuple, finite, number_within, real_array
from contact_sim.errors import (
    InvalidInput,
    RobotDescriptionError,
    UnknownName,
    of_type,
    one_line,
    shown,
    summary,
)
from contact_sim.robot._coordinates import PositionLimit, find_frame, moving_dofs
from contact_sim.robot._trees import data_of
from contact_sim.robot._urdf import number, vector

# ----------------------------------------------------------------------------------- stabilisation
#
# A constraint on positions keeps its error h small by one of two ways (theory 4.6):
#
# Projection     ḣ⁺ = 0 in every step, then q is moved back onto h(q) = 0
# Baumgarte      ḧ = −kd ḣ − kp h, with kd = 2 α and kp = α² for critical damping


@dataclass(frozen=True)
class Projection:
    """Velocities satisfy the constraint, and positions are projected after each step."""


@dataclass(frozen=True, init=False)
class Baumgarte:
    """Feedback of the error at the level of accelerations [Baumgarte 1972].

    Args:
        alpha: α [1/s], for kd = 2 α and kp = α²; 0 leaves the drift of the integration.
        kp: feedback of h [1/s²]; with kd instead of alpha.
        kd: feedback of ḣ [1/s].

    Raises:
        InvalidInput: neither alpha nor both others, numbers below 0 or not finite.
    """

    kp: float
    kd: float

    def __init__(
        self, alpha: float | None = None, *, kp: float | None = None, kd: float | None = None
    ) -> None:
        if (alpha is None) == (kp is None) or (kp is None) != (kd is None):
            raise InvalidInput(
                f'Baumgarte: alpha = {alpha}, kp = {kp}, kd = {kd}: expected alpha, or kp and kd'
            )
        if alpha is not None:
            alpha = number_within('Baumgarte: alpha', alpha, np.inf)
            kp, kd = alpha * alpha, 2.0 * alpha
        for name, value in (('kp', kp), ('kd', kd)):
            object.__setattr__(self, name, number_within(f'Baumgarte: {name}', value, np.inf))


Stabilisation = Projection | Baumgarte


# ------------------------------------------------------------------------------------ descriptions

Point = tuple[float, float, float]
Pose = tuple[float, float, float, float, float, float, float]
"""Position [m] and quaternion x, y, z, w."""
ORIGIN: Point = (0.0, 0.0, 0.0)
ROUNDING = 1e-15
"""Error of the length of a quaternion that was made a unit one."""
NAME_FIELDS = 'name', 'frame', 'other', 'joint', 'leader'
"""Fields that are names."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """Base of all constraints.

    Raises:
        InvalidInput: a field with a value of another kind.
    """

    name: str = ''
    """Name in reports; by default its kind and the names of `holds`."""

    kind: ClassVar[str] = 'constraint'
    _held: ClassVar[tuple[str, ...]] = ()
    """Fields with the names of `holds`."""

    def __post_init__(self) -> None:
        for name in NAME_FIELDS:
            value = getattr(self, name, '')
            if not isinstance(value, str):
                raise InvalidInput(f'{self._what(name)} = {shown(value)}: expected text')
        if not self.name:
            self._set('name', f'{self.kind} {" ".join(self.holds)}'.strip())

    @property
    def holds(self) -> tuple[str, ...]:
        """Names of the frames or joints that it acts on."""
        return tuple(getattr(self, field) for field in self._held)

    def renamed(self, prefix: str) -> Constraint:
        """Return the constraint of a robot whose names have a prefix, such as 'a/'."""
        names = {name: getattr(self, name) for name in NAME_FIELDS if hasattr(self, name)}
        return replace(self, **{name: prefix + value for name, value in names.items()})

    def __str__(self) -> str:
        return self.name

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _what(self, name: str) -> str:
        return f'{type(self).__name__}.{name}'


@dataclass(frozen=True, kw_only=True)
class _Positional(Constraint):
    stabilisation: Stabilisation = field(default_factory=Projection)
    """How its error is kept small."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.stabilisation, Projection | Baumgarte):
            raise InvalidInput(
                f'{self._what("stabilisation")} = {shown(self.stabilisation)}: '
                'expected Projection or Baumgarte'
            )


@dataclass(frozen=True)
class PointAnchor(_Positional):
    """A point of a frame stays at a point of the world: three rows, world axes."""

    frame: str
    at: Point | None = None
    """Place in world [m]; None: where the point is when the constraint is added."""
    point: Point = ORIGIN
    """The point, in the axes of the frame [m]."""

    kind: ClassVar[str] = 'point_anchor'
    _held: ClassVar[tuple[str, ...]] = ('frame',)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set('point', _point(self._what('point'), self.point))
        if self.at is not None:
            self._set('at', _point(self._what('at'), self.at))


@dataclass(frozen=True)
class FrameAnchor(_Positional):
    """A frame stays where it is, and does not turn: six rows, world axes."""

    frame: str
    at: Pose | None = None
    """Placement in world, a `pin.SE3` or position [m] and quaternion x, y, z, w; None: where the
    frame is when the constraint is added."""

    kind: ClassVar[str] = 'frame_anchor'
    _held: ClassVar[tuple[str, ...]] = ('frame',)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is not None:
            self._set('at', _pose(self._what('at'), self.at))


@dataclass(frozen=True)
class LoopClosure(_Positional):
    """A point of a frame stays at a point of another one: a ball joint that closes a loop.

    Three rows in world axes; with `full` the frames do not turn against each other either: six.
    """

    frame: str
    other: str
    point: Point = ORIGIN
    """The point, in the axes of `frame` [m]."""
    other_point: Point = ORIGIN
    """Where it stays, in the axes of `other` [m]."""
    full: bool = False

    kind: ClassVar[str] = 'loop_closure'
    _held: ClassVar[tuple[str, ...]] = ('frame', 'other')

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('point', 'other_point'):
            self._set(name, _point(self._what(name), getattr(self, name)))

    def __str__(self) -> str:
        return f'{self.name}: {self.frame} to {self.other}'


@dataclass(frozen=True)
class JointLock(_Positional):
    """A joint with one degree of freedom does not move: one row."""

    joint: str
    at: float | None = None
    """Its position [rad or m]; None: where it is when the constraint is added."""

    kind: ClassVar[str] = 'joint_lock'
    _held: ClassVar[tuple[str, ...]] = ('joint',)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is not None:
            self._set('at', finite(self._what('at'), self.at))


@dataclass(frozen=True)
class JointCoupling(_Positional):
    """A joint follows another one, position = ratio · leader + offset: a gear, one row."""

    joint: str
    leader: str
    ratio: float = 1.0
    offset: float = 0.0
    """[rad or m]."""

    kind: ClassVar[str] = 'joint_coupling'
    _held: ClassVar[tuple[str, ...]] = ('joint', 'leader')

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('ratio', 'offset'):
            self._set(name, finite(self._what(name), getattr(self, name)))
        if self.joint == self.leader:
            raise InvalidInput(f'{self._what("leader")} = {shown(self.leader)}: the joint itself')

    def __str__(self) -> str:
        return f'{self.joint} = {self.ratio:g} * {self.leader} + {self.offset:g}'


@dataclass(frozen=True)
class JointVelocity(Constraint):
    """A joint with one degree of freedom is driven at a speed: one row.

    h_v = q̇ − velocity goes to 0 in one step, or by ḣ_v = −alpha h_v.
    """

    joint: str
    velocity: float
    """[rad/s or m/s]."""
    alpha: float | None = None
    """α [1/s]; None: at once."""

    kind: ClassVar[str] = 'joint_velocity'
    _held: ClassVar[tuple[str, ...]] = ('joint',)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set('velocity', finite(self._what('velocity'), self.velocity))
        if self.alpha is not None:
            self._set('alpha', number_within(self._what('alpha'), self.alpha, np.inf))


@dataclass(frozen=True)
class Holonomic(_Positional):
    """Any h(q) = 0.

    Both functions are called from Python in every step, under `hybrid` in every stage of its arcs.
    `jacobian` is with respect to Pinocchio's velocities, ḣ = H v. What they raise takes the step
    back.
    """

    error: Callable[[Array], Array]
    """h: q (nq,) → (rows,)."""
    jacobian: Callable[[Array], Array]
    """H: q (nq,) → (rows, nv)."""
    rows: int

    kind: ClassVar[str] = 'holonomic'

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('error', 'jacobian'):
            if not callable(getattr(self, name)):
                raise InvalidInput(f'{self._what(name)}: expected a function of q')
        if of_type(self._what('rows'), self.rows, int) < 1:
            raise InvalidInput(f'{self._what("rows")} = {self.rows}: expected at least 1')

    __repr__ = one_line


def checked_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Return constraints as a tuple; refuse something else, or two of one name."""
    found = as_tuple('constraints', constraints, 'a list of constraints')
    for constraint in found:
        if not isinstance(constraint, Constraint) or type(constraint) is Constraint:
            raise InvalidInput(
                f'constraints: {shown(constraint)} is none of those in contact_sim.constraints'
            )
    names = [constraint.name for constraint in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f'constraints: two are called {name!r}: give one a name of its own')
    return found


def _point(name: str, value: Sequence[float]) -> Point:
    array = real_array(name, value)
    if array.shape != (3,) or not np.isfinite(array).all():
        raise InvalidInput(f'{name} = {shown(value)}: expected three finite numbers [m]')
    x, y, z = array.tolist()
    return x, y, z


def _pose(name: str, value: object) -> Pose:
    if isinstance(value, pin.SE3):
        value = pin.SE3ToXYZQUAT(value)
    array = real_array(name, value)
    length = float(np.linalg.norm(array[3:])) if array.shape == (7,) else 0.0
    if not np.isfinite(array).all() or abs(length - 1.0) > 1e-6:
        raise InvalidInput(
            f'{name} = {shown(value)}: expected a pin.SE3, or a position and a unit quaternion '
            'x, y, z, w'
        )
    if abs(length - 1.0) > ROUNDING:  # else reading and writing again would change the last bits
        array = np.concatenate([array[:3], array[3:] / length])
    x, y, z, a, b, c, w = array.tolist()
    return x, y, z, a, b, c, w


# ------------------------------------------------------------------------------------ closed loops
#
# Rows of h(q) = 0 (theory 4.6): differences of points in world axes, then rotations of full
# closures, then couplings of joints. Passive joints follow the others,
#
#     H v = 0    →    v = N w,    v̇ = N ẇ + n
#
# where w has the velocities of the base and the driven joints, and n comes from Ḣ v.

UNIVERSE, FLOATING = 'universe', 'JointModelFreeFlyer'
MAX_ITERATIONS, TOLERANCE, MAX_STEP = 100, 1e-12, 0.3
"""Of Newton's method that closes loops: iterations; error [m, rad]; change of a coordinate in an
iteration [rad or m]."""
MAX_START_ERROR = 1e-3
"""Error [m, rad] above which a projection is no small correction of a step."""
START_BEYOND = 1e-6
"""How far a joint in a closed loop may start beyond a limit [rad or m]."""
SINGULAR = 1e-9
"""Share of the largest singular value below which a direction counts as none."""


class ClosedLoops:
    """Constraints within a robot: h, H and Ḣ v, computed by Pinocchio.

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
        joints = [joint for joint in list(model.joints)[1:] if joint.shortname() != FLOATING]
        self._joint_dofs = np.array(
            [joint.idx_v + k for joint in joints for k in range(joint.nv)], dtype=np.intp
        )
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
            (_end(model, one.frame, one.point), _end(model, one.other, one.other_point))
            for one in closures
        ]
        self._moved = np.array(
            [[moving_dofs(model, joint) for joint, _ in ends] for ends in self._ends]
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
        if not self.constraints:
            return np.zeros(0)
        data = data_of(self._model)
        pin.forwardKinematics(self._model, data, q)
        place, turn = self._places(data)
        rows = [place[:, 0] - place[:, 1]]
        rows += [pin.log3(a @ b.T) for a, b in turn[self._full]]
        follows = [q[one] - ratio * q[leader] - offset
                   for (one, leader), ratio, offset in self._followers]  # fmt: skip
        return np.concatenate([np.ravel(part) for part in (*rows, np.array(follows))])

    def jacobian(self, q: Array) -> Array:
        """Return H at q (nq,), shape (rows, nv)."""
        data = data_of(self._model)
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
        self,
        rows: Array,
        independent: IndexArray,
        drift: Array | None = None,
        held: Iterable[int] = (),
    ) -> tuple[Array, Array]:
        """Return N (nv, n), the motion per speed of the dofs `independent`, and n (nv,).

        A base that is not among them does not move. Of motions that loops leave free, the others
        take the least.

        Args:
            rows: H, shape (rows, nv).
            independent: dofs, shape (n,).
            drift: Ḣ v, shape (rows,); None: 0.
            held: dofs that do not move.
        """
        passive = np.setdiff1d(self._joint_dofs, [*independent, *held])
        motion, rest = np.zeros((self._model.nv, len(independent))), np.zeros(self._model.nv)
        motion[independent, np.arange(len(independent))] = 1.0
        if len(passive):
            inverse = np.linalg.pinv(rows[:, passive], rcond=SINGULAR)
            motion[passive] = -inverse @ rows[:, independent]
            if drift is not None:
                rest[passive] = -inverse @ drift
        return motion, rest

    def free_motions(self, q: Array, driven: IndexArray, held: Iterable[int] = ()) -> Array | None:
        """Return motions at q that leave the driven dofs (n,) and those `held` at rest.

        Orthonormal, shape (nv, k). None where the driven dofs are not free.
        """
        passive, rows = np.setdiff1d(self._joint_dofs, [*driven, *held]), self.jacobian(q)
        of_passive = rows[:, passive]
        ranks = [
            scipy.linalg.orth(part, rcond=SINGULAR).shape[1] if part.size else 0
            for part in (np.delete(rows, list(held), axis=1), of_passive)
        ]
        if ranks[0] > ranks[1]:
            return None
        motions = np.zeros((self._model.nv, len(passive) - ranks[1]))
        motions[passive] = scipy.linalg.null_space(of_passive, rcond=SINGULAR)
        return motions

    def leave_free(self, q: Array, driven: IndexArray) -> bool:
        """Return whether the driven dofs (n,) are free at q and determine all others."""
        passive, rows = np.setdiff1d(self._joint_dofs, driven), self.jacobian(q)
        ranks = [scipy.linalg.orth(part, rcond=SINGULAR).shape[1] if part.size else 0
                 for part in (rows, rows[:, passive])]  # fmt: skip
        return ranks == [len(passive), len(passive)]

    def closed(
        self,
        q: Array,
        driven: IndexArray,
        place: str = 'configuration',
        limits: Iterable[PositionLimit] = (),
    ) -> Array:
        """Return q (nq,) moved onto the constraints, by joints that are not driven.

        Where that does not suffice the driven joints move, too; bases do not. Joints stay within
        their limits.

        Args:
            q: where to begin, shape (nq,).
            driven: dofs of the driven joints, shape (n,).
            place: name of q in messages.
            limits: of the positions of joints.

        Raises:
            InvalidInput: there is no such configuration near.
        """
        low, high, passive = *self._bounds(limits), np.setdiff1d(self._joint_dofs, driven)
        none = np.full(self._model.nv, np.inf)
        outside = ''
        for moving, bound in [
            (passive, False), (passive, True), (self._joint_dofs, False), (self._joint_dofs, True),
        ]:  # fmt: skip
            ends = (low, high) if bound else (-none, none)
            found = self._settled(q, moving, *ends)
            if np.abs(self.error(found)).max(initial=0.0) > TOLERANCE:
                continue
            beyond = self._beyond(found, low, high)
            if not beyond:
                return found
            outside = outside or beyond
        if outside:
            reason = f'the constraints are met near it only with {outside}'
        else:
            reason = f'{self._worst(self.error(found))} are left near it'
        raise InvalidInput(
            f'{place}: {reason}; name a pose of all joints in which the constraints are met'
        )

    def _bounds(self, limits: Iterable[PositionLimit]) -> tuple[Array, Array]:
        """Return the least and the largest position of the joint of each dof, (nv,)."""
        low = np.full(self._model.nv, -np.inf)
        high = -low
        for limit in limits:
            if len(limit.joints) == 1:
                joint = self._model.joints[self._model.getJointId(limit.joints[0])]
                ends = limit.lower / limit.shares[0], limit.upper / limit.shares[0]
                low[joint.idx_v], high[joint.idx_v] = min(ends), max(ends)
        return low, high

    def _beyond(self, q: Array, low: Array, high: Array) -> str:
        """Name the joint that is farthest outside its limits, '' without one."""
        place = pin.difference(self._model, pin.neutral(self._model), q)
        outside = np.maximum(low - place, place - high)
        outside[np.isinf(low) & np.isinf(high)] = 0.0
        dof = int(outside.argmax()) if len(outside) else 0
        if not len(outside) or outside[dof] <= START_BEYOND:
            return ''
        name = next(
            str(self._model.names[i])
            for i, joint in enumerate(self._model.joints)
            if i and joint.idx_v == dof
        )
        return (
            f'joint {name} at {place[dof]:.4g}, outside of its limits {low[dof]:.4g} to '
            f'{high[dof]:.4g}'
        )

    def check(self, q: Array, place: str) -> None:
        """Raise InvalidInput if the error at q (nq,) is too large for a step to correct."""
        error = self.error(q)
        if np.abs(error).max(initial=0.0) > MAX_START_ERROR:
            raise InvalidInput(f'{place}: {self._worst(error)}: start where it holds')

    def _worst(self, error: Array) -> str:
        k = int(np.abs(error).argmax())
        return f'constraint {self._owners[k]}: {abs(error[k]):.3g} m or rad'

    def _settled(self, q: Array, moving: IndexArray, low: Array, high: Array) -> Array:
        """Return q after Newton steps of the dofs `moving`, which stop at their bounds."""
        model, free = self._model, moving
        for _ in range(MAX_ITERATIONS):
            error = self.error(q)
            if np.abs(error).max(initial=0.0) <= TOLERANCE:
                break
            step = np.zeros(model.nv)
            rows = self.jacobian(q)[:, free]
            step[free] = -np.linalg.pinv(rows, rcond=SINGULAR) @ error
            longest = float(np.abs(step).max(initial=0.0))
            if longest == 0.0:
                break
            step *= min(1.0, MAX_STEP / longest)
            if np.isfinite(low[free]).any() or np.isfinite(high[free]).any():
                # joints that meet a bound stay there
                place = pin.difference(model, pin.neutral(model), q)
                outside = (place + step < low) | (place + step > high)
                outside &= np.isin(np.arange(model.nv), moving)
                free = free[~outside[free]]
                step = np.where(outside, np.clip(place + step, low, high) - place, step)
            q = pin.integrate(model, q, step)
        return q

    def _places(self, data: pin.Data) -> tuple[Array, Array]:
        """Return points (n, 2, 3) and axes (n, 2, 3, 3) of both ends in world."""
        ends = [data.oMi[joint] * at for pair in self._ends for joint, at in pair]
        place = np.array([end.translation for end in ends]).reshape(-1, 2, 3)
        return place, np.array([end.rotation for end in ends]).reshape(-1, 2, 3, 3)

    def __repr__(self) -> str:
        return summary(self, constraints=[constraint.name for constraint in self.constraints])


def _across(vectors: Array) -> Array:
    """Return the matrices of x ×, shape (..., 3, 3)."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    none = np.zeros_like(x)
    rows = [[none, -z, y], [z, none, -x], [-y, x, none]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def _end(model: pin.Model, name: str, point: Sequence[float]) -> tuple[int, pin.SE3]:
    """Return the joint that carries a frame, and the placement of the point in its axes."""
    if name == UNIVERSE:
        raise InvalidInput(
            'constraints of a robot: a loop closed to the world: give the Simulator a PointAnchor'
        )
    frame = find_frame(model, name, 'frame of a loop:')
    return int(frame.parentJoint), frame.placement * pin.SE3(np.eye(3), np.array(point))


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


# --------------------------------------------------------------------------- constraints in a URDF
#
# <mimic> couples joints. A URDF is a tree: a loop is cut, and <loop_joint>, an element that other
# parsers ignore, joins the ends, in the form of Drake's first parser and of Isaac Sim:
#
#     <loop_joint name="knee" type="spherical">
#       <link1 link="rod" xyz="0 0 -0.2" rpy="0 0 0"/>
#       <link2 link="shank" xyz="0 0 0.04" rpy="0 0 0"/>
#       <axis xyz="0 1 0"/>  <!-- of revolute and continuous ones, in the axes of both ends -->
#     </loop_joint>
#
# Each becomes pairs of points that coincide: one for a ball joint, two on the axis of a hinge,
# three for a fixed joint.

SPACING = 0.1
"""Distance of the further points of a hinge, or of what is fixed, from the first [m]."""
BALLS, HINGES, FIXED = ('spherical', 'ball'), ('revolute', 'continuous'), ('fixed',)
"""Types of loop joints."""


def described_constraints(model: pin.Model, robot: Element, place: str) -> tuple[Constraint, ...]:
    """Return the constraints of a <robot>.

    Joints without a single coordinate (continuous ones) can neither mimic nor be mimicked: they
    are left out, with a warning.
    """
    single = {str(name) for name, j in zip(model.names, model.joints, strict=True) if j.nq == 1}
    joints = list(robot.iterfind('joint'))
    names = {joint.get('name', '') for joint in joints}
    constraints: list[Constraint] = []
    ignored = []
    for joint in joints:
        mimic, name = joint.find('mimic'), joint.get('name', '')
        if mimic is None or joint.get('type') == 'fixed':
            continue
        where, leader = f'{place}: joint {shown(name)}: <mimic>', mimic.get('joint', '')
        if leader not in names or leader == name:
            raise RobotDescriptionError(f'{where} joint = {shown(leader)}: expected another joint')
        if not {name, leader} <= single:
            ignored.append(f'joint {shown(name)} (of {shown(leader)})')
            continue
        ratio = number(mimic, 'multiplier', where) if mimic.get('multiplier') is not None else 1.0
        offset, own = number(mimic, 'offset', where), f'{name} (mimic)'
        constraints.append(JointCoupling(name, leader, ratio, offset, name=own))
    links = {link.get('name', '') for link in robot.iterfind('link')}
    for loop in robot.iterfind('loop_joint'):
        name = loop.get('name', '')
        where = f'{place}: loop_joint {shown(name)}'
        if not name or name in names:
            raise RobotDescriptionError(f'{where}: expected a name that no other joint has')
        names.add(name)
        constraints += _closures(loop, name, links, where)
    if ignored:
        warnings.warn(
            f'{place}: <mimic> needs joints with one coordinate, these move on their own: '
            f'{", ".join(ignored)}',
            stacklevel=4,
        )
    return tuple(constraints)


def _closures(loop: Element, name: str, links: set[str], where: str) -> Iterator[LoopClosure]:
    """Yield the points that a loop joint keeps together."""
    kind = loop.get('type')
    if kind not in BALLS + HINGES + FIXED:
        allowed = ', '.join(BALLS + HINGES + FIXED)
        raise RobotDescriptionError(f'{where}: type = {shown(kind)}, expected one of {allowed}')
    (one, here), (other, there) = (
        _loop_end(loop, tag, links, where) for tag in ('link1', 'link2')
    )
    if one == other:
        raise RobotDescriptionError(f'{where}: both ends are on link {shown(one)}')
    points = np.zeros((1, 3)) if kind in BALLS else SPACING * np.eye(3)  # in axes of both ends
    if kind in HINGES:
        axis = np.array(vector(loop.find('axis'), 'xyz', '1 0 0', f'{where}: <axis>'))
        length = float(np.linalg.norm(axis))
        if length == 0.0:
            raise RobotDescriptionError(f'{where}: <axis> xyz is 0 0 0, expected a direction')
        points = np.array([np.zeros(3), SPACING * axis / length])
    for k, offset in enumerate(points):
        a, b = here.act(offset), there.act(offset)
        own = name if k == 0 else f'{name} {k + 1}'
        yield LoopClosure(one, other, tuple(a.tolist()), tuple(b.tolist()), name=own)


def _loop_end(loop: Element, tag: str, links: set[str], where: str) -> tuple[str, pin.SE3]:
    """Return the link of an end, and where the end is in its axes."""
    ends = loop.findall(tag)
    link = ends[0].get('link', '') if len(ends) == 1 else None
    if link is None or link not in links:
        raise RobotDescriptionError(
            f'{where}: <{tag}> link = {shown(link)}: expected one link of the robot'
        )
    at = [np.array(vector(ends[0], key, '0 0 0', f'{where}: <{tag}>')) for key in ('xyz', 'rpy')]
    return link, pin.SE3(pin.rpy.rpyToMatrix(at[1]), at[0])
