"""Simulator: one robot on one terrain under one contact model, one step at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import (
    checked,
    count,
    finite,
    finite_array,
    number_within,
    positive,
    real_array,
)
from contact_sim.arrays._fields import Sizes
from contact_sim.collision._terrain import Terrain, TerrainLike, as_terrain
from contact_sim.constraints._table import (
    ConstraintTable,
    check_start,
    constraint_table,
    where_it_is,
)
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel, TimeStepping
from contact_sim.contact_models._stages import DIRECT, JOINT_PD, READY
from contact_sim.dynamics._energy import gravity_vector
from contact_sim.dynamics._integration import INTEGRATORS, MOMENTUM, integrator_code
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    NonFiniteState,
    UnknownName,
    of_type,
    shown,
)
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._constraints import (
    Constraint,
    FrameAnchor,
    JointLock,
    PointAnchor,
    checked_constraints,
)
from contact_sim.robot._coordinates import frozen
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._compilation import announced
from contact_sim.simulation._inputs import AppliedForces, checked_robot, per_contact
from contact_sim.simulation._judge import refusal_of
from contact_sim.simulation._loop import StepObserver
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._shadow import Shadows
from contact_sim.simulation._state import Snapshot, standing_on
from contact_sim.step._bilateral_rows import PythonConstraints, project_configuration
from contact_sim.step._workspace import Workspace

# --- Time, time step and what else a step is taken with, besides the laws of contact.


class TimeSettings(ABC):
    """Clock, time step, integrator and gravity of a simulation."""

    terrain: Terrain
    _workspace: Workspace

    @abstractmethod
    def _go_on_with(self, work: Workspace, ground: Terrain) -> None:
        """Step in other arrays from now on."""

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self._workspace.data.clock[0])

    @property
    def step_count(self) -> int:
        """Steps since the last reset."""
        return int(self._workspace.data.clock[2])

    @property
    def time_step(self) -> float:
        """Time step h [s]; assign another between steps: time and state go on from where they are.

        Of actuators with a delay, the efforts under way are those of the last command.

        Raises:
            InvalidInput: no number > 0, or one of which the delay of an actuator is no multiple.
        """
        return float(self._workspace.data.time_step[0])

    @time_step.setter
    def time_step(self, value: float) -> None:
        h = positive('time_step', value, 's')
        if h == self.time_step:
            return
        work = self._workspace.with_time_step(h, self.terrain)
        clock = work.data.clock
        clock[1] = clock[0] - clock[2] * h
        self._go_on_with(work, self.terrain)

    @property
    def integrator(self) -> str:
        """How time-stepping models move the robot; `hybrid` has Runge-Kutta's arcs."""
        return INTEGRATORS[self._workspace.integrator[0]]

    @property
    def gravity(self) -> Array:
        """Gravity in world [m/s²], shape (3,)."""
        return frozen(self._workspace.data.gravity)


# --- Coefficients of the contacts of a simulation, which may change while it runs.


class ContactSettings:
    """Friction, restitution and stabilisation of the contacts in a workspace."""

    _workspace: Workspace

    @property
    def friction(self) -> Array:
        """μ of every contact outside of regions [-], shape (nc,); assign as in the constructor.

        What acted in a step is in `StepReport.contacts`.
        """
        return frozen(self._workspace.default_friction)

    @friction.setter
    def friction(self, value: float | ArrayLike) -> None:
        self._workspace.default_friction[:] = per_contact('friction', value, self._workspace.sizes)

    @property
    def restitution(self) -> Array:
        """Newton coefficient of every contact outside of regions [-], shape (nc,); as friction."""
        return frozen(self._workspace.default_restitution)

    @restitution.setter
    def restitution(self, value: float | ArrayLike) -> None:
        chosen = per_contact('restitution', value, self._workspace.sizes, 1.0)
        self._workspace.default_restitution[:] = chosen

    @property
    def baumgarte(self) -> float:
        """Share β of a penetration taken out per step [-], in [0, 1]; assignable."""
        return float(self._workspace.stabilisation[0])

    @baumgarte.setter
    def baumgarte(self, value: float) -> None:
        self._workspace.stabilisation[0] = number_within('baumgarte', value, 1.0)

    @property
    def restitution_threshold(self) -> float:
        """Approach speed below which impacts are plastic [m/s]; assignable."""
        return float(self._workspace.stabilisation[1])

    @restitution_threshold.setter
    def restitution_threshold(self, value: float) -> None:
        chosen = number_within('restitution_threshold', value, np.inf)
        self._workspace.stabilisation[1] = chosen


