"""RobotModel: kinematic tree, actuated joints and contact points of a robot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import atan2
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from contact_sim._types import Array, IndexArray
from contact_sim._validation import (
    check_unique,
    checked,
    checked_fields,
    finite_array,
    real_number,
    whole,
)
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, of_type, shown
from contact_sim.robot._actuators import (
    Actuators,
    Gains,
    Values,
    actuators_of,
    driven_model,
    joint_mobility,
    largest_time_step,
    quantities,
    standing_gains,
)
from contact_sim.robot._collision_pairs import (
    LEAST_CORNERS,
    MOST_CORNERS,
    MOST_PARTS,
    NO_COLLISIONS,
    Collisions,
    LinkPairs,
    Solid,
    approximation_of,
    corner_points,
    grounded_solids,
    self_collisions,
    solids_of,
)
from contact_sim.robot._collision_pairs import MOST as MOST_MET
from contact_sim.robot._constraints import ClosedLoops, Constraint
from contact_sim.robot._contact_points import (
    Approximation,
    ContactPoint,
    Foot,
    check_contact_points,
    contact_points_at,
    feet_of,
)
from contact_sim.robot._coordinates import (
    UNBOUNDED,
    JointSpring,
    PositionLimit,
    UnitBlock,
    actuated_joint_names,
    check_actuated_joints,
    check_position_limits,
    check_springs,
    checked_rows,
    checked_vector,
    frozen,
    joint_limits,
    neutral_configuration,
    normalised,
    unit_parts,
    with_locked_joints,
)
from contact_sim.robot._standing_pose import STANDING, has_floating_base, placed_on_ground
from contact_sim.robot._trees import (
    MOST_FREEDOMS,
    data_of,
    dofs_of,
    gigabytes,
    joint_trees,
    trees_of,
)

SMALLEST_EIGENVALUE = 1e-12
"""Of the mass matrix scaled to a unit diagonal; robots of the catalogue are above 0.05."""


@checked_fields
@dataclass(frozen=True, eq=False)
class RobotModel:
    """Immutable model of a robot; every array is read-only.

    `load_robot` and `RobotModel.from_pinocchio` make one. Conventions are Pinocchio's:
    q = [base position in the world, base quaternion x y z w, joints], v = [linear and angular
    velocity of the base in its own frame, joints]. A continuous joint has (cos, sin) of its angle
    in q; joint positions are always angles.

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
    gear_ratios: Mapping[str, float] = field(default_factory=dict)
    """Gear ratios that the description states, by joint [-]."""
    declared_actuators: Actuators | None = None
    """Actuators set by `with_actuators`; None: those of the description."""
    position_limits: tuple[PositionLimit, ...] = ()
    """Joint limits."""
    collisions: Collisions = NO_COLLISIONS
    """Solids that may touch the ground, see `with_body_contacts`, and each other."""
    notes: tuple[str, ...] = ()
    """Choices of the loader where the description states nothing, as sentences."""
    constraints: tuple[Constraint, ...] = ()
    """Closed loops and couplings of joints; every simulation of the robot has them."""
    springs: tuple[JointSpring, ...] = ()
    """Springs of joints, driven or not."""
    described_gains: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """kp and kd of the servos of an MJCF, by joint [N m/rad, N m s/rad]; `default_gains` do not
    depend on them."""

    def __post_init__(self) -> None:
        model = self.pinocchio_model
        check_unique('joint', list(model.names))
        check_actuated_joints(model, self.joint_names)
        check_contact_points(model, self.contact_points)
        check_joint_numbers(self.name, model)
        check_masses(self.name, model)
        check_position_limits(model, self.position_limits)
        check_springs(model, self.springs)
        # reference poses lie on locked joints and closed loops
        references = {}
        for name, q in ({STANDING: neutral_configuration(model)} | dict(self.references)).items():
            unlocked = self.checked_configuration(q)
            locked = with_locked_joints(model, self.position_limits, unlocked)
            place = f'robot {self.name}, pose {shown(name)}'
            closed = self.loops.closed(
                locked, self.joint_velocity_index, place, self.position_limits
            )
            references[name] = frozen(closed)
        object.__setattr__(self, 'references', references)

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
            name: name of the robot.

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

    def __repr__(self) -> str:
        base = 'floating' if self.floating_base else 'fixed'
        feet = len(self.feet)
        return f'RobotModel({shown(self.name)}, {base} base, {self.n_joints} joints, {feet} feet)'

    # Robots made from this one.

    @checked
    def with_body_contacts(
        self,
        links: Iterable[str] | None = None,
        most: int = MOST_CORNERS,
        edge_radius: float = 0.0,
        convex_parts: int = 1,
    ) -> RobotModel:
        """Return the robot whose links touch the ground with their collision geometry.

        Args:
            links: names of links, which replace those of a call before; None: all that move, have
                collision geometry and are no feet.
            most: largest number of corners of the hull of a mesh; `approximations` has the error.
            edge_radius: boxes have edges of this radius [m]: they roll over them smoothly.
            convex_parts: largest number of convex parts of a mesh. With 1 a mesh is its hull;
                more need coacd. Contacts between links have the same parts.

        Raises:
            InvalidInput: no URDF, a link that does not move or is a foot, too small a number,
                parts without coacd.
            UnknownName: a link without collision geometry.
            RobotDescriptionError: a mesh that cannot be read, or without a convex hull.
        """
        if isinstance(most, bool) or not isinstance(most, int) or most < LEAST_CORNERS:
            raise InvalidInput(f'most = {shown(most)}: expected an integer >= {LEAST_CORNERS}')
        if not 1 <= whole('convex_parts', convex_parts) <= MOST_PARTS:
            raise InvalidInput(
                f'convex_parts = {convex_parts}: expected an integer in [1, {MOST_PARTS}]'
            )
        if not 0.0 <= real_number('edge_radius', edge_radius) < np.inf:
            raise InvalidInput(
                f'edge_radius = {shown(edge_radius)} m: expected a finite value >= 0'
            )
        if not self.description:
            raise InvalidInput('the robot was made without a URDF: no collision geometry is known')
        model = self.pinocchio_model
        solids = solids_of(
            model, self.description, self.package_dirs, self.contact_points, most, edge_radius,
            convex_parts,
        )  # fmt: skip
        feet = {point.frame for point in self.contact_points}
        grounded = grounded_solids(model, solids, links, feet)
        touching = dict.fromkeys(solid.frame for solid in solids if solid.name in set(grounded))
        collisions = replace(
            self.collisions, solids=solids, grounded=grounded, published=tuple(touching)
        )
        return replace(self, collisions=collisions)

    def with_self_collision(
        self, links: LinkPairs | None = None, srdf: str | Path | None = None, most: int = MOST_MET
    ) -> RobotModel:
        """Return the robot with links that may touch each other.

        Args:
            links: names of two links each; None: all that can, but those that the SRDF disables.
            srdf: path or text of an SRDF.
            most: largest number of contacts between links at one time.

        Raises:
            InvalidInput: a pair that is none, is on one body or overlaps in the standing pose.
            UnknownName: a link without collision geometry.
            RobotDescriptionError: an SRDF or a mesh that cannot be read.
        """
        model, q = self.pinocchio_model, self.references[STANDING]
        solids = self.collisions.solids or self.solids
        collisions = self_collisions(model, solids, q, links, srdf, most)
        own = self.collisions
        return replace(
            self, collisions=replace(collisions, grounded=own.grounded, published=own.published)
        )

    def with_actuators(self, actuators: Actuators | None = None, **changes: Values) -> RobotModel:
        """Return the robot with other actuators, given as a whole, by fields of them, or both.

        A field is a number, one per joint, or numbers by joint, where the other joints keep
        theirs. The `pinocchio_model` of the robot has their numbers, too.

        Raises:
            InvalidInput, UnknownName: see `Actuators.changed`; actuators of other joints.
        """
        base = self.actuators if actuators is None else of_type('actuators', actuators, Actuators)
        chosen = base.changed(**changes)
        names, dofs = self.joint_names, self.joint_velocity_index
        model = driven_model(self.pinocchio_model, names, dofs, chosen)
        return replace(self, pinocchio_model=model, declared_actuators=chosen)

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

    @checked
    def with_springs(self, springs: Iterable[JointSpring]) -> RobotModel:
        """Return the robot with these springs in place of its own; none of them: ().

        Raises:
            InvalidInput, UnknownName: joints that it does not have, or with several coordinates.
        """
        return replace(self, springs=tuple(springs))

    # What the fields say, in another form.

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
    def loops(self) -> ClosedLoops:
        """Residuals and Jacobians of its constraints."""
        return ClosedLoops(self.pinocchio_model, self.constraints)

    @cached_property
    def body_points(self) -> tuple[ContactPoint, ...]:
        """Corners of the solids that the ground may touch, as spheres."""
        solids, places = self.collisions.solids, self.collisions.grounded_places
        return tuple(point for k in places for point in corner_points(solids[k]))

    @property
    def approximations(self) -> tuple[Approximation, ...]:
        """What stands for collision geometry that can touch something, where it is not exact."""
        found = map(approximation_of, self.collisions.touching)
        return tuple(one for one in found if one is not None)

    @cached_property
    def feet(self) -> tuple[Foot, ...]:
        """Groups of contact points that share a frame, in the order of their first points."""
        return feet_of(self.contact_points)

    @cached_property
    def solids(self) -> tuple[Solid, ...]:
        """Collision geometry of all links as convex solids."""
        model, description = self.pinocchio_model, self.description
        return solids_of(model, description, self.package_dirs, self.contact_points)

    @cached_property
    def actuators(self) -> Actuators:
        """Actuators: those of `with_actuators`, else those of the description."""
        return self.declared_actuators or actuators_of(
            self.pinocchio_model, self.joint_names, self.joint_velocity_index, self.gear_ratios
        )

    # Sizes of q and v, and the actuated joints in them.

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
    def passive_joint_names(self) -> tuple[str, ...]:
        """Joints with one degree of freedom that are not actuated, in Pinocchio order."""
        joints = list(zip(self.pinocchio_model.names, self.pinocchio_model.joints, strict=True))
        single = [str(name) for name, joint in joints[1:] if joint.nv == 1]
        return tuple(name for name in single if name not in self.joint_names)

    @cached_property
    def passive_joints(self) -> RobotModel:
        """Copy of the robot in which the passive joints are the actuated ones.

        For their positions, velocities and limits; its gains and actuators mean nothing.
        """
        view = object.__new__(RobotModel)
        values = {entry.name: getattr(self, entry.name) for entry in fields(RobotModel)}
        view.__dict__.update(values, joint_names=self.passive_joint_names)
        return view

    @cached_property
    def joint_velocity_index(self) -> IndexArray:
        """Index into v of each actuated joint, shape (n_joints,)."""
        return frozen(np.array([joint.idx_v for joint in self._joints], dtype=np.intp))

    @cached_property
    def selection_matrix(self) -> Array:
        """Selection matrix S (n_joints, nv): joint velocities = S v, force = S.T @ effort."""
        selection = np.zeros((self.n_joints, self.nv))
        selection[np.arange(self.n_joints), self.joint_velocity_index] = 1.0
        return frozen(selection)

    @cached_property
    def continuous_joints(self) -> npt.NDArray[np.bool_]:
        """Mask of the actuated joints that turn without end, angles in (-pi, pi]; (n_joints,)."""
        return frozen(np.array([joint.nq == 2 for joint in self._joints], dtype=bool))

    @cached_property
    def effort_limit(self) -> Array:
        """Largest effort of each actuated joint [N m or N], shape (n_joints,)."""
        return frozen(self.pinocchio_model.effortLimit[self.joint_velocity_index])

    @cached_property
    def velocity_limit(self) -> Array:
        """Largest speed of each actuated joint [rad/s or m/s], shape (n_joints,)."""
        return frozen(self.pinocchio_model.velocityLimit[self.joint_velocity_index])

    @cached_property
    def lower_position_limit(self) -> Array:
        """Smallest position [rad or m], -inf for continuous joints, shape (n_joints,)."""
        limit = self.pinocchio_model.lowerPositionLimit[self._joint_position_index]
        return frozen(np.where(self.continuous_joints, -np.inf, limit))

    @cached_property
    def upper_position_limit(self) -> Array:
        """Largest position [rad or m], inf for continuous joints, shape (n_joints,)."""
        limit = self.pinocchio_model.upperPositionLimit[self._joint_position_index]
        return frozen(np.where(self.continuous_joints, np.inf, limit))

    @cached_property
    def joint_damping(self) -> Array:
        """Viscous damping of every velocity coordinate [N m s/rad], shape (nv,)."""
        return frozen(self.pinocchio_model.damping)

    @cached_property
    def joint_friction(self) -> Array:
        """Dry friction of every velocity coordinate [N m], shape (nv,)."""
        return frozen(self.pinocchio_model.friction)

    def spring_effort(self, q: npt.ArrayLike) -> Array:
        """Return the generalised forces of the springs at `q` (nq,) [N m], shape (nv,)."""
        force, q = np.zeros(self.nv), np.asarray(q)
        for spring, place, dof in self._spring_places:
            force[dof] = -spring.stiffness * (q[place] - spring.rest)
        return force

    def spring_energy(self, q: npt.ArrayLike) -> float:
        """Return the energy in the springs at `q` (nq,) [J]."""
        q = np.asarray(q)
        return sum(
            0.5 * spring.stiffness * float(q[place] - spring.rest) ** 2
            for spring, place, _ in self._spring_places
        )

    @cached_property
    def _spring_places(self) -> tuple[tuple[JointSpring, int, int], ...]:
        model = self.pinocchio_model
        joints = [model.joints[model.getJointId(spring.joint)] for spring in self.springs]
        return tuple(
            (spring, int(joint.idx_q), int(joint.idx_v))
            for spring, joint in zip(self.springs, joints, strict=True)
        )

    def joint_positions(self, q: npt.ArrayLike) -> Array:
        """Return the positions of the actuated joints at `q` (nq,) [rad or m], shape (n_joints,).

        The angle of a continuous joint lies in (-pi, pi].

        Raises:
            InvalidInput: q has the wrong length.
        """
        q = finite_array('q', q)
        if q.shape != self._q_shape:
            raise self._wrong_shape('configuration q', q, self.nq)
        positions: Array = q[self._joint_position_index]
        for i, cosine, sine in self._continuous_place:
            positions[i] = atan2(q[sine], q[cosine])
        return positions

    def joint_velocities(self, v: npt.ArrayLike) -> Array:
        """Return the velocities of the actuated joints in `v` (nv,) [rad/s or m/s], (n_joints,).

        Raises:
            InvalidInput: v has the wrong length.
        """
        v = finite_array('v', v)
        if v.shape != self._v_shape:
            raise self._wrong_shape('velocity v', v, self.nv)
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

    def checked_configurations(self, rows: npt.ArrayLike) -> Array:
        """Return configurations (n, nq) as a new float array, each as `checked_configuration`.

        Raises:
            InvalidInput: another shape, or what `checked_configuration` refuses in a row.
        """
        place = f'configurations of robot {self.name}'
        q = checked_rows(place, rows, self.nq)
        for row in q:
            normalised(place, self._unit_blocks, row)
        return q

    def checked_velocities(self, rows: npt.ArrayLike) -> Array:
        """Return velocities (n, nv) as a new float array.

        Raises:
            InvalidInput: another shape, or a value that is not finite.
        """
        return checked_rows(f'velocities of robot {self.name}', rows, self.nv)

    # Reference poses, and gains that hold them.

    @property
    def reference_configurations(self) -> tuple[str, ...]:
        """Names of the reference poses; 'standing' is always among them."""
        return tuple(self.references)

    def reference_configuration(self, name: str = STANDING) -> Array:
        """Return a reference pose whose lowest point is on z = 0, q of shape (nq,).

        A robot with a fixed base, or without contact points, keeps the base where it is.

        Raises:
            UnknownName: no pose of that name.
        """
        self._check_pose(name)
        points = (*self.contact_points, *self.body_points)
        return placed_on_ground(self.pinocchio_model, points, self.references[name])

    def _check_pose(self, name: str) -> None:
        if not isinstance(name, str) or name not in self.references:
            raise UnknownName(f'reference pose of robot {self.name}', name, self.references)

    @property
    def default_gains(self) -> Gains:
        """PD gains with which the robot stands: kp [N m/rad], kd [N m s/rad], each (n_joints,).

        Stable under explicit PD at time steps up to `gains_time_step` (theory 4.5). New arrays
        each time.
        """
        kp, kd, _ = self._standing_gains
        return kp.copy(), kd.copy()

    @property
    def gains_time_step(self) -> float:
        """Largest time step at which `default_gains` are stable [s], from 1 to 5 ms."""
        return self._standing_gains[2]

    @cached_property
    def _standing_gains(self) -> tuple[Array, Array, float]:
        model, standing = self.pinocchio_model, self.references[STANDING]
        dofs = self.joint_velocity_index
        return standing_gains(model, dofs, standing, self.contact_points, self.loops)

    @property  # not cached: Pinocchio's joints cannot be pickled
    def _joints(self) -> tuple[Any, ...]:
        model = self.pinocchio_model
        return tuple(model.joints[model.getJointId(name)] for name in self.joint_names)

    @cached_property
    def _joint_position_index(self) -> IndexArray:
        return np.array([joint.idx_q for joint in self._joints], dtype=np.intp)

    @cached_property
    def _continuous_place(self) -> tuple[tuple[int, int, int], ...]:
        """Place of each continuous joint among the actuated ones, and of its cos and sin in q."""
        places = self._joint_position_index.tolist()
        chosen = np.flatnonzero(self.continuous_joints).tolist()
        return tuple((i, places[i], places[i] + 1) for i in chosen)

    @cached_property
    def _unit_blocks(self) -> tuple[UnitBlock, ...]:
        """Parts of q that must have norm 1."""
        model = self.pinocchio_model
        return tuple(
            (f'{what} of joint {model.names[i]!r}', model.joints[i].idx_q + start, length)
            for i in range(1, model.njoints)
            for what, start, length in unit_parts(model.joints[i])
        )

    @cached_property  # nq and nv of Pinocchio cost as much as the rest of joint_positions
    def _q_shape(self) -> tuple[int]:
        return (self.nq,)

    @cached_property
    def _v_shape(self) -> tuple[int]:
        return (self.nv,)

    def _wrong_shape(self, what: str, vector: Array, length: int) -> InvalidInput:
        return InvalidInput(
            f'{what} of robot {self.name}: shape {vector.shape}, expected ({length},)'
        )


