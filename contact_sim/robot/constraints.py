"""What is said of a bilateral constraint; frozen, and made numbers in constraints/resolved.py.

Frames are named; points are in the axes of their frame [m], places in the world [m].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.arguments import listed
from contact_sim.errors import InvalidInput, of_type, shown
from contact_sim.numbers import finite, number_within, real_array
from contact_sim.robot.stabilisation import Baumgarte, Projection, Stabilisation

Array = NDArray[np.float64]
Point = tuple[float, float, float]
Pose = tuple[float, float, float, float, float, float, float]
"""Position [m] and quaternion x, y, z, w."""
ORIGIN: Point = (0.0, 0.0, 0.0)
ROUNDING = 1e-15
"""Error of the length of a quaternion that was made a unit one."""
TEXTS = 'name', 'frame', 'other', 'joint', 'leader'
"""Fields that are names."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """What all constraints have.

    Raises:
        InvalidInput: a value that is not what the field says.
    """

    name: str = ''
    """What reports call it; by default its kind and what it holds."""

    kind: ClassVar[str] = 'constraint'

    def __post_init__(self) -> None:
        for name in TEXTS:
            value = getattr(self, name, '')
            if not isinstance(value, str):
                raise InvalidInput(f'{self._what(name)} = {shown(value)}: expected text')
        if not self.name:
            self._set('name', f'{self.kind} {" ".join(self.holds)}'.strip())

    @property
    def holds(self) -> tuple[str, ...]:
        """Names of the frames or joints that it acts on."""
        return ()

    def renamed(self, prefix: str) -> Constraint:
        """Return the constraint of a robot whose names have a prefix, such as 'a/'."""
        names = {name: getattr(self, name) for name in TEXTS if hasattr(self, name)}
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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set('point', _point(self._what('point'), self.point))
        if self.at is not None:
            self._set('at', _point(self._what('at'), self.at))

    @property
    def holds(self) -> tuple[str, ...]:
        """The frame."""
        return (self.frame,)


@dataclass(frozen=True)
class FrameAnchor(_Positional):
    """A frame stays where it is, and does not turn: six rows, world axes."""

    frame: str
    at: Pose | None = None
    """Placement in world, a `pin.SE3` or position [m] and quaternion x, y, z, w; None: where the
    frame is when the constraint is added."""

    kind: ClassVar[str] = 'frame_anchor'

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is not None:
            self._set('at', _pose(self._what('at'), self.at))

    @property
    def holds(self) -> tuple[str, ...]:
        """The frame."""
        return (self.frame,)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('point', 'other_point'):
            self._set(name, _point(self._what(name), getattr(self, name)))

    @property
    def holds(self) -> tuple[str, ...]:
        """Both frames."""
        return self.frame, self.other

    def __str__(self) -> str:
        return f'{self.name}: {self.frame} to {self.other}'


@dataclass(frozen=True)
class JointLock(_Positional):
    """A joint with one degree of freedom does not move: one row."""

    joint: str
    at: float | None = None
    """Its position [rad or m]; None: where it is when the constraint is added."""

    kind: ClassVar[str] = 'joint_lock'

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is not None:
            self._set('at', finite(self._what('at'), self.at))

    @property
    def holds(self) -> tuple[str, ...]:
        """The joint."""
        return (self.joint,)


@dataclass(frozen=True)
class JointCoupling(_Positional):
    """A joint follows another one, position = ratio · leader + offset: a gear, one row."""

    joint: str
    leader: str
    ratio: float = 1.0
    offset: float = 0.0
    """[rad or m]."""

    kind: ClassVar[str] = 'joint_coupling'

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('ratio', 'offset'):
            self._set(name, finite(self._what(name), getattr(self, name)))
        if self.joint == self.leader:
            raise InvalidInput(f'{self._what("leader")} = {shown(self.leader)}: the joint itself')

    @property
    def holds(self) -> tuple[str, ...]:
        """Both joints."""
        return self.joint, self.leader

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

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set('velocity', finite(self._what('velocity'), self.velocity))
        if self.alpha is not None:
            self._set('alpha', number_within(self._what('alpha'), self.alpha, np.inf))

    @property
    def holds(self) -> tuple[str, ...]:
        """The joint."""
        return (self.joint,)


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


def checked_constraints(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """Return constraints as a tuple.

    Raises:
        InvalidInput: something else, or two of one name.
    """
    found = listed('constraints', constraints, 'a list of constraints')
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
    if abs(length - 1.0) > ROUNDING:  # else what is said twice would differ in its last bits
        array = np.concatenate([array[:3], array[3:] / length])
    x, y, z, a, b, c, w = array.tolist()
    return x, y, z, a, b, c, w
