"""Simulator: one robot on one terrain under one contact model, one step at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked
from contact_sim.arrays.fields import Sizes
from contact_sim.collision.terrain import Terrain, TerrainLike, as_terrain
from contact_sim.constraints.resolved import where_it_is
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.contact_models.time_stepping.actuation import DIRECT, JOINT_PD, READY
from contact_sim.contact_models.time_stepping.stepper import TimeStepping
from contact_sim.dynamics.gravity import gravity_vector
from contact_sim.dynamics.integrators import integrator_code
from contact_sim.errors import ContactSimError, InvalidInput, NonFiniteState, of_type, shown
from contact_sim.numbers import count, finite, finite_array, positive
from contact_sim.robot.actuation import JointCommand
from contact_sim.robot.configuration import frozen
from contact_sim.robot.constraints import Constraint, checked_constraints
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.applied_forces import AppliedForces
from contact_sim.simulation.checks import checked_robot
from contact_sim.simulation.compilation import announced
from contact_sim.simulation.constraint_settings import (
    ConstraintSettings,
    check_integrator,
    held,
)
from contact_sim.simulation.contact_settings import ContactSettings
from contact_sim.simulation.divergence import refusal_of
from contact_sim.simulation.new_ground import on_ground
from contact_sim.simulation.observer import StepObserver
from contact_sim.simulation.placement import standing_on
from contact_sim.simulation.report import StepContext, StepReport
from contact_sim.simulation.shadow import Shadows
from contact_sim.simulation.snapshot import Snapshot
from contact_sim.simulation.time_settings import TimeSettings

Array = NDArray[np.float64]


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