# ---------------------------------- models with which no motion can be computed are refused


def check_joint_numbers(name: str, model: pin.Model) -> None:
    """Refuse mimic joints, and limits, damping, friction and placements that are no numbers."""
    if model.nv == 0:
        raise RobotDescriptionError(
            f'robot {name}: it has no joint that moves; give it one, or a floating base'
        )
    for joints in joint_trees(model):
        dofs = len(dofs_of(model, joints))
        if dofs > MOST_FREEDOMS:
            raise RobotDescriptionError(
                f'robot {name}: {dofs} degrees of freedom on joint {model.names[joints[0]]!r}, '
                f"expected at most {MOST_FREEDOMS} in one tree: the memory of Pinocchio's data "
                f'grows with their cube ({gigabytes(dofs):.0f} GB here)'
            )
    for i in range(1, model.njoints):
        if model.joints[i].shortname() == 'JointModelMimic':
            raise RobotDescriptionError(
                f'robot {name}: joint {model.names[i]!r} mimics another, which is not modelled; '
                'build the Pinocchio model without mimic=True and add a JointCoupling '
                'with RobotModel.with_constraints'
            )
    for what in ('damping', 'friction', 'effortLimit', 'velocityLimit'):
        _check_each(name, model, what)
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


def _check_each(name: str, model: pin.Model, what: str) -> None:
    values, may_be_infinite = np.asarray(getattr(model, what)), what.endswith('Limit')
    largest = np.inf if may_be_infinite else np.finfo(float).max
    bad = np.flatnonzero(~((values >= 0.0) & (values <= largest)))
    if bad.size:
        ends = [joint.idx_v + joint.nv for joint in list(model.joints)[1:]]
        joint = 1 + int(np.argmax(bad[0] < np.array(ends)))
        raise RobotDescriptionError(
            f'robot {name}: joint {model.names[joint]!r}: {what} = {values[bad[0]]}, '
            f'expected a {"" if may_be_infinite else "finite "}number of at least 0'
        )


