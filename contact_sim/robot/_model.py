"""RobotModel: what moves, which joints are driven, and where it may touch the ground.

Conventions are Pinocchio's: q = [base position in the world, base quaternion x y z w, joints],
v = [base linear velocity in the base frame, base angular velocity in the base frame, joints].
A 'continuous' joint holds (cos, sin) of its angle in q; joint positions are always angles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import check_unique, checked, checked_fields
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, of_type, shown
from contact_sim.robot._actuators import Actuators, Values, actuators_of, driven_model
from contact_sim.robot._collision_pairs import MOST as MOST_MET
from contact_sim.robot._collision_pairs import (
    NO_COLLISIONS,
    Collisions,
    LinkPairs,
    Solid,
    self_collisions,
    solids_of,
)
from contact_sim.robot._constraints import ClosedLoops, Constraint
from contact_sim.robot._contact_points import (
    MOST,
    Approximation,
    ContactPoint,
    Foot,
    body_contacts,
    check_contact_points,
    contact_points_at,
    feet_of,
)
from contact_sim.robot._coordinates import (
    Coordinates,
    actuated_joint_names,
    check_actuated_joints,
    frozen,
    neutral_configuration,
)
from contact_sim.robot._gains import Gains, StandingGains, standing_gains
from contact_sim.robot._joint_limits import (
    PositionLimit,
    check_position_limits,
    held,
    joint_limits,
)
from contact_sim.robot._standing_pose import STANDING, has_floating_base, placed_on_ground

# --- Refuse a Pinocchio model with which no motion can be computed.

MOST_FREEDOMS = 400
"""Largest number of degrees of freedom: the memory of Pinocchio's data grows with its cube."""
SMALLEST_EIGENVALUE = 1e-12
"""Of the mass matrix scaled to a unit diagonal; robots of the catalogue are above 0.05."""


def check_joint_numbers(name: str, model: pin.Model) -> None:
    """Refuse mimic joints, and limits, damping, friction and placements that are no numbers.

    Raises:
        RobotDescriptionError: nothing moves, or the first number that is wrong.
    """
    if model.nv == 0:
        raise RobotDescriptionError(
            f'robot {name}: it has no joint that moves; give it one, or a floating base'
        )
    if model.nv > MOST_FREEDOMS:
        raise RobotDescriptionError(
            f'robot {name}: {model.nv} degrees of freedom, expected at most {MOST_FREEDOMS}'
        )
    _check_mimic(name, model)
    for what in ('damping', 'friction'):
        _check_each(name, model, what, largest=np.finfo(float).max)
    for what in ('effortLimit', 'velocityLimit'):
        _check_each(name, model, what, largest=np.inf)
    for i in range(1, model.njoints):
        joint, where = model.joints[i], f'robot {name}: joint {model.names[i]!r}'
        if not np.isfinite(model.jointPlacements[i].homogeneous).all():
            raise RobotDescriptionError(f'{where}: its placement is not finite')
        part = slice(joint.idx_q, joint.idx_q + joint.nq)
        lower, upper = model.lowerPositionLimit[part], model.upperPositionLimit[part]
        if not np.all(lower <= upper):
            raise RobotDescriptionError(
                f'{where}: position limits {lower.tolist()} and {upper.tolist()}, '
                'expected lower <= upper'
            )


def _check_mimic(name: str, model: pin.Model) -> None:
    for i in range(1, model.njoints):
        if model.joints[i].shortname() == 'JointModelMimic':
            raise RobotDescriptionError(
                f'robot {name}: joint {model.names[i]!r} mimics another, which is not modelled; '
                'build the Pinocchio model without mimic=True and add a JointCoupling '
                'with RobotModel.with_constraints'
            )


def _check_each(name: str, model: pin.Model, what: str, largest: float) -> None:
    values = np.asarray(getattr(model, what))
    bad = np.flatnonzero(~((values >= 0.0) & (values <= largest)))
    if bad.size:
        joint = next(i for i in range(1, model.njoints) if bad[0] < _end(model.joints[i]))
        finite = '' if largest == np.inf else 'finite '
        raise RobotDescriptionError(
            f'robot {name}: joint {model.names[joint]!r}: {what} = {values[bad[0]]}, '
            f'expected a {finite}number of at least 0'
        )


