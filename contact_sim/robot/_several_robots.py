"""Several robots and loose bodies on one ground: one model with a tree for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TypeVar

import numpy as np
import pinocchio as pin

from contact_sim._types import Array, IndexArray
from contact_sim._validation import as_tuple, checked, checked_fields, positive, real_array
from contact_sim.errors import InvalidInput, UnknownName, one_line, shown
from contact_sim.robot._actuators import Actuators, Gains, quantities
from contact_sim.robot._collision_pairs import MOST, Collisions, Solid, ellipsoid_on
from contact_sim.robot._constraints import UNIVERSE
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING

# ------------------------------------------------------------------------------------ loose bodies


@checked
def loose_box(
    size: Sequence[float],
    mass: float,
    name: str = 'box',
    inertia: Sequence[float] | None = None,
    centre_of_mass: Sequence[float] = (0.0, 0.0, 0.0),
) -> RobotModel:
    """Return a box that moves freely and touches the ground at its corners.

    Args:
        size: lengths of its edges [m], three numbers.
        mass: [kg].
        name: its name.
        inertia: ixx, iyy, izz, ixy, ixz, iyz about the centre of mass, along its edges [kg m²];
            None: of even density.
        centre_of_mass: from the middle of the box [m].

    Raises:
        InvalidInput: sizes or a mass that are not finite numbers > 0, a wrong number of them.
        RobotDescriptionError: an inertia that no body can have.
    """
    edges = as_tuple('size', size, 'a list of three lengths')
    if len(edges) != 3:
        raise InvalidInput(f'size = {shown(size)} m: expected three lengths')
    x, y, z = (positive('size', edge, 'm') for edge in edges)
    square = np.array([y * y + z * z, x * x + z * z, x * x + y * y]) / 12.0
    inertial = _inertial(mass, square, inertia, centre_of_mass)
    return _loose(name, f'<box size="{x!r} {y!r} {z!r}"/>', inertial)


@checked
def loose_ball(
    radius: float,
    mass: float,
    name: str = 'ball',
    inertia: Sequence[float] | None = None,
    centre_of_mass: Sequence[float] = (0.0, 0.0, 0.0),
) -> RobotModel:
    """Return a ball that moves freely.

    Args:
        radius: [m].
        mass: [kg].
        name: its name.
        inertia: ixx, iyy, izz, ixy, ixz, iyz about the centre of mass [kg m²]; None: of a solid
            ball of even density.
        centre_of_mass: from the middle of the ball [m].

    Raises:
        InvalidInput: a radius or mass that is not a finite number > 0.
        RobotDescriptionError: an inertia that no body can have.
    """
    r = positive('radius', radius, 'm')
    inertial = _inertial(mass, np.full(3, 0.4 * r * r), inertia, centre_of_mass)
    return _loose(name, f'<sphere radius="{r!r}"/>', inertial)


@checked
def loose_ellipsoid(
    semi_axes: Sequence[float],
    mass: float,
    name: str = 'ellipsoid',
    inertia: Sequence[float] | None = None,
    centre_of_mass: Sequence[float] = (0.0, 0.0, 0.0),
) -> RobotModel:
    """Return an ellipsoid that moves freely on planes: (x/a)² + (y/b)² + (z/c)² = 1.

    Its contact is exact on grounds of planes; other grounds and other bodies are refused. The
    viewer shows the largest box in it. A rattleback is one whose axes of inertia are not those of
    its surface.

    Args:
        semi_axes: a, b, c [m].
        mass: [kg].
        name: its name.
        inertia: ixx, iyy, izz, ixy, ixz, iyz about the centre of mass, along the axes of the
            surface [kg m²]; None: of even density.
        centre_of_mass: from the centre of the surface [m].

    Raises:
        InvalidInput: semi-axes or a mass that are not finite numbers > 0, a wrong number of them.
        RobotDescriptionError: an inertia that no body can have.
    """
    axes = tuple(positive('semi_axes', axis, 'm') for axis in _numbers('semi_axes', semi_axes, 3))
    squares = np.square(axes)
    inertial = _inertial(mass, 0.2 * (squares.sum() - squares), inertia, centre_of_mass)
    box = ' '.join(repr(2.0 * axis / 3.0**0.5) for axis in axes)
    robot = load_robot(
        f'<robot name="{name}"><link name="{name}">{inertial}'
        f'<visual><geometry><box size="{box}"/></geometry></visual></link></robot>',
        feet=(),
    )
    return replace(robot, collisions=ellipsoid_on(name, 'root_joint', axes))


def _numbers(what: str, values: Sequence[float], count: int) -> tuple[float, ...]:
    numbers = real_array(what, values)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise InvalidInput(f'{what} = {shown(values)}: expected {count} finite numbers')
    return tuple(numbers.tolist())


def _inertial(
    mass: float, square: Array, inertia: Sequence[float] | None, centre_of_mass: Sequence[float]
) -> str:
    """Return <inertial>; without an `inertia` moments of `square` per mass [m²], (3,)."""
    m, x = positive('mass', mass, 'kg'), _numbers('centre_of_mass', centre_of_mass, 3)
    moments = (*(m * square).tolist(), 0.0, 0.0, 0.0)
    if inertia is not None:
        moments = _numbers('inertia', inertia, 6)
    names = 'ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'
    values = ' '.join(f'{key}="{value!r}"' for key, value in zip(names, moments, strict=True))
    return (
        f'<inertial><origin xyz="{x[0]!r} {x[1]!r} {x[2]!r}"/><mass value="{m!r}"/>'
        f'<inertia {values}/></inertial>'
    )


def _loose(name: str, geometry: str, inertial: str) -> RobotModel:
    """Return a free body with this geometry."""
    return load_robot(
        f'<robot name="{name}"><link name="{name}">{inertial}'
        f'<visual><geometry>{geometry}</geometry></visual>'
        f'<collision><geometry>{geometry}</geometry></collision></link></robot>',
        feet=(),
        body_contacts=False,
    ).with_body_contacts()


# ----------------------------------------------------------------------------------- joined robots

SEPARATOR = '/'
"""Between the name of a robot and the names of its joints, links and contact points."""
Placed = TypeVar('Placed', ContactPoint, Solid)
"""What has a name, a frame and a joint."""


@dataclass(frozen=True)
class Part:
    """One of the robots that were joined."""

    name: str
    """'' for at most one of them, whose names of joints and links stay as they are."""
    robot: RobotModel
    place: tuple[float, ...] = (0.0, 0.0, 0.0)
    """x and y [m] of the origin of its reference poses in world, and yaw [rad]; of a fixed base
    then perhaps z [m], roll and pitch [rad]."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or SEPARATOR in self.name:
            raise InvalidInput(f'joined: robot {self.name!r}: expected a name without a slash')
        if not isinstance(self.robot, RobotModel):
            raise InvalidInput(f'joined: {self.name} = {shown(self.robot)}: expected a RobotModel')
        place = real_array(f'joined: place of {self.name}', self.place)
        shapes = ((2,), (3,)) if self.robot.floating_base else ((2,), (3,), (6,))
        if place.shape not in shapes or not np.isfinite(place).all():
            raise InvalidInput(
                f'joined: place of {self.name} = {shown(self.place)}: expected x, y, yaw, and of '
                'a fixed base perhaps z, roll, pitch'
            )
        numbers = place.tolist()
        object.__setattr__(
            self, 'place', tuple(numbers if len(numbers) > 3 else (*numbers, 0.0)[:3])
        )

    @property
    def placement(self) -> pin.SE3:
        """Placement of the origin of its reference poses in world."""
        x, y, yaw, z, roll, pitch = (*self.place, 0.0, 0.0, 0.0)[:6]
        return pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, yaw), np.array([x, y, z]))

    def qualified_name(self, name: str) -> str:
        """Return the name of something of this robot among all robots: `robot/name`."""
        return _prefix(self.name) + name

    def qualified(self, item: Placed) -> Placed:
        """Return a contact point or a solid of this robot with its qualified names."""
        name, frame, joint = map(self.qualified_name, (item.name, item.frame, item.joint))
        if item.joint != UNIVERSE:
            return replace(item, name=name, frame=frame, joint=joint)
        return replace(self._moved(item), name=name, frame=frame)

    def _moved(self, item: Placed) -> Placed:
        """Return what is fixed to the world where this robot is."""
        if isinstance(item, ContactPoint):
            return replace(item, offset=self.placement.act(item.offset))  # type: ignore[call-arg]
        moved = self.placement * item.placement
        centre, rotation = moved.translation.tolist(), moved.rotation.ravel().tolist()
        return replace(item, centre=tuple(centre), rotation=tuple(rotation))