def check_masses(name: str, model: pin.Model) -> None:
    """Refuse negative masses, and those that leave a motion without inertia, whatever the pose."""
    for i in range(1, model.njoints):
        mass = model.inertias[i].mass
        if not 0.0 <= mass < np.inf:
            raise RobotDescriptionError(
                f'robot {name}: the body of joint {model.names[i]!r} has mass {mass} kg, expected '
                'a finite value of at least 0'
            )
    regular = all(has_regular_mass_matrix(tree.model) for tree in trees_of(model))
    if not regular:
        raise RobotDescriptionError(
            f'robot {name}: the mass matrix is singular, so some joint moves bodies without mass '
            'or inertia; give every moving link a mass and an inertia above 0'
        )


def has_regular_mass_matrix(model: pin.Model) -> bool:
    """Return whether every motion of a tree has inertia, in a pose without symmetry."""
    generic = pin.integrate(model, pin.neutral(model), 0.1 + 0.01 * np.arange(model.nv))
    upper = np.triu(pin.crba(model, data_of(model), generic))
    mass_matrix = upper + np.triu(upper, 1).T
    own = np.diagonal(mass_matrix)
    if not (np.isfinite(mass_matrix).all() and np.all(own > 0.0)):
        return False
    scaled = mass_matrix / np.sqrt(np.outer(own, own))
    smallest = np.linalg.eigvalsh(scaled).min(initial=1.0) if np.isfinite(scaled).all() else 0.0
    return bool(smallest > SMALLEST_EIGENVALUE)


