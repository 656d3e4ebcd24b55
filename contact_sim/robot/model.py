"""RobotModel: what moves, which joints are driven, and where it may touch the ground.

Conventions are Pinocchio's: q = [base position in the world, base quaternion x y z w, joints],
v = [base linear velocity in the base frame, base angular velocity in the base frame, joints].
A 'continuous' joint holds (cos, sin) of its angle in q; joint positions are always angles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import atan2
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim.errors import InvalidInput, UnknownName, of_type
from contact_sim.numbers import real_array
from contact_sim.robot.actuators import Actuators, Values, actuators_of, driven_model
from contact_sim.robot.body_points import MOST, Approximation, body_contacts
from contact_sim.robot.configuration import (
    checked_vector,
    neutral_configuration,
    normalised,
    unit_blocks,
    wrong_shape,
)
from contact_sim.robot.contact_point import Array, ContactPoint, check_unique
from contact_sim.robot.feet import Foot, check_contact_points, contact_points_at, feet_of
from contact_sim.robot.gains import Gains, standing_gains
from contact_sim.robot.joints import actuated_joint_names, check_actuated_joints
from contact_sim.robot.masses import check_joint_numbers, check_masses
from contact_sim.robot.placement import has_floating_base, placed_on_ground
from contact_sim.robot.position_limits import (
    PositionLimit,
    check_position_limits,
    followed,
    joint_limits,
)

IndexArray = npt.NDArray[np.intp]
__all__ = ['ContactPoint', 'RobotModel']

STANDING = 'standing'
"""Name of the reference pose that every robot has."""


@dataclass(frozen=True, eq=False)
class RobotModel:
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
    """Folders that hold the packages of the description's package:// URIs."""
    body_points: tuple[ContactPoint, ...] = ()
    """Spheres of the rest of the body, which is no foot, that the ground may touch."""
    approximations: tuple[Approximation, ...] = ()
    """What became of the collision geometry of `body_points`, see `with_body_contacts`."""
    gear_ratios: Mapping[str, float] = field(default_factory=dict)
    """Gear ratios that the description states, by joint [-]."""
    declared_actuators: Actuators | None = None
    """Those of `with_actuators`; None: what the description says, see `actuators`."""
    position_limits: tuple[PositionLimit, ...] = ()
    """Joint limits, and joints that follow others."""

    def __post_init__(self) -> None:
        check_unique('joint', list(self.pinocchio_model.names))
        check_actuated_joints(self.pinocchio_model, self.joint_names)
        check_contact_points(self.pinocchio_model, self.contact_points, self.body_points)
        check_joint_numbers(self.name, self.pinocchio_model)
        check_masses(self.name, self.pinocchio_model)
        check_position_limits(self.pinocchio_model, self.position_limits)
        known = {STANDING: neutral_configuration(self.pinocchio_model)} | dict(self.references)
        model, limits = self.pinocchio_model, self.position_limits
        poses = {name: self.checked_configuration(q) for name, q in known.items()}
        references = {name: _frozen(followed(model, limits, q)) for name, q in poses.items()}
        object.__setattr__(self, 'references', references)

    def __repr__(self) -> str:
        base = 'floating' if self.floating_base else 'fixed'
        feet = len(self.feet)
        return f'RobotModel({self.name!r}, {base} base, {self.n_joints} joints, {feet} feet)'

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
            raise InvalidInput(f'model = {model!r}: expected a pinocchio.Model')
        own = pin.Model(model)
        return RobotModel(
            name=name,
            pinocchio_model=own,
            joint_names=actuated_joint_names(own, actuated_joints),
            contact_points=contact_points_at(own, 'contact_points', contact_points),
            position_limits=joint_limits(own),
        )

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

    def with_position_limits(self, limits: Iterable[PositionLimit]) -> RobotModel:
        """Return the robot with these limits in place of its own; none of them: ().

        Raises:
            InvalidInput, UnknownName: joints that it does not have, or with several coordinates.
        """
        return replace(self, position_limits=tuple(limits))

    @property
    def candidates(self) -> tuple[ContactPoint, ...]:
        """All spheres that the ground may touch: contact points, then body points."""
        return self.contact_points + self.body_points

    @property
    def nq(self) -> int:
        """Length of q."""
        return int(self.pinocchio_model.nq)

    @property
    def nv(self) -> int:
        """Length of v."""
        return int(self.pinocchio_model.nv)

    @property
    def n_joints(self) -> int:
        """Number of actuated joints."""
        return len(self.joint_names)

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

    @cached_property
    def joint_velocity_index(self) -> IndexArray:
        """Index into v of each actuated joint, shape (n_joints,)."""
        return _frozen(np.array([joint.idx_v for joint in self._joints], dtype=np.intp))

    @cached_property
    def selection_matrix(self) -> Array:
        """Selection matrix S (n_joints, nv): joint velocities = S v, force = S.T @ effort."""
        selection = np.zeros((self.n_joints, self.nv))
        selection[np.arange(self.n_joints), self.joint_velocity_index] = 1.0
        return _frozen(selection)

    @cached_property
    def continuous_joints(self) -> npt.NDArray[np.bool_]:
        """Mask of the actuated joints that turn without end, angles in (-pi, pi]; (n_joints,)."""
        return _frozen(np.array([joint.nq == 2 for joint in self._joints], dtype=bool))

    @cached_property
    def effort_limit(self) -> Array:
        """Largest effort of each actuated joint [N m or N], shape (n_joints,)."""
        return _frozen(self.pinocchio_model.effortLimit[self.joint_velocity_index])

    @cached_property
    def velocity_limit(self) -> Array:
        """Largest speed of each actuated joint [rad/s or m/s], shape (n_joints,)."""
        return _frozen(self.pinocchio_model.velocityLimit[self.joint_velocity_index])

    @cached_property
    def lower_position_limit(self) -> Array:
        """Smallest position [rad or m], -inf for continuous joints, shape (n_joints,)."""
        limit = self.pinocchio_model.lowerPositionLimit[self._joint_position_index]
        return _frozen(np.where(self.continuous_joints, -np.inf, limit))

    @cached_property
    def upper_position_limit(self) -> Array:
        """Largest position [rad or m], inf for continuous joints, shape (n_joints,)."""
        limit = self.pinocchio_model.upperPositionLimit[self._joint_position_index]
        return _frozen(np.where(self.continuous_joints, np.inf, limit))

    @cached_property
    def joint_damping(self) -> Array:
        """Viscous damping of every velocity coordinate [N m s/rad], shape (nv,)."""
        return _frozen(self.pinocchio_model.damping)

    @cached_property
    def joint_friction(self) -> Array:
        """Dry friction of every velocity coordinate [N m], shape (nv,)."""
        return _frozen(self.pinocchio_model.friction)

    @property
    def default_gains(self) -> Gains:
        """PD gains with which the robot stands: kp [N m/rad], kd [N m s/rad], each (n_joints,).

        Stable under explicit PD at time steps up to 5 ms (robot/gains.py). New arrays each time.
        """
        kp, kd = self._standing_gains
        return kp.copy(), kd.copy()

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

    def joint_positions(self, q: npt.ArrayLike) -> Array:
        """Return the positions of the actuated joints at `q` (nq,) [rad or m], shape (n_joints,).

        The angle of a continuous joint lies in (-pi, pi].

        Raises:
            InvalidInput: q has the wrong length.
        """
        q = real_array('q', q)
        if q.shape != self._q_shape:
            raise wrong_shape(f'configuration q of robot {self.name}', q, self._q_shape)
        positions: Array = q[self._joint_position_index]
        for i, cosine, sine in self._continuous_place:
            positions[i] = atan2(q[sine], q[cosine])
        return positions

    def joint_velocities(self, v: npt.ArrayLike) -> Array:
        """Return the velocities of the actuated joints in `v` (nv,) [rad/s or m/s], (n_joints,).

        Raises:
            InvalidInput: v has the wrong length.
        """
        v = real_array('v', v)
        if v.shape != self._v_shape:
            raise wrong_shape(f'velocity v of robot {self.name}', v, self._v_shape)
        return np.asarray(v[self.joint_velocity_index])

    def with_joint_positions(self, q: npt.ArrayLike, positions: npt.ArrayLike) -> Array:
        """Return a copy of `q` (nq,) whose actuated joints are at `positions` (n_joints,).

        Raises:
            InvalidInput: q or positions of the wrong length, or not finite.
        """
        place = f'joint positions of robot {self.name}'
        angles = checked_vector(place, positions, self.n_joints, self.joint_names)
        moved = checked_vector(f'configuration q of robot {self.name}', q, self.nq)
        moved[self._joint_position_index] = angles
        for i, cosine, sine in self._continuous_place:
            moved[cosine], moved[sine] = np.cos(angles[i]), np.sin(angles[i])
        return moved

    def checked_configuration(self, q: npt.ArrayLike) -> Array:
        """Return `q` as a new float array of shape (nq,), its quaternions exactly unit.

        Raises:
            InvalidInput: a wrong length, a value that is not finite, or a quaternion (or the
                cosine and sine of a continuous joint) whose norm is more than 1e-6 away from 1.
        """
        place = f'configuration q of robot {self.name}'
        return normalised(place, self._unit_blocks, checked_vector(place, q, self.nq))

    def checked_velocity(self, v: npt.ArrayLike) -> Array:
        """Return `v` as a new float array of shape (nv,).

        Raises:
            InvalidInput: a wrong length or a value that is not finite.
        """
        return checked_vector(f'velocity v of robot {self.name}', v, self.nv)

    @cached_property
    def _standing_gains(self) -> Gains:
        standing = self.references[STANDING]
        return standing_gains(self.pinocchio_model, self.joint_velocity_index, standing)

    @cached_property
    def _joints(self) -> tuple[Any, ...]:
        model = self.pinocchio_model
        return tuple(model.joints[model.getJointId(name)] for name in self.joint_names)

    @cached_property
    def _joint_position_index(self) -> IndexArray:
        return np.array([joint.idx_q for joint in self._joints], dtype=np.intp)

    @cached_property
    def _continuous_place(self) -> tuple[tuple[int, int, int], ...]:
        """Place among the actuated joints, and of cosine and sine in q, of the continuous ones."""
        places = self._joint_position_index.tolist()
        chosen = np.flatnonzero(self.continuous_joints).tolist()
        return tuple((i, places[i], places[i] + 1) for i in chosen)

    @cached_property
    def _q_shape(self) -> tuple[int]:
        return (self.nq,)

    @cached_property
    def _v_shape(self) -> tuple[int]:
        return (self.nv,)

    @cached_property
    def _unit_blocks(self) -> tuple[tuple[str, int, int], ...]:
        return unit_blocks(self.pinocchio_model)


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    copy = np.array(array)
    copy.setflags(write=False)
    return copy