def _end(joint: pin.JointModel) -> int:
    return int(joint.idx_v + joint.nv)


def check_masses(name: str, model: pin.Model) -> None:
    """Refuse masses that leave a direction of motion without inertia, whatever the pose.

    Raises:
        RobotDescriptionError: a negative mass, or a mass matrix that cannot be inverted.
    """
    for i in range(1, model.njoints):
        mass = model.inertias[i].mass
        if not 0.0 <= mass < np.inf:
            raise RobotDescriptionError(
                f'robot {name}: the body of joint {model.names[i]!r} has mass {mass} kg, expected '
                'a finite value of at least 0'
            )
    generic = pin.integrate(model, pin.neutral(model), 0.1 + 0.01 * np.arange(model.nv))
    upper = np.triu(pin.crba(model, model.createData(), generic))
    if not _is_regular(upper + np.triu(upper, 1).T):
        raise RobotDescriptionError(
            f'robot {name}: the mass matrix is singular, so some joint moves bodies without mass '
            'or inertia; give every moving link a mass and an inertia above 0'
        )


def _is_regular(mass_matrix: np.ndarray) -> bool:
    own = np.diagonal(mass_matrix)
    if not (np.isfinite(mass_matrix).all() and np.all(own > 0.0)):
        return False
    scaled = mass_matrix / np.sqrt(np.outer(own, own))
    return bool(np.linalg.eigvalsh(scaled).min(initial=1.0) > SMALLEST_EIGENVALUE)


# --- RobotModel: what moves, which joints are driven, and where it may touch the ground.

__all__ = ['STANDING', 'ContactPoint', 'RobotModel']