# -------------------------------------------------------------- a robot in words, for the log

ROTARY = {'force': 'N m', 'speed': 'rad/s', 'damping': 'N m s/rad', 'inertia': 'kg m²'}
SLIDING = {'force': 'N', 'speed': 'm/s', 'damping': 'N s/m', 'inertia': 'kg'}
"""Units of what drives a joint that turns or slides."""


def describe_limits(limits: Sequence[PositionLimit]) -> str:
    """Return the limits as one line of text."""
    stops = '; '.join(map(str, limits))
    return f'position limits: {stops}' if stops else 'no joint has position limits'


def describe_gains(robot: RobotModel, kp: Array, kd: Array, q: Array) -> str:
    """Return the range of PD gains, and their largest stable time step at `q`, as one line."""
    if not robot.n_joints:
        return 'PD gains: no joint is driven'
    default = robot.default_gains
    own = int(np.count_nonzero((kp == default[0]) & (kd == default[1])))
    names, ranges = robot.joint_names, []
    for letter, gain in (('p', kp), ('d', kd)):
        ends = (f'{gain[i]:.4g} ({names[i]})' for i in (gain.argmin(), gain.argmax()))
        ranges.append(f'{letter} {" to ".join(ends)}')
    return (
        f"PD gains: {', '.join(ranges)}; the robot's own in {own} of {robot.n_joints} joints; "
        f'stable at time steps below {gains_limit(robot, kp, kd, q):.2g} s'
    )