@checked_fields
@dataclass(frozen=True, eq=False, repr=False)
class JoinedRobots(RobotModel):
    """Several robots in one model, concatenated in q, v and efforts; see `joined`.

    Names are qualified: `robot/name`. Robots touch each other only with `against_each_other`.
    """

    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if sum(part.robot.nq for part in self.parts) != self.nq:
            raise InvalidInput('JoinedRobots: parts do not make up the model; use joined(...)')

    def reference_configuration(self, name: str = STANDING) -> Array:
        """Return this pose of every robot that has it, 'standing' of the others, q (nq,).

        Raises:
            UnknownName: no robot has a pose of that name.
        """
        self._check_pose(name)
        poses = []
        for part in self.parts:
            q = _pose(part.robot, name)
            if part.robot.floating_base:
                q[:7] = pin.SE3ToXYZQUAT(part.placement * pin.XYZQUATToSE3(q[:7]))
            poses.append(q)
        return np.concatenate(poses)

    @property
    def default_gains(self) -> Gains:
        """PD gains of every robot as it stands alone, kp and kd, each (n_joints,)."""
        own = [part.robot.default_gains for part in self.parts]
        kp, kd = (np.concatenate(gains) for gains in zip(*own, strict=True))
        return kp, kd

    @property
    def gains_time_step(self) -> float:
        """Largest time step at which the gains of all robots are stable [s]."""
        return min(part.robot.gains_time_step for part in self.parts)

    @checked
    def of(self, name: str) -> tuple[slice, slice, slice]:
        """Return where a robot is in q, in v and among the actuated joints.

        Raises:
            UnknownName: no robot of that name.
        """
        for part in parts_of(self):
            if part.name == name:
                return part.q, part.v, part.joints
        raise UnknownName('joined robot', name, [part.name for part in self.parts])