# --- The bilateral constraints of a simulation, which may come and go between steps.

PLACED = PointAnchor | FrameAnchor | JointLock
"""Constraints that may find a place for themselves."""
ASSEMBLY_ROUNDS, ASSEMBLED = 100, 1e-12
"""Newton steps that close the loops of a reference pose; error [m, rad] that counts as closed."""


class ConstraintSettings(ABC):
    """Bilateral constraints of a simulation that come and go."""

    robot: RobotModel
    terrain: Terrain
    _workspace: Workspace
    _stepper: Any
    _constraints: tuple[Constraint, ...]
    """As the user gave them, some without a place."""

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The bilateral constraints that hold, with their places; assign others between steps.

        Those that hold already stay where they are.
        """
        return self._workspace.table.constraints

    @constraints.setter
    def constraints(self, constraints: Sequence[Constraint]) -> None:
        self._hold_at(self._workspace.data.q.copy(), checked_constraints(constraints))

    def _hold_at(self, q: Array, given: tuple[Constraint, ...]) -> None:
        """Let other constraints hold at q (nq,), to which the robot moves."""
        placed = placed_at(self.robot, given, self.constraints, q)
        work = self._workspace.under(self.terrain, placed)
        check_integrator(work)
        held(work, placed, q)
        self._go_on_with(work, self.terrain)
        self._constraints = given

    @abstractmethod
    def _go_on_with(self, work: Workspace, ground: Terrain) -> None:
        """Step in other arrays from now on."""

    def add_constraint(self, constraint: Constraint) -> None:
        """Let a bilateral constraint hold from the next step on.

        Raises:
            InvalidInput: no constraint, one that removes no freedom, of a name that is there, or
                whose error is none of a step.
            UnknownName: a frame or joint that does not exist.
        """
        self.constraints = (*self._constraints, constraint)

    def remove_constraint(self, constraint: str | Constraint) -> None:
        """Let a constraint go, itself or by its name.

        Raises:
            UnknownName: none of that name holds.
        """
        self.constraints = without(self._constraints, constraint)

    @property
    def given_constraints(self) -> tuple[Constraint, ...]:
        """The constraints that hold, as they were given: some without a place."""
        return self._constraints

    def assembled(self, q: ArrayLike) -> Array:
        """Return the configuration near q (nq,) in which closed loops are closed, read-only.

        Constraints without a place hold where the robot is at q. The simulation stays as it is.

        Raises:
            InvalidInput: there is none near, or q is none.
        """
        start = self.robot.checked_configuration(q)
        if not self._constraints:
            return start
        work, before = self._workspace, self._workspace.table
        now = work.data.buffer.copy()
        try:
            move_places(work, self._constraints, start)
            closed, error = project_configuration(work, start, ASSEMBLY_ROUNDS, ASSEMBLED)
        finally:
            self._return_to(before, now)
        if error > ASSEMBLED:
            raise InvalidInput(
                'constraints: the reference pose cannot be moved onto them, '
                f'{error:.3g} m or rad are left: reset(q) with a configuration in which they hold'
            )
        return frozen(closed)

    def _hold_as_in(self, snapshot: Snapshot) -> None:
        """Let the constraints of a snapshot hold in its state, where that is not so already.

        Those that had no place of their own have none again.
        """
        placed = checked_constraints(snapshot.constraints)
        if placed == self.constraints:
            return
        start = self._workspace.sizes.layout['q'][0]
        buffer = real_array('snapshot: buffer', snapshot.buffer)
        q = self.robot.checked_configuration(buffer[start : start + self.robot.nq])
        known = {one.name: one for one in self._constraints}
        self._hold_at(q, placed)
        pairs = [(one, known.get(one.name, one)) for one in placed]
        self._constraints = tuple(
            given if with_place_of(one, given) == one else one for one, given in pairs
        )

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """Leave constraints and configuration as they are where what is done raises."""
        before, now = self._workspace.table, self._workspace.data.buffer.copy()
        try:
            yield
        except ContactSimError:
            self._return_to(before, now)
            raise

    def _return_to(self, table: ConstraintTable, buffer: Array) -> None:
        work = self._workspace
        work.table = table
        work.fill_constraints()
        work.data.buffer[:] = buffer
        self._stepper.update_contacts()


def move_places(work: Workspace, constraints: Sequence[Constraint], q: Array) -> None:
    """Let those constraints of a workspace that name no place hold where the robot is at q (nq,).

    Args:
        work: made for these constraints.
        constraints: as the user gave them.
        q: where.

    Raises:
        UnknownName: a frame or joint that the robot does not have.
    """
    placed = [where_it_is(work.robot, constraint, q) for constraint in constraints]
    if tuple(placed) != work.table.constraints:
        work.table = constraint_table(work.robot, work.tree, placed)
        work.fill_constraints()


def held(work: Workspace, constraints: Sequence[Constraint], q: Array) -> None:
    """Let the constraints of a workspace hold where the robot is at q (nq,).

    Args:
        work: made for these constraints.
        constraints: as the user gave them, some without a place.
        q: where.

    Raises:
        InvalidInput: a constraint that removes no freedom, or with an error that is none of a
            step.
    """
    move_places(work, constraints, q)
    table = work.table
    PythonConstraints(work).place(q)
    for constraint, row in zip(table.constraints, table.indices, strict=True):
        rows = slice(row[1], row[1] + row[2])
        error, jacobian = work.data.bilateral_error[rows], work.data.bilateral_jacobian[rows]
        check_start(constraint, error, jacobian)


def without(constraints: Sequence[Constraint], which: str | Constraint) -> tuple[Constraint, ...]:
    """Return all constraints but one, given or by its name.

    Raises:
        UnknownName: there is none of that name.
    """
    name = which.name if isinstance(which, Constraint) else which
    rest = tuple(constraint for constraint in constraints if constraint.name != name)
    if len(rest) == len(constraints):
        raise UnknownName('constraint', name, [constraint.name for constraint in constraints])
    return rest


def placed_at(
    robot: RobotModel,
    given: Sequence[Constraint],
    holding: Sequence[Constraint],
    q: Array,
) -> list[Constraint]:
    """Return constraints with their places: those that hold already where they are, else at q."""
    there = {one.name: one for one in holding}
    return [where_it_is(robot, with_place_of(there.get(one.name), one), q) for one in given]


def with_place_of(holding: Constraint | None, given: Constraint) -> Constraint:
    """Return a constraint without a place with that of one which holds the same, if it does."""
    if not isinstance(given, PLACED) or not isinstance(holding, PLACED) or given.at is not None:
        return given
    before: Any = holding
    same = replace(before, at=None, name=given.name, stabilisation=given.stabilisation)
    return replace(given, at=before.at) if same == given else given


def check_integrator(work: Workspace) -> None:
    """Raise InvalidInput where bases carry the momentum that constraints take."""
    if work.table.constraints and work.integrator[0] == MOMENTUM:
        raise InvalidInput(
            "integrator = 'momentum': unsupported with constraints, which take momentum; use "
            "'semi_implicit'"
        )


# --- The arrays of a simulation for another ground.


def on_ground(work: Workspace, ground: Terrain) -> Workspace:
    """Return a workspace for another ground with the same values, but for the contacts.

    Friction and restitution of a contact point are those of its contacts.

    Raises:
        InvalidInput: these differ, and on the new ground the point has another number of them.
    """
    other = work.on(ground)
    for name in ('friction', 'restitution'):
        before = getattr(work, f'default_{name}')
        now = getattr(other, f'default_{name}')
        now[:] = on_other_features(name, before, work.sizes, other.sizes)
    return other


def on_other_features(name: str, numbers: Array, before: Sizes, now: Sizes) -> Array:
    """Return numbers per contact (nc,) for a ground with other features.

    Raises:
        InvalidInput: numbers that differ between the contacts of one contact point.
    """
    if before.nc == now.nc:
        return numbers
    on_ground, between = np.split(numbers, [before.n_ground])
    per_point = on_ground.reshape(before.n_candidates, -1)
    if (per_point != per_point[:, :1]).any():
        raise InvalidInput(
            f'{name} is given for each of {before.features} contacts of a contact point, on the '
            f'new ground there are {now.features}: give it per contact point first'
        )
    return np.concatenate([np.repeat(per_point[:, 0], now.features), between])


# --- Simulator: one robot on one terrain under one contact model, one step at a time.


class Simulator(ContactSettings, ConstraintSettings, TimeSettings):
    """Steps a robot with the contact model the user picked.

    Args:
        robot: what moves.
        contact_model: a name (`contact_sim.contact_models()`) or an instance.
        terrain: a name ('plane', 'inclined_plane'), a Terrain, or what `contact_sim.terrain` has.
        friction: Coulomb coefficient [-]: one number, one per contact point, which holds for all
            contacts it has with the features of the ground, or one per contact. A region of the
            terrain that has a friction of its own replaces it there.
        restitution: Newton coefficient in [0, 1], likewise.
        time_step: h [s].
        integrator: of time-stepping models, 'semi_implicit' or 'momentum' (theory 2.0).
        gravity: [m/s²], a number g for (0, 0, −g), or three numbers.
        constraints: bilateral constraints, of `contact_sim.constraints`, besides those of the
            robot; those without a place hold where the robot is at a reset.

    Raises:
        InvalidInput: a value outside what is allowed.
        UnknownName: a contact model, terrain, integrator, frame or joint that does not exist.
    """

    def __init__(
        self,
        robot: RobotModel,
        contact_model: str | ContactModel = 'ncp',
        terrain: TerrainLike = 'plane',
        friction: float | ArrayLike = 0.8,
        restitution: float | ArrayLike = 0.0,
        time_step: float = 1e-3,
        gravity: float | ArrayLike = 9.81,
        constraints: Sequence[Constraint] = (),
        integrator: str = 'semi_implicit',
    ) -> None:
        self.robot = checked_robot(robot)
        own, given = self.robot.constraints, checked_constraints(constraints)
        self._constraints = checked_constraints((*own, *given))
        self.terrain = as_terrain(terrain)
        h = positive('time_step', time_step, 's')
        start = standing_on(self.robot, self.terrain)
        placed = [where_it_is(self.robot, one, start) for one in self._constraints]
        self._workspace = work = Workspace(robot, self.terrain, h, placed)
        self._data = work.data
        self._data.q[:] = start
        work.integrator[0] = integrator_code(integrator)
        check_integrator(work)
        self._data.gravity[:] = gravity_vector(gravity)
        self.friction = friction  # type: ignore[assignment]
        self.restitution = restitution  # type: ignore[assignment]
        self._started = False
        self._model: ContactModel = as_contact_model(contact_model)
        self.contact_model = contact_model  # type: ignore[assignment]
        self._context, self._forces = StepContext(work), AppliedForces(robot, work)
        self._failure: str | None = None
        self._observers: tuple[StepObserver, ...] = ()
        self._shadows = Shadows(work, self._context, ())
        with announced(type(self._model).__module__, StepReport.__module__):
            self.reset()
            self._compile()
        self._started = True

    def _compile(self) -> None:
        """Take one step and take it back, so that the first real step costs what all others do."""
        start = self._data.buffer.copy()
        self._workspace.command[:] = 0.0
        self._stepper.advance()
        if not self._started:
            self.last_report.read()
        self._workspace.status[0] = READY
        self._data.buffer[:] = start
        self._stepper.update_contacts()

    # ---------------------------------------------------------------- state

    @property
    def q(self) -> Array:
        """Configuration in Pinocchio's convention, a read-only copy, shape (nq,)."""
        return frozen(self._data.q)

    @property
    def v(self) -> Array:
        """Velocity in Pinocchio's convention, a read-only copy, shape (nv,)."""
        return frozen(self._data.v)

    @property
    def sizes(self) -> Sizes:
        """Sizes and layout of the state, as in `snapshot().buffer` and `StepReport.record`."""
        return self._workspace.sizes

    @property
    def pairs_left_out(self) -> int:
        """Contacts between bodies for which there was no room so far, see `Collisions.most`."""
        return int(self._workspace.pair_counts[1])

    @checked
    def frame_placement(self, name: str) -> pin.SE3:
        """Return the placement of a frame in world at the current configuration.

        Raises:
            UnknownName: a frame that does not exist.
        """
        return self._forces.frame_placement(name)

    def standing_configuration(self, pose: str = 'standing') -> Array:
        """Return the reference pose of the robot with its lowest foot on the terrain, (nq,)."""
        return standing_on(self.robot, self.terrain, pose)

    def reset(
        self,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        time: float = 0.0,
        terrain: TerrainLike | None = None,
    ) -> None:
        """Start again from q (nq,), v (nv,) at `time` [s]; default: standing at rest.

        On another `terrain`, if given, under the same settings; reports so far stay valid.

        Raises:
            InvalidInput: wrong sizes, values that are not finite, a quaternion that is not unit,
                friction per contact where the new ground has another number of features.
        """
        ground = self.terrain if terrain is None else as_terrain(terrain)
        if q is None:
            q = self.assembled(standing_on(self.robot, ground))
        start = self.robot.checked_configuration(q)
        velocity = np.zeros(self.robot.nv) if v is None else self.robot.checked_velocity(v)
        time = finite('time', time)
        with self._unless_refused():
            if self._constraints:
                held(self._workspace, self._constraints, start)
            self._move_to(ground)
        self._data.q[:] = start
        self._data.v[:] = velocity
        self._data.friction[:] = self._workspace.default_friction
        self._data.clock[:] = (time, time, 0.0)
        self._resume()
        self._data.rest()

    def _move_to(self, ground: Terrain) -> None:
        """Go on with arrays for another ground, under the same settings."""
        if ground is self.terrain:
            return
        self._go_on_with(on_ground(self._workspace, ground), ground)

    def _go_on_with(self, work: Workspace, ground: Terrain) -> None:
        """Step in other arrays from now on."""
        self._stepper = self._model.bind(work)
        self.terrain, self._workspace, self._data = ground, work, work.data
        self._context, self._forces = StepContext(work), AppliedForces(self.robot, work)
        self.shadow = self._shadows.models  # type: ignore[assignment]

    def _resume(self) -> None:
        """Go on from the configuration at hand."""
        self._failure, self._workspace.status[0] = None, READY
        self._stepper.update_contacts()

    @property
    def last_report(self) -> StepReport:
        """Report of the last step; after a reset, of a state on which nothing has acted yet."""
        return StepReport(self._data.buffer.copy(), self._context)

    def snapshot(self) -> Snapshot:
        """Return the whole state: the steps after `restore` are bit-identical."""
        return Snapshot(
            self.robot.name, self._data.buffer.copy(), self.friction, self.restitution,
            self._workspace.stabilisation.copy(), self._model, self.constraints,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot of this simulation.

        Raises:
            InvalidInput: a snapshot of another robot, or on a ground with other features.
        """
        self._hold_as_in(of_type('snapshot', snapshot, Snapshot))
        snapshot.check_fits(self.snapshot())
        start, stop, _ = self.sizes.layout['clock']
        finite_array('snapshot: time', snapshot.buffer[start:stop])
        self.time_step = snapshot.buffer[self.sizes.layout['time_step'][0]]
        if snapshot.contact_model is not self._model:
            self.contact_model = snapshot.contact_model  # type: ignore[assignment]
        self._data.buffer[:] = snapshot.buffer
        self._workspace.default_friction[:] = snapshot.friction
        self._workspace.default_restitution[:] = snapshot.restitution
        self._workspace.stabilisation[:] = snapshot.stabilisation
        self._resume()

    def add_observer(self, observer: StepObserver) -> None:
        """Tell `observer` about every step from now on.

        Raises:
            InvalidInput: an object without the methods of a StepObserver.
        """
        for method in ('before_step', 'after_step'):
            if not callable(getattr(observer, method, None)):
                raise InvalidInput(f'observer = {shown(observer)}: expected a StepObserver')
        self._observers = (*self._observers, observer)

    def remove_observer(self, observer: StepObserver) -> None:
        """Tell `observer` no more."""
        self._observers = tuple(other for other in self._observers if other is not observer)

    # ---------------------------------------------------------------- settings that may change

    @property
    def contact_model(self) -> str:
        """Name of the contact model; assign a name or an instance to switch between steps."""
        return self._model.name

    @contact_model.setter
    def contact_model(self, model: str | ContactModel) -> None:
        chosen = as_contact_model(model)
        self._data.springs[:] = 0.0
        self._stepper = chosen.bind(self._workspace)  # may refuse, before anything has changed
        if chosen.name != self._model.name:
            self._data.memory[:] = 0.0
        self._model = chosen
        if self._started:
            with announced(type(chosen).__module__):
                self._compile()

    @property
    def model(self) -> ContactModel:
        """The contact model with its parameters."""
        return self._model

    @property
    def shadow(self) -> tuple[str, ...]:
        """Models that solve the same steps without advancing them; assign names or instances.

        What they answer is in `StepReport.shadows`; the simulation keeps every bit.
        """
        return self._shadows.names

    @shadow.setter
    def shadow(self, models: Iterable[str | ContactModel]) -> None:
        self._shadows = Shadows(self._workspace, self._context, models)

    # ---------------------------------------------------------------- the step

    def step(
        self, effort: ArrayLike, external_wrenches: Mapping[str, ArrayLike] | None = None
    ) -> StepReport:
        """Advance by one time step.

        Args:
            effort: joint efforts [N m], shape (n_joints,); they act through `robot.actuators`.
            external_wrenches: frame name to force [N] and torque [N m] at the frame's origin,
                world axes, shape (6,).

        Raises:
            InvalidInput: wrong sizes or values that are not finite; nothing is stepped.
            UnknownName: a frame that does not exist.
            NonFiniteState: the step would not be finite, or an earlier one was not; the state
                stays as it was before that step until `reset` or `restore`.
        """
        if self._failure is not None:
            raise NonFiniteState(self._failure)
        self._forces.set(effort, external_wrenches)
        if not self._observers and not self._shadows.names:
            if self._stepper.advance() != READY:
                raise self._refusal()
            return StepReport(self._data.buffer.copy(), self._context)
        return self._observed_step(external_wrenches or {})

    @checked
    def follow(self, command: JointCommand, steps: int) -> StepReport:
        """Advance by `steps` steps of joint PD with feed-forward, evaluated in every step.

        Models with a compiled step take all of them in one call, unless somebody observes them.

        Raises:
            InvalidInput: a command of another number of joints, steps < 1.
            NonFiniteState: as `step`; the state is that before the step that failed.
        """
        count('steps', steps)
        work, given, joints = self._workspace, len(command.position), self.robot.n_joints
        if given != joints:
            raise InvalidInput(f'command: {given} joints, expected {joints}')
        if self._failure is not None:
            raise NonFiniteState(self._failure)
        if self._observers or self._shadows.names or not isinstance(self._stepper, TimeStepping):
            return self._follow_slowly(command, int(steps))
        work.target[:], work.target_velocity[:] = command.position, command.velocity
        work.kp[:], work.kd[:] = command.stiffness, command.damping
        work.feed_forward[:] = command.effort
        self._forces.release()
        work.control[0] = JOINT_PD
        try:
            if self._stepper.advance(int(steps)) != READY:
                raise self._refusal()
        finally:
            work.control[0] = DIRECT
        return self.last_report

    def _follow_slowly(self, command: JointCommand, steps: int) -> StepReport:
        robot, data = self.robot, self._data
        for _ in range(steps):
            q, v = robot.joint_positions(data.q), robot.joint_velocities(data.v)
            report = self.step(command.effort_at(q, v, robot.continuous_joints))
        return report

    def _observed_step(self, wrenches: Mapping[str, ArrayLike]) -> StepReport:
        """Advance by one step in front of observers and shadows."""
        self._forces.check()
        for observer in self._observers:
            observer.before_step(wrenches)
        shadows = self._shadows.begin(self._model.name) if self._shadows.names else None
        refusal = None if self._stepper.advance() == READY else self._refusal()
        for observer in self._observers:
            observer.after_step()
        if refusal is not None:
            raise refusal
        return StepReport(self._data.buffer.copy(), self._context, shadows)

    def _refusal(self) -> ContactSimError:
        """Return why the step was not taken; after a motion that is not finite no more are."""
        if (status := int(self._workspace.status[0])) > READY:
            self._workspace.status[0] = READY
            return self._forces.refusal(status)
        self._stepper.update_contacts()
        self._failure = refusal_of(self._workspace, self.robot, self.contact_model)
        return NonFiniteState(self._failure)


# --- Going back to a state without going back to its time or its settings.

SETTINGS = ('gravity', 'time_step', 'springs')
"""Fields of a snapshot that are no state."""


def resume(sim: Simulator, snapshot: Snapshot, time: float) -> None:
    """Continue at `time` [s] from the state of a snapshot, under the settings now in force.

    The steps that follow are bit-identical to those that followed the snapshot, but for their
    time, if neither settings nor the contact model have changed. Constraints are settings, but
    for the places that they found for themselves: these are as they were, or in the state.

    Raises:
        InvalidInput: a snapshot of another robot, or a state in which the constraints do not hold.
    """
    now = sim.snapshot()
    if snapshot.constraints != now.constraints:
        snapshot = _held_there(sim, snapshot, now)
        now = replace(now, constraints=snapshot.constraints)
    if snapshot.robot != now.robot or snapshot.buffer.shape != now.buffer.shape:
        sim.restore(snapshot)  # says what is wrong
    buffer = snapshot.buffer.copy()
    layout = sim.sizes.layout
    for field in SETTINGS:
        start, stop, _ = layout[field]
        buffer[start:stop] = now.buffer[start:stop]
    if snapshot.contact_model.name != now.contact_model.name:  # what it kept means nothing now
        for field in ('memory', 'memory_start'):
            start, stop, _ = layout[field]
            buffer[start:stop] = 0.0
    clock = layout['clock'][0]
    buffer[clock : clock + 3] = time, time, 0.0
    sim.restore(replace(now, buffer=buffer))


def _held_there(sim: Simulator, snapshot: Snapshot, now: Snapshot) -> Snapshot:
    """Return the state of a snapshot with the constraints that hold now, and let them."""
    given = sim.given_constraints
    sim.restore(snapshot)
    try:
        sim.constraints = given
    except ContactSimError:
        sim.restore(now)
        sim.constraints = given
        raise
    return sim.snapshot()