def gain_table(robot: RobotModel, kp: Array, kd: Array) -> str:
    """Return the gains of every joint."""
    rows = zip(robot.joint_names, kp.tolist(), kd.tolist(), strict=True)
    return 'PD gains: ' + '; '.join(f'{name} p {p:.4g} d {d:.4g}' for name, p, d in rows)


def gains_limit(robot: RobotModel, kp: Array, kd: Array, q: Array) -> float:
    """Return the time step below which explicit PD is stable at `q` in the air [s]."""
    joints = robot.joint_velocity_index
    return largest_time_step(joint_mobility(robot.pinocchio_model, joints, q, robot.loops), kp, kd)


def describe_actuators(robot: RobotModel) -> list[str]:
    """Return the actuator effects by joint, and those that are off; one line for equal ones."""
    model = robot.pinocchio_model
    data = data_of(model)
    pin.computeJointJacobians(model, data, pin.neutral(model))
    spin = np.reshape(data.J, (6, model.nv))[3:]  # of one dof Pinocchio has a vector
    effects = [
        _effects(robot.actuators, i, ROTARY if spin[:, dof].any() else SLIDING)
        for i, dof in enumerate(robot.joint_velocity_index)
    ]
    if not effects:
        return ['no joint is driven']
    joints_of: dict[str, list[str]] = {}
    for name, own in zip(robot.joint_names, effects, strict=True):
        words = ', '.join(f'{effect} {value}' for effect, value in own.items() if value)
        joints_of.setdefault(words or 'nothing, commands act as they are', []).append(name)
    lines = [f'actuators of {", ".join(names)}: {words}' for words, names in joints_of.items()]
    off = [effect for effect in effects[0] if not any(own[effect] for own in effects)]
    if off:
        lines.append(f'off in all actuators: {", ".join(off)}')
    return [*lines, 'backlash is not modelled']