@checked
def joined(
    robots: Mapping[str, RobotModel],
    places: Mapping[str, Sequence[float]] | None = None,
    name: str = 'joined',
    against_each_other: bool = False,
    most: int = MOST,
) -> JoinedRobots:
    """Return one model of several robots and loose bodies, each a separate tree.

    Args:
        robots: by the names they have among each other; names of joints and links of one whose
            name is '' stay as they are.
        places: x, y [m] and yaw [rad] of their reference poses in world; the origin if left out.
            A fixed base may have z [m], roll and pitch [rad] as well.
        name: name of all together.
        against_each_other: whether their links may touch those of the others.
        most: contacts between bodies that all of them may have at once.

    Raises:
        InvalidInput: no robots, a name or a place that cannot be used.
        UnknownName: a place of no robot.
    """
    parts = _parts(robots, {} if places is None else places)
    model = _joined_model(parts)
    poses = dict.fromkeys(pose for part in parts for pose in part.robot.references)
    joints = tuple(part.qualified_name(j) for part in parts for j in part.robot.joint_names)
    actuators = [part.robot.actuators for part in parts]
    return JoinedRobots(
        name=name,
        pinocchio_model=model,
        joint_names=joints,
        contact_points=tuple(
            part.qualified(point) for part in parts for point in part.robot.contact_points
        ),
        references={
            pose: np.concatenate([_pose(part.robot, pose) for part in parts]) for pose in poses
        },
        declared_actuators=Actuators(
            joint_names=joints,
            **{
                quantity: np.concatenate([getattr(own, quantity) for own in actuators])
                for quantity in quantities()
            },
        ),
        position_limits=tuple(
            replace(limit, joints=tuple(map(part.qualified_name, limit.joints)))
            for part in parts
            for limit in part.robot.position_limits
        ),
        collisions=_collisions(parts, against_each_other, most),
        notes=tuple(
            f'{part.name}: {note}' if part.name else note
            for part in parts
            for note in part.robot.notes
        ),
        constraints=tuple(
            one.renamed(part.qualified_name(''))
            for part in parts
            for one in part.robot.constraints
        ),
        springs=tuple(
            replace(one, joint=part.qualified_name(one.joint))
            for part in parts
            for one in part.robot.springs
        ),
        parts=parts,
    )


