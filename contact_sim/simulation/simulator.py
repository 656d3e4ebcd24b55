"""Simulator: one robot on one terrain under one contact model, one step at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_sim.collision.terrain import Terrain, as_terrain
from contact_sim.contact.record import Sizes
from contact_sim.contact.workspace import Workspace, leaf_dof, spheres_of
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.dynamics.applied import apply_effort, apply_wrench
from contact_sim.dynamics.terms import DynamicsTerms, gravity_vector
from contact_sim.errors import InvalidInput, NonFiniteState, UnknownName
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.checks import checked_wrench, frozen, per_contact, positive
from contact_sim.simulation.compilation import announced
from contact_sim.simulation.observer import StepObserver
from contact_sim.simulation.placement import standing_on
from contact_sim.simulation.report import StepContext, StepReport
from contact_sim.simulation.shadow import Shadows

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Everything the next steps depend on besides robot, terrain and commands."""

    robot: str
    buffer: Array
    restitution: Array
    stabilisation: Array
    contact_model: ContactModel


class Simulator:
    """Steps a robot with the contact model the user picked.

    Args:
        robot: what moves.
        contact_model: a name (`contact_sim.contact_models()`) or an instance.
        terrain: a name ('plane', 'inclined_plane') or a Terrain.
        friction: Coulomb coefficient [-], one number or one per contact point.
        restitution: Newton coefficient in [0, 1], one number or one per contact point.
        time_step: h [s].
        gravity: [m/s²], a number g for (0, 0, −g), or three numbers.
        constraints: bilateral constraints; none is supported yet.

    Raises:
        InvalidInput: a value outside what is allowed.
        UnknownName: a contact model or terrain that does not exist.
    """

    def __init__(
        self,
        robot: RobotModel,
        contact_model: str | ContactModel = 'ncp',
        terrain: str | Terrain = 'plane',
        friction: float | ArrayLike = 0.8,
        restitution: float | ArrayLike = 0.0,
        time_step: float = 1e-3,
        gravity: float | ArrayLike = 9.81,
        constraints: Sequence[object] = (),
    ) -> None:
        if not isinstance(robot, RobotModel):
            raise InvalidInput(f'robot = {robot!r}: expected a RobotModel; see load_robot')
        if len(constraints):
            raise InvalidInput('constraints: bilateral constraints are not supported yet; use ()')
        h = positive('time_step', time_step, 's')
        self.robot = robot
        self.terrain = as_terrain(terrain)
        self._terms = DynamicsTerms(robot.pinocchio_model, gravity_vector(gravity))  # type: ignore[arg-type]
        self._workspace = work = Workspace(
            self._terms,
            spheres_of(robot),
            robot.joint_damping,
            robot.joint_friction,
            robot.n_joints,
        )
        self._record = work.record
        work.plane[:] = self.terrain.plane
        work.set_time_step(h)
        self._record.gravity[:] = gravity_vector(gravity)  # type: ignore[arg-type]
        self.friction = friction  # type: ignore[assignment]
        self.restitution = restitution  # type: ignore[assignment]
        self._started = False
        self._model: ContactModel = as_contact_model(contact_model)
        self.contact_model = contact_model  # type: ignore[assignment]
        names = tuple(point.name for point in robot.contact_points)
        self._context = StepContext(
            work.sizes,
            names,
            self._terms.model,
            work.damping,
            self._terms.dof_parent,
            work.inverse_weight,
        )
        self._effort_limit = np.array(robot.effort_limit)
        self._dof_of_joint = np.array(robot.joint_velocity_index, dtype=np.int64)
        self._failure: str | None = None
        self._observers: tuple[StepObserver, ...] = ()
        self._shadows = Shadows(robot, work, self._context, ())
        with announced():
            self.reset()
            self._compile()
        self._started = True

    def _compile(self) -> None:
        """Take one step and take it back, so that the first real step costs what all others do."""
        start = self._record.buffer.copy()
        self._apply(np.zeros(self.robot.n_joints))
        self._stepper.advance()
        self._record.buffer[:] = start
        self._stepper.update_contacts()

    # ---------------------------------------------------------------- state

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self._record.clock[0])

    @property
    def step_count(self) -> int:
        """Steps since the last reset."""
        return int(self._record.clock[2])

    @property
    def q(self) -> Array:
        """Configuration in Pinocchio's convention, a read-only copy, shape (nq,)."""
        return frozen(self._record.q)

    @property
    def v(self) -> Array:
        """Velocity in Pinocchio's convention, a read-only copy, shape (nv,)."""
        return frozen(self._record.v)

    @property
    def sizes(self) -> Sizes:
        """Sizes and layout of the state, as in `snapshot().buffer` and `StepReport.record`."""
        return self._workspace.sizes

    def frame_placement(self, name: str) -> pin.SE3:
        """Return the placement of a frame in world at the current configuration.

        Raises:
            UnknownName: a frame that does not exist.
        """
        frame = self._frame(name)
        return self._terms.data.oMi[frame.parentJoint] * frame.placement

    def standing_configuration(self, pose: str = 'standing') -> Array:
        """Return the reference pose of the robot with its lowest foot on the terrain, (nq,)."""
        return standing_on(self.robot, self.terrain, pose)

    def reset(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, time: float = 0.0
    ) -> None:
        """Start again from q (nq,), v (nv,) at `time` [s]; default: standing at rest.

        Raises:
            InvalidInput: wrong sizes, values that are not finite, a quaternion that is not unit.
        """
        start = self.standing_configuration() if q is None else self.robot.checked_configuration(q)
        velocity = np.zeros(self.robot.nv) if v is None else self.robot.checked_velocity(v)
        if not np.isfinite(time):
            raise InvalidInput(f'time = {time!r} s: expected a finite number')
        self._record.q[:] = start
        self._record.v[:] = velocity
        self._record.impulse[:] = 0.0
        self._record.memory[:] = 0.0
        self._record.clock[:] = (time, time, 0.0)
        self._failure = None
        self._stepper.update_contacts()
        self._record.rest()

    @property
    def last_report(self) -> StepReport:
        """Report of the last step; after a reset, of a state on which nothing has acted yet."""
        return StepReport(self._record.buffer.copy(), self._context)

    def snapshot(self) -> Snapshot:
        """Return the whole state: the steps after `restore` are bit-identical."""
        return Snapshot(
            self.robot.name, self._record.buffer.copy(), self._workspace.restitution.copy(),
            self._workspace.stabilisation.copy(), self._model,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot of this simulation.

        Raises:
            InvalidInput: a snapshot of another robot.
        """
        fits = snapshot.buffer.shape == self._record.buffer.shape
        if snapshot.robot != self.robot.name or not fits:
            raise InvalidInput(
                f'snapshot of robot {snapshot.robot!r}: expected one of {self.robot.name!r}'
            )
        if snapshot.contact_model is not self._model:
            self.contact_model = snapshot.contact_model  # type: ignore[assignment]
        self._record.buffer[:] = snapshot.buffer
        self._workspace.restitution[:] = snapshot.restitution
        self._workspace.stabilisation[:] = snapshot.stabilisation
        self._terms.set_gravity(self._record.gravity)
        self._failure = None
        self._stepper.update_contacts()

    def add_observer(self, observer: StepObserver) -> None:
        """Tell `observer` about every step from now on."""
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
        self._record.stiffness[0] = 0.0
        self._stepper = chosen.bind(self._workspace)  # may refuse, before anything has changed
        if chosen.name != self._model.name:
            self._record.memory[:] = 0.0
        self._model = chosen
        if self._started:
            with announced():
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
        with announced():
            self._shadows = Shadows(self.robot, self._workspace, self._context, models)

    @property
    def friction(self) -> Array:
        """μ of every contact point [-], shape (nc,); assign one number or one per point."""
        return frozen(self._record.friction)

    @friction.setter
    def friction(self, value: float | ArrayLike) -> None:
        self._record.friction[:] = per_contact('friction', value, self.sizes.nc)

    @property
    def restitution(self) -> Array:
        """Newton coefficient of every contact point [-], shape (nc,); assignable."""
        return frozen(self._workspace.restitution)

    @restitution.setter
    def restitution(self, value: float | ArrayLike) -> None:
        self._workspace.restitution[:] = per_contact('restitution', value, self.sizes.nc, 1.0)

    @property
    def baumgarte(self) -> float:
        """Share β of a penetration taken out per step [-], in [0, 1]; assignable."""
        return float(self._workspace.stabilisation[0])

    @baumgarte.setter
    def baumgarte(self, value: float) -> None:
        if not 0.0 <= value <= 1.0:
            raise InvalidInput(f'baumgarte = {value!r}: expected a value in [0, 1]')
        self._workspace.stabilisation[0] = value

    @property
    def restitution_threshold(self) -> float:
        """Approach speed below which impacts are plastic [m/s]; assignable."""
        return float(self._workspace.stabilisation[1])

    @restitution_threshold.setter
    def restitution_threshold(self, value: float) -> None:
        if not (np.isfinite(value) and value >= 0.0):
            raise InvalidInput(f'restitution_threshold = {value!r} m/s: expected a value >= 0')
        self._workspace.stabilisation[1] = value

    @property
    def time_step(self) -> float:
        """H [s]."""
        return float(self._record.time_step[0])

    @property
    def gravity(self) -> Array:
        """Gravity in world [m/s²], shape (3,)."""
        return frozen(self._record.gravity)

    # ---------------------------------------------------------------- the step

    def step(
        self, effort: ArrayLike, external_wrenches: Mapping[str, ArrayLike] | None = None
    ) -> StepReport:
        """Advance by one time step.

        Args:
            effort: joint efforts [N m], shape (n_joints,); saturated at the robot's limits.
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
        self._apply(effort)
        if external_wrenches:
            self._apply_wrenches(external_wrenches)
        for observer in self._observers:
            observer.before_step(external_wrenches or {})
        shadows = self._shadows.begin(self._model.name) if self._shadows.names else None
        finite = self._stepper.advance()
        if finite:
            clock = self._record.clock
            clock[2] += 1.0
            clock[0] = clock[1] + clock[2] * self._record.time_step[0]
        else:
            self._fail()
        for observer in self._observers:
            observer.after_step()
        if not finite:
            raise NonFiniteState(self._failure)
        return StepReport(self._record.buffer.copy(), self._context, shadows)

    def _apply(self, effort: ArrayLike) -> None:
        """Check and saturate the joint efforts, and fill τ."""
        try:
            command = np.ascontiguousarray(effort, dtype=float)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f'effort = {effort!r}: expected numbers') from error
        record = self._record
        if command.shape != record.effort.shape:
            raise InvalidInput(f'effort: shape {command.shape}, expected {record.effort.shape}')
        if not command.flags.writeable:
            command = command.copy()  # a read-only array is another type to the kernel
        bad = apply_effort(
            command, self._effort_limit, self._dof_of_joint, record.effort, record.tau
        )
        if bad >= 0:
            joint = self.robot.joint_names[bad]
            raise InvalidInput(f'effort of joint {joint!r} = {command[bad]} N m: must be finite')

    def _apply_wrenches(self, wrenches: Mapping[str, ArrayLike]) -> None:
        """Check all external wrenches, then add them to τ."""
        model, terms = self.robot.pinocchio_model, self._terms
        checked = [
            (self._frame(name), checked_wrench(name, value)) for name, value in wrenches.items()
        ]
        for frame, wrench in checked:
            leaf = leaf_dof(model.joints[frame.parentJoint])
            point = np.array(self.frame_placement(frame.name).translation)
            apply_wrench(wrench, point, leaf, terms.dof_parent, terms.jacobian, self._record.tau)

    def _frame(self, name: str) -> pin.Frame:
        model = self.robot.pinocchio_model
        if not model.existFrame(name):
            raise UnknownName('frame', name, [frame.name for frame in model.frames])
        return model.frames[model.getFrameId(name)]

    def _fail(self) -> None:
        """Keep the last finite state; no more steps until reset."""
        record = self._record
        record.now[:] = record.start
        record.impulse[:] = 0.0
        self._stepper.update_contacts()
        self._failure = (
            f'step {self.step_count + 1} at t = {self.time:g} s would not be finite under contact '
            f'model {self.contact_model!r}: largest speed before it '
            f'{np.abs(record.v).max(initial=0.0):g}, largest generalized force '
            f'{np.abs(record.tau).max(initial=0.0):g}; reset to go on'
        )