def _effects(actuators: Actuators, i: int, units: dict[str, str]) -> dict[str, str]:
    """Return what actuator `i` may have, with numbers and units; '' of what it has not."""
    value = {name: float(getattr(actuators, name)[i]) for name in quantities()}
    force, fastest = units['force'], value['velocity_limit']
    standstill = value['saturation_effort']
    rotor = value['gear_ratio'] ** 2 * value['rotor_inertia']
    geared = f' = {value["gear_ratio"]:g}² × {value["rotor_inertia"]:g}' if rotor else ''
    geared += f' + {value["armature"]:g}' if rotor and value['armature'] else ''
    effects = {
        'effort limit': (value['effort_limit'] < UNBOUNDED, f'{value["effort_limit"]:g} {force}'),
        'velocity limit': (
            fastest < UNBOUNDED, f'{fastest:g} {units["speed"]} (not driven faster)',
        ),
        'torque-speed curve': (
            standstill < UNBOUNDED,
            f'from {standstill:g} {force} at rest to 0 at the velocity limit',
        ),
        'viscous friction': (
            value['viscous_friction'] > 0.0, f'{value["viscous_friction"]:g} {units["damping"]}',
        ),
        'dry friction': (value['dry_friction'] > 0.0, f'{value["dry_friction"]:g} {force}'),
        'armature': (
            actuators.total_armature[i] > 0.0,
            f'{actuators.total_armature[i]:g} {units["inertia"]}{geared}',
        ),
        'delay': (value['delay'] > 0.0, f'{value["delay"]:g} s'),
        'lag': (value['time_constant'] > 0.0, f'{value["time_constant"]:g} s'),
    }  # fmt: skip
    return {name: words if acts else '' for name, (acts, words) in effects.items()}