def _parts(
    robots: Mapping[str, RobotModel], places: Mapping[str, Sequence[float]]
) -> tuple[Part, ...]:
    """Return the robots at their places."""
    unknown = sorted(set(places) - set(robots))
    if not robots:
        raise InvalidInput('joined: expected at least one robot')
    if unknown:
        raise UnknownName('joined robot in places', unknown[0], robots)
    parts = tuple(
        Part(key, robot, tuple(places.get(key, (0.0, 0.0, 0.0)))) for key, robot in robots.items()
    )
    prefixes = tuple(_prefix(part.name) for part in parts if part.name)
    for part in parts:
        for frame in part.robot.pinocchio_model.frames if not part.name else ():
            if prefixes and frame.name.startswith(prefixes):
                raise InvalidInput(
                    f'joined: {shown(frame.name)} of the robot without a name is like a link of '
                    'another robot: give that one another name'
                )
    return parts


def _prefix(name: str) -> str:
    """Return what qualified names of a robot begin with."""
    return f'{name}{SEPARATOR}' if name else ''


def _joined_model(parts: tuple[Part, ...]) -> pin.Model:
    """Return the model of all parts, one behind the other."""
    models = []
    for part in parts:  # a floating base is placed by its q
        at = pin.SE3.Identity() if part.robot.floating_base else part.placement
        models.append(pin.appendModel(pin.Model(), _renamed(part), 0, at))
    # neighbours in pairs: each model is copied log n times, and not n
    while len(models) > 1:
        odd = models[len(models) // 2 * 2 :]
        pairs = zip(models[::2], models[1::2], strict=False)
        models = [pin.appendModel(a, b, 0, pin.SE3.Identity()) for a, b in pairs] + odd
    models[0].gravity = parts[0].robot.pinocchio_model.gravity
    return models[0]


def _renamed(part: Part) -> pin.Model:
    model = pin.Model(part.robot.pinocchio_model)
    for i in range(1, model.njoints):
        model.names[i] = part.qualified_name(model.names[i])
    links = {frame.name for frame in model.frames if frame.type != pin.FrameType.JOINT}
    for frame in model.frames:
        if frame.type == pin.FrameType.JOINT and frame.name in links:
            frame.name = f'{frame.name} (joint)'  # appendModel finds frames by their names alone
        if frame.name != UNIVERSE:
            frame.name = part.qualified_name(frame.name)
    return model


def _pose(robot: RobotModel, name: str) -> Array:
    return robot.reference_configuration(name if name in robot.references else STANDING)


def _collisions(parts: tuple[Part, ...], against_each_other: bool, most: int) -> Collisions:
    """Return the solids of all robots, the pairs of each and, if wanted, those between them."""
    solids: list[tuple[Solid, ...]] = []
    pairs: list[tuple[str, str]] = []
    grounded: list[str] = []
    published: list[str] = []
    for part in parts:
        own = part.robot.collisions
        chosen = own.solids or (part.robot.solids if against_each_other else ())
        solids.append(tuple(map(part.qualified, chosen)))
        pairs += [(part.qualified_name(a), part.qualified_name(b)) for a, b in own.pairs]
        grounded += map(part.qualified_name, own.grounded)
        published += map(part.qualified_name, own.published)
    if against_each_other:
        pairs += [
            (a.name, b.name)
            for one, other in combinations(solids, 2)
            for a in one
            for b in other
            if a.joint != b.joint  # the world, for what is fixed to it of both
        ]
    return Collisions(
        tuple(chain.from_iterable(solids)), tuple(pairs), most, tuple(grounded), tuple(published)
    )


# ---------------------------------------------------------------- the robots of a world one by one


@dataclass(frozen=True, eq=False)
class RobotPart:
    """One of the robots in a world; a robot that is alone is the only part."""

    number: int
    """Place among the parts."""
    name: str
    """Name among the others; '' alone, or of one whose names stay as they are."""
    robot: RobotModel
    """The robot as it is alone, with names of its own."""
    q: slice
    """Its configuration in q."""
    v: slice
    """Its velocity in v."""
    joints: slice
    """Its actuated joints among all, in efforts and commands."""
    contact_points: IndexArray
    """Its contact points: indices into those of all."""
    others: tuple[str, ...] = ()
    """Names of the others."""

    @property
    def alone(self) -> bool:
        """Whether the world has this robot only, under its own names."""
        return not self.name and not self.others

    @property
    def prefix(self) -> str:
        """Prefix of its qualified names, such as 'a/'; '' without a name."""
        return _prefix(self.name)

    def qualified_name(self, name: str) -> str:
        """Return the name of something of this robot among all robots: `robot/name`."""
        return self.prefix + name

    called = qualified_name  # former name

    def own(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the qualified names of this robot without their prefix."""
        prefix, foreign = self.prefix, tuple(map(_prefix, filter(None, self.others)))
        return tuple(
            name.removeprefix(prefix)
            for name in names
            if name.startswith(prefix) and (self.name or not name.startswith(foreign))
        )

    __repr__ = one_line


def parts_of(robot: RobotModel) -> tuple[RobotPart, ...]:
    """Return the robots that were joined, or the one that is alone, in the order of q."""
    alone = [('', robot)]
    named = [(p.name, p.robot) for p in robot.parts] if isinstance(robot, JoinedRobots) else alone
    feet = 0
    first = np.zeros(3, dtype=int)
    parts = []
    for number, (name, own) in enumerate(named):
        last = first + (own.nq, own.nv, own.n_joints)
        points = np.arange(feet, feet + len(own.contact_points), dtype=np.intp)
        points.setflags(write=False)
        q, v, joints = map(slice, first.tolist(), last.tolist())
        others = tuple(other for k, (other, _) in enumerate(named) if k != number)
        parts.append(RobotPart(number, name, own, q, v, joints, points, others))
        first, feet = last, feet + len(own.contact_points)
    return tuple(parts)


def map_robots(robot: RobotModel, change: Callable[[RobotPart], RobotModel]) -> RobotModel:
    """Return the world with `change` applied to each robot, at the same place."""
    parts = parts_of(robot)
    changed = [change(part) for part in parts]
    if all(new is part.robot for new, part in zip(changed, parts, strict=True)):
        return robot
    if not isinstance(robot, JoinedRobots):
        return changed[0]
    places = {part.name: part.place for part in robot.parts}
    other = joined(dict(zip(places, changed, strict=True)), places, robot.name)
    return replace(other, collisions=robot.collisions)