@checked_fields
@dataclass(frozen=True, eq=False)
class RobotModel(Coordinates):
    """A robot as the simulation sees it; immutable, every array is read-only.

    Build one with `load_robot` or `RobotModel.from_pinocchio`.

    Raises:
        InvalidInput: a contact point or a joint listed twice or unusable.
        UnknownName: a joint or frame that the model does not have.
        RobotDescriptionError: masses, limits or placements with which no motion can be computed.
    """

    name: str
    pinocchio_model: pin.Model
    """Kinematic tree, masses and inertias; not to be changed."""
    joint_names: tuple[str, ...]
    """Actuated joints in Pinocchio order, length n_joints."""
    contact_points: tuple[ContactPoint, ...] = ()
    """Spheres that the ground may touch."""
    references: Mapping[str, Array] = field(default_factory=dict)
    """Reference poses by name, q of shape (nq,), the base not yet placed on the ground."""
    description: str = ''
    """URDF text, after xacro; empty for a robot made from a Pinocchio model."""
    package_dirs: tuple[str, ...] = ()
    """Folders that hold the packages of package:// URIs, and where relative meshes are."""
    body_points: tuple[ContactPoint, ...] = ()
    """Spheres of the rest of the body, which is no foot, that the ground may touch."""
    approximations: tuple[Approximation, ...] = ()
    """What became of the collision geometry of `body_points`, see `with_body_contacts`."""
    gear_ratios: Mapping[str, float] = field(default_factory=dict)
    """Gear ratios that the description states, by joint [-]."""
    declared_actuators: Actuators | None = None
    """Those of `with_actuators`; None: what the description says, see `actuators`."""
    position_limits: tuple[PositionLimit, ...] = ()
    """Joint limits."""
    collisions: Collisions = NO_COLLISIONS
    """Solids that may touch each other, see `with_self_collision`."""
    notes: tuple[str, ...] = ()
    """What loading decided where the description is silent, in words."""
    constraints: tuple[Constraint, ...] = ()
    """What holds its parts together besides the tree of joints: loops, joints that follow others.
    Every simulation of the robot has them."""

    def __post_init__(self) -> None:
        check_unique('joint', list(self.pinocchio_model.names))
        check_actuated_joints(self.pinocchio_model, self.joint_names)
        check_contact_points(self.pinocchio_model, self.contact_points, self.body_points)
        check_joint_numbers(self.name, self.pinocchio_model)
        check_masses(self.name, self.pinocchio_model)
        check_position_limits(self.pinocchio_model, self.position_limits)
        known = {STANDING: neutral_configuration(self.pinocchio_model)} | dict(self.references)
        references = {name: frozen(self._held_together(name, q)) for name, q in known.items()}
        object.__setattr__(self, 'references', references)

    def _held_together(self, name: str, q: Array) -> Array:
        """Return the pose q (nq,) in which limits and constraints hold what they hold."""
        model, driven = self.pinocchio_model, self.joint_velocity_index
        q = held(model, self.position_limits, self.checked_configuration(q))
        return self.loops.closed(q, driven, f'robot {self.name}, pose {shown(name)}')

    def __repr__(self) -> str:
        base = 'floating' if self.floating_base else 'fixed'
        feet = len(self.feet)
        return f'RobotModel({shown(self.name)}, {base} base, {self.n_joints} joints, {feet} feet)'

    @staticmethod
    def from_pinocchio(
        model: pin.Model,
        contact_points: Iterable[ContactPoint | str] = (),
        actuated_joints: Iterable[str] | None = None,
        name: str = 'robot',
    ) -> RobotModel:
        """Return a robot made from a copy of `model`.

        Args:
            model: any Pinocchio model, with a free-flyer root or a fixed base.
            contact_points: contact spheres, or names of frames: a point at the frame's origin.
            actuated_joints: names of driven joints; None means every joint with one degree of
                freedom. Joints with more (a ball joint, a second free body) are passive.
            name: what to call the robot.

        Raises:
            InvalidInput, UnknownName, RobotDescriptionError: see `RobotModel`.
        """
        if not isinstance(model, pin.Model):
            raise InvalidInput(f'model = {shown(model)}: expected a pinocchio.Model')
        own = pin.Model(model)
        return RobotModel(
            name=name,
            pinocchio_model=own,
            joint_names=actuated_joint_names(own, actuated_joints),
            contact_points=contact_points_at(own, 'contact_points', contact_points),
            position_limits=joint_limits(own),
        )

    @checked
    def with_body_contacts(
        self, links: Iterable[str] | None = None, most: int = MOST, edge_radius: float = 0.0
    ) -> RobotModel:
        """Return the robot with contact points on the collision geometry of its links.

        Args:
            links: names of links, which replace those of a call before; None: all that move, have
                collision geometry and are no feet.
            most: largest number of corners of one moving body; `approximations` tells what that
                leaves out.
            edge_radius: boxes have edges of this radius [m]: they roll over them smoothly.

        Raises:
            InvalidInput, UnknownName, RobotDescriptionError: see `body_contacts`.
        """
        feet = {point.frame for point in self.contact_points}
        points, approximations = body_contacts(
            self.pinocchio_model, self.description, self.package_dirs, links, feet, most,
            edge_radius,
        )  # fmt: skip
        return replace(self, body_points=points, approximations=approximations)

    def with_self_collision(
        self, links: LinkPairs | None = None, srdf: str | Path | None = None, most: int = MOST_MET
    ) -> RobotModel:
        """Return the robot with links that may touch each other.

        Args:
            links: names of two links each; None: all that can, but those that the SRDF disables.
            srdf: path or text of an SRDF.
            most: contacts that they may have at once.

        Raises:
            InvalidInput, UnknownName, RobotDescriptionError: see `self_collisions`.
        """
        model, q = self.pinocchio_model, self.references[STANDING]
        found = self_collisions(model, self.solids, q, links, srdf, most)
        return replace(self, collisions=found)

    @cached_property
    def solids(self) -> tuple[Solid, ...]:
        """Collision geometry of all links as spheres, capsules and boxes."""
        model, description = self.pinocchio_model, self.description
        return solids_of(model, description, self.package_dirs, self.contact_points)

    def with_actuators(self, actuators: Actuators | None = None, **changes: Values) -> RobotModel:
        """Return the robot with other actuators, given as a whole, by fields of them, or both.

        A field is a number, one per joint, or numbers by joint, where the other joints keep
        theirs. The `pinocchio_model` of the robot has their numbers, too.

        Raises:
            InvalidInput, UnknownName: see `Actuators.changed` and `driven_model`.
        """
        given = self.actuators if actuators is None else of_type('actuators', actuators, Actuators)
        chosen = given.changed(**changes)
        names, dofs = self.joint_names, self.joint_velocity_index
        model = driven_model(self.pinocchio_model, names, dofs, chosen)
        return replace(self, pinocchio_model=model, declared_actuators=chosen)

    @cached_property
    def actuators(self) -> Actuators:
        """What stands between commanded efforts and joints: declared, else as described."""
        return self.declared_actuators or actuators_of(
            self.pinocchio_model, self.joint_names, self.joint_velocity_index, self.gear_ratios
        )

    @checked
    def with_position_limits(self, limits: Iterable[PositionLimit]) -> RobotModel:
        """Return the robot with these limits in place of its own; none of them: ().

        Raises:
            InvalidInput, UnknownName: joints that it does not have, or with several coordinates.
        """
        return replace(self, position_limits=tuple(limits))

    @checked
    def with_constraints(self, constraints: Iterable[Constraint]) -> RobotModel:
        """Return the robot with these constraints in place of its own; none of them: ().

        Its reference poses are moved onto them. Which joints are actuated remains.

        Raises:
            InvalidInput, UnknownName: see `ClosedLoops`; poses in which they cannot be met.
        """
        return replace(self, constraints=tuple(constraints))

    @cached_property
    def loops(self) -> ClosedLoops:
        """Rows of its constraints, and how passive joints move with the actuated ones."""
        return ClosedLoops(self.pinocchio_model, self.constraints)

    @property
    def candidates(self) -> tuple[ContactPoint, ...]:
        """All spheres that the ground may touch: contact points, then body points."""
        return self.contact_points + self.body_points

    @cached_property
    def feet(self) -> tuple[Foot, ...]:
        """Groups of contact points that share a frame, in the order of their first points."""
        return feet_of(self.contact_points)

    @cached_property
    def floating_base(self) -> bool:
        """Whether the base moves freely: the first joint is a free-flyer."""
        return has_floating_base(self.pinocchio_model)

    @cached_property
    def base_frame(self) -> str:
        """Name of the root link, or 'universe' where the model has none."""
        root_joint = 1 if self.floating_base else 0
        bodies = (f for f in self.pinocchio_model.frames if f.type == pin.FrameType.BODY)
        return next((str(f.name) for f in bodies if f.parentJoint == root_joint), 'universe')

    @cached_property
    def total_mass(self) -> float:
        """Mass of all bodies that can move [kg]."""
        return float(pin.computeTotalMass(self.pinocchio_model))

    @property
    def default_gains(self) -> Gains:
        """PD gains with which the robot stands: kp [N m/rad], kd [N m s/rad], each (n_joints,).

        Stable under explicit PD at time steps up to `gains_time_step` (theory 4.5). New arrays
        each time.
        """
        gains = self._standing_gains
        return gains.stiffness.copy(), gains.damping.copy()

    @property
    def gains_time_step(self) -> float:
        """Largest time step at which `default_gains` are stable [s], from 1 to 5 ms."""
        return self._standing_gains.time_step

    @property
    def reference_configurations(self) -> tuple[str, ...]:
        """Names of the reference poses; 'standing' is always among them."""
        return tuple(self.references)

    def reference_configuration(self, name: str = STANDING) -> Array:
        """Return a reference pose whose lowest contact point is on z = 0, q of shape (nq,).

        A robot with a fixed base, or without contact points, keeps the base where it is.

        Raises:
            UnknownName: no pose of that name.
        """
        if not isinstance(name, str) or name not in self.references:
            raise UnknownName(f'reference pose of robot {self.name}', name, self.references)
        return placed_on_ground(self.pinocchio_model, self.candidates, self.references[name])

    @cached_property
    def _standing_gains(self) -> StandingGains:
        standing, joints = self.references[STANDING], self.joint_velocity_index
        return standing_gains(
            self.pinocchio_model, joints, standing, self.contact_points, self.loops
        )
