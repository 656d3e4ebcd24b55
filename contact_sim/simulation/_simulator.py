"""Simulator: one robot on one terrain under one contact model, one step at a time.

A step is taken by the compiled stepper of the contact model on the arrays of a `Workspace`; the
simulator writes efforts and wrenches into them, and a `StepReport` is a copy of them afterwards.
Settings that change the layout of the arrays (terrain, constraints, time step) make new arrays,
in which the state goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import (
    checked,
    closed_attributes,
    count,
    finite,
    finite_array,
    named_keywords,
    number_within,
    positive,
    real_array,
)
from contact_sim.arrays._fields import Sizes
from contact_sim.collision._detection import leaf_dof
from contact_sim.collision._terrain import Terrain, TerrainLike, as_terrain
from contact_sim.constraints._constraint_rows import ConstraintTable, with_reference_pose
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel, TimeStepping, apply_commands
from contact_sim.contact_models._stages import DIRECT, JOINT_PD, READY
from contact_sim.dynamics._forces import add_wrench
from contact_sim.dynamics._integration import INTEGRATORS, integrator_code
from contact_sim.dynamics._rigid_body import gravity_vector
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    NonFiniteState,
    UnknownName,
    of_type,
    shown,
)
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._constraints import Constraint, checked_constraints
from contact_sim.robot._coordinates import find_frame, frozen
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._judge import controller_limit, refusal_of
from contact_sim.simulation._placement import (
    check_integrator,
    closed_configuration,
    place_checked,
    with_place_of,
)
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._running import RunController, StepObserver, announced
from contact_sim.simulation._shadow import Shadows
from contact_sim.simulation._state import Snapshot, cast_rays, random_state, standing_on, with_base
from contact_sim.simulation._trajectory import Trajectory, TrajectoryBuilder, whole_steps
from contact_sim.simulation._user_values import (
    MOMENT_COEFFICIENTS,
    checked_robot,
    checked_wrenches,
    effort_form,
    on_ground,
    over_ground,
    per_contact,
)
from contact_sim.step._workspace import Workspace

if TYPE_CHECKING:
    from contact_sim.derivatives import StepDerivatives
    from contact_sim.derivatives._linearisation import Linearisation

READ_ONLY = {
    'q': 'call reset(q), reset(q, v) or restore(snapshot); in q[2] = ... you set a copy',
    'v': 'call reset(q, v)',
    'time': 'call reset(time=...)',
    'step_count': 'call reset()',
    'robot': 'make a new Simulator(robot)',
    'terrain': 'call reset(terrain=...)',
    'gravity': 'make a new Simulator(robot, gravity=...)',
    'integrator': 'make a new Simulator(robot, integrator=...)',
    'model': 'assign contact_model, a name or an instance',
    'sizes': 'they follow from robot, terrain and constraints',
    'last_report': 'it is that of the last step',
    'pairs_left_out': 'it is counted',
    'given_constraints': 'assign constraints',
}
"""Attributes of a Simulator that cannot be assigned, and what to do instead."""


@closed_attributes(**READ_ONLY)
class Simulator:
    """Simulation of a robot on a terrain with a selectable contact model.

    Args:
        robot: what moves.
        contact_model: a name (`contact_sim.contact_models()`) or an instance.
        terrain: a name of `contact_sim.terrains()`, a file (heights, mesh, YAML of a generator), a
            Terrain, or a description of `contact_sim.terrain`.
        friction: Coulomb coefficient [-]: one number, one per contact point, which holds for all
            contacts it has with the features of the ground, or one per contact. A region of the
            terrain that has a friction of its own replaces it there.
        restitution: Newton coefficient in [0, 1], likewise.
        torsional_friction: r_s [m] of the contacts with the ground, likewise: their moment about
            the normal is at most r_s times the normal force (theory 4.7).
        rolling_friction: r_r [m], the same about axes along the ground.
        time_step: h [s].
        integrator: of time-stepping models, 'semi_implicit' or 'momentum' (theory 2.0).
        gravity: [m/s²], a number g for (0, 0, −g), or three numbers.
        constraints: bilateral constraints, of `contact_sim.constraints`, besides those of the
            robot; those without a place hold where the robot is at a reset.

    Raises:
        InvalidInput: a value outside what is allowed.
        UnknownName: a contact model, terrain, integrator, frame or joint that does not exist.
    """

    @named_keywords
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
        torsional_friction: float | ArrayLike = 0.0,
        rolling_friction: float | ArrayLike = 0.0,
    ) -> None:
        self._robot = checked_robot(robot)
        self._declared = checked_constraints(  # as the user gave them, some without a place
            (*self.robot.constraints, *checked_constraints(constraints))
        )
        self._terrain = as_terrain(terrain)
        h = positive('time_step', time_step, 's')
        start = standing_on(self.robot, self.terrain)
        placed = [with_reference_pose(self.robot, own, start) for own in self._declared]
        work = Workspace(robot, self.terrain, h, placed)
        values = (torsional_friction, rolling_friction)
        moments = [
            over_ground(name, value, work.sizes)
            for name, value in zip(MOMENT_COEFFICIENTS, values, strict=True)
        ]
        if any(numbers.any() for numbers in moments):
            work = Workspace(robot, self.terrain, h, placed, moments=True)
            work.data.torsional_friction[:], work.data.rolling_friction[:] = moments
        self._workspace = work
        self._data = work.data
        self._data.q[:] = start
        work.integrator[0] = integrator_code(integrator)
        check_integrator(work)
        self._data.gravity[:] = gravity_vector(gravity)
        self.friction = friction  # type: ignore[assignment]
        self.restitution = restitution  # type: ignore[assignment]
        self._started, self._pushed, self._efforts = False, False, work.command.shape
        self._linearisation: Linearisation | None = None
        self._model: ContactModel = as_contact_model(contact_model)
        self.contact_model = contact_model  # type: ignore[assignment]
        self._context, self._command = StepContext(work), work.command
        self._failure: str | None = None
        self._observers: tuple[StepObserver, ...] = ()
        self._shadows = Shadows(work, self._context, ())
        with announced(self._model):
            self.reset()
            self._compile()
        self._started = True

    def _compile(self) -> None:
        """Take one step and take it back, so that the first real step costs what all others do."""
        start = self._data.buffer.copy()
        self._workspace.command[:] = 0.0
        self._stepper.advance()
        self._workspace.status[0] = READY
        self._data.buffer[:] = start
        self._stepper.update_contacts()

    def __deepcopy__(self, memo: dict[int, Any]) -> Simulator:
        """Refuse: its parts know each other's addresses.

        Raises:
            InvalidInput: always; the message says what to do instead.
        """
        raise InvalidInput(
            'a Simulator cannot be copied; make a second one with the same arguments and let it '
            '`restore` the `snapshot()` of this one'
        )

    def __repr__(self) -> str:
        loaded = np.count_nonzero(self._data.normal_force > 0.0)
        return (
            f'Simulator({self.robot.name!r} on {self.terrain!r}, {self.contact_model}, '
            f't = {self.time:g} s, h = {self.time_step:g} s, {loaded} contacts loaded)'
        )

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
        try:
            command = real_array('effort', effort)
        except InvalidInput as error:
            raise InvalidInput(f'{error}; {effort_form(self.robot)}') from error
        if command.shape != self._efforts:
            raise InvalidInput(f'effort: shape {command.shape}; {effort_form(self.robot)}')
        self._command[...] = command  # the step itself refuses efforts that are not finite
        if external_wrenches is not None:
            self._push(external_wrenches)
        elif self._pushed:
            self._release()
        if self._observers or self._shadows.names:
            return self._observed_step(external_wrenches or {})
        if self._stepper.advance() != READY:
            raise self._refusal()
        return StepReport(self._data.buffer.copy(), self._context)

    def _observed_step(self, wrenches: Mapping[str, ArrayLike]) -> StepReport:
        """Advance by one step with observers and shadows."""
        if status := apply_commands(*self._workspace.arrays):  # fills saturated efforts and τ
            raise self._effort_error(status)
        for observer in self._observers:
            observer.before_step(wrenches)
        shadows = self._shadows.begin(self._model.name) if self._shadows.names else None
        refusal = None if self._stepper.advance() == READY else self._refusal()
        for observer in self._observers:
            observer.after_step()
        if refusal is not None:
            raise refusal
        return StepReport(self._data.buffer.copy(), self._context, shadows)

    def derivatives(
        self, effort: ArrayLike, external_wrenches: Mapping[str, ArrayLike] | None = None
    ) -> StepDerivatives:
        """Return the derivatives of the step that `step` would take now; nothing moves.

        Arguments and errors are those of `step`.

        Raises:
            InvalidInput: also for a simulation, or a step, that has no derivatives.
        """
        command = real_array('effort', effort)
        if command.shape != self._efforts:
            raise InvalidInput(f'effort: shape {command.shape}; {effort_form(self.robot)}')
        arrays = self._linearisation
        if arrays is None or not arrays.fits(self._workspace, self._model):
            from contact_sim.derivatives._linearisation import Linearisation

            arrays = self._linearisation = Linearisation(self._workspace, self._model)
        if external_wrenches is None and not self._pushed:
            return arrays.of_step(command)
        self._release()
        self._push(external_wrenches or {})
        try:
            return arrays.of_step(command, external_wrenches)
        finally:
            self._release()

    @checked
    def follow(self, command: JointCommand, steps: int) -> StepReport:
        """Advance by `steps` steps of joint PD with feed-forward, evaluated in every step.

        Models with a compiled step take all of them in one call, unless somebody observes them.

        Raises:
            InvalidInput: a command of another number of joints, steps < 1.
            NonFiniteState: as `step`; the state is that before the step that failed.
        """
        count('steps', steps)
        work, robot, data = self._workspace, self.robot, self._data
        if len(command.position) != robot.n_joints:
            raise InvalidInput(
                f'command: {len(command.position)} joints, expected {robot.n_joints}'
            )
        if self._failure is not None:
            raise NonFiniteState(self._failure)
        if self._observers or self._shadows.names or not isinstance(self._stepper, TimeStepping):
            for _ in range(steps):
                q, v = robot.joint_positions(data.q), robot.joint_velocities(data.v)
                report = self.step(command.effort_at(q, v, robot.continuous_joints))
            return report
        work.target[:], work.target_velocity[:] = command.position, command.velocity
        work.kp[:], work.kd[:] = command.stiffness, command.damping
        work.feed_forward[:] = command.effort
        self._release()
        work.control[0] = JOINT_PD
        try:
            if self._stepper.advance(int(steps)) != READY:
                raise self._refusal()
        finally:
            work.control[0] = DIRECT
        return self.last_report

    def _push(self, wrenches: Mapping[str, ArrayLike]) -> None:
        """Check all external wrenches, then make them the external force of the step."""
        work, tree = self._workspace, self._workspace.tree
        pushes = checked_wrenches(work.model, wrenches)
        if not pushes and not self._pushed:
            return
        self._release()
        for frame, wrench in pushes:
            self._pushed, body = True, tree.body_of_joint[frame.parentJoint]
            add_wrench(
                wrench, tree.axes[body].T @ frame.placement.translation, work.pose[body],
                (work.columns, work.origin), leaf_dof(work.model.joints[frame.parentJoint]),
                work.dof_parent, work.external,
            )  # fmt: skip

    def _release(self) -> None:
        """Take the external wrenches away."""
        self._workspace.external[:], self._pushed = 0.0, False

    def _refusal(self) -> ContactSimError:
        """Return why the step was not taken; after a motion that is not finite no more are."""
        if (status := int(self._workspace.status[0])) > READY:
            self._workspace.status[0] = READY
            return self._effort_error(status)
        self._stepper.update_contacts()
        self._failure = refusal_of(self._workspace, self.robot, self.contact_model)
        return NonFiniteState(self._failure)

    def _effort_error(self, status: int) -> InvalidInput:
        """Return the error for a status > READY, the number of a joint counted from 1."""
        name, value = self.robot.joint_names[status - 1], self._command[status - 1]
        return InvalidInput(f'effort of joint {name!r} = {value} N m: must be finite')

    def add_observer(self, observer: StepObserver) -> None:
        """Call `observer` before and after every step from now on.

        Raises:
            InvalidInput: an object without the methods of a StepObserver.
        """
        for method in ('before_step', 'after_step'):
            if not callable(getattr(observer, method, None)):
                raise InvalidInput(f'observer = {shown(observer)}: expected a StepObserver')
        self._observers = (*self._observers, observer)

    def remove_observer(self, observer: StepObserver) -> None:
        """Stop calling `observer`."""
        self._observers = tuple(other for other in self._observers if other is not observer)

    @checked
    def run(
        self,
        controller: JointCommand | RunController,
        seconds: float,
        period: int = 1,
        external_wrenches: Mapping[str, ArrayLike] | None = None,
    ) -> Trajectory:
        """Advance by `seconds` under a controller; return every step.

        Args:
            controller: an object with `effort(time, q, v)`, a function of time [s], q (nq,) and v
                (nv,), both returning joint efforts (n_joints,) [N m] or a JointCommand; or one
                JointCommand for all steps, such as `contact_sim.robot.holding(...)`.
            seconds: simulated time, a whole number of steps.
            period: steps per call of the controller; its efforts or command hold in between.
            external_wrenches: as of `step`, in every step; not with a JointCommand.

        Raises:
            InvalidInput: a controller or efforts of another kind, no whole number of steps.
            NonFiniteState: as `step`; the state is that before the step that failed.
        """
        constant = isinstance(controller, JointCommand)
        act: Any = getattr(controller, 'effort', controller)
        if not constant and not callable(act):
            raise InvalidInput(
                f'controller = {shown(controller)}: expected an object with effort(time, q, v), a '
                'function (time, q, v) -> efforts, or a JointCommand'
            )
        count('period', period)
        command: Any = controller
        start = self.time, self.q, self.v
        builder = TrajectoryBuilder(self.robot, self.terrain, self.sizes)
        for k in range(whole_steps('seconds', seconds, self.time_step)):
            if not constant and k % period == 0:
                command = act(self.time, self.q, self.v)
            if isinstance(command, JointCommand):
                if external_wrenches is not None:
                    raise InvalidInput(
                        'external_wrenches: unsupported with a JointCommand; return efforts'
                    )
                builder.add(self.follow(command, 1))
                continue
            try:
                builder.add(self.step(command, external_wrenches))
            except NonFiniteState as error:
                limit = controller_limit(act, start, self.robot, self.time_step * period)
                if not limit:
                    raise
                raise NonFiniteState(f'{error}; {limit}') from error
        return builder.trajectory()

    # ---------------------------------------------------------------- state

    @property
    def robot(self) -> RobotModel:
        """What moves."""
        return self._robot

    @property
    def terrain(self) -> Terrain:
        """The ground."""
        return self._terrain

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self._data.clock[0])

    @property
    def step_count(self) -> int:
        """Steps since the last reset."""
        return int(self._data.clock[2])

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
        """Number of contacts between bodies that had no slot so far, see `Collisions.most`."""
        return int(self._workspace.pair_counts[1])

    @property
    def last_report(self) -> StepReport:
        """Report of the last step; after a reset, a report of the initial state without forces."""
        return StepReport(self._data.buffer.copy(), self._context)

    @checked
    def frame_placement(self, name: str) -> pin.SE3:
        """Return the placement of a frame in world at the current configuration.

        Raises:
            UnknownName: a frame that does not exist.
        """
        frame, tree = find_frame(self._workspace.model, name), self._workspace.tree
        body = tree.body_of_joint[frame.parentJoint]
        pose = self._workspace.pose[body]
        axes = pose[:9].reshape(3, 3).T @ tree.axes[body].T
        return pin.SE3(axes, pose[9:].copy()) * frame.placement

    def contacts(self) -> tuple[str, ...]:
        """Return a sentence for each contact that carried load in the last step.

        Which part sticks or slips, where, and with what force; numbers are in
        `last_report.contacts` and `last_report.pairs`.
        """
        return self.last_report.sentences()

    @checked
    def ray_cast(
        self, origin: ArrayLike, direction: ArrayLike, longest: float = 100.0
    ) -> float | Array:
        """Return the distances along rays to the ground [m]; inf where a ray meets none.

        Rays see the ground only; they may miss what is thinner than 1 mm. 0 for a ray that begins
        in the ground. `sensors.RayScene` casts many rays faster, and sees the links as well.

        Args:
            origin: where the rays begin [m], world, shape (3,) or (n, 3).
            direction: of any length, world, shape (3,) or (n, 3).
            longest: distance up to which they see [m], at most 1000.

        Returns:
            A number for one origin and one direction, else shape (n,).

        Raises:
            InvalidInput: other shapes, a direction that is zero.
        """
        return cast_rays(self.terrain, origin, direction, longest)

    @checked
    def random_start(
        self,
        seed: int,
        joints: float = 0.1,
        tilt: float = 0.1,
        yaw: float = np.pi,
        height: float = 0.0,
        speed: float = 0.0,
    ) -> tuple[Array, Array]:
        """Return a random state (q, v) near the standing pose; `reset(*random_start(seed))`.

        All quantities are uniform; the lowest foot is over the ground. The simulation stays as it
        is. The same seed gives the same state.

        Args:
            seed: a whole number of at least 0.
            joints: largest distance of each joint from the standing pose [rad or m]; position
                limits are kept.
            tilt: largest roll and pitch of the base [rad].
            yaw: largest turn of the base about the vertical [rad].
            height: largest distance of the lowest foot from the ground [m].
            speed: largest velocity of each coordinate [m/s, rad/s].

        Raises:
            InvalidInput: a negative number, a pose in which closed loops cannot be closed.
        """
        sizes = {'joints': joints, 'tilt': tilt, 'yaw': yaw, 'height': height, 'speed': speed}
        return random_state(self.robot, self.terrain, self.assembled, seed, sizes)

    def standing_configuration(self, pose: str = 'standing') -> Array:
        """Return the reference pose of the robot with its lowest foot on the terrain, (nq,)."""
        return standing_on(self.robot, self.terrain, pose)

    @named_keywords
    def reset(
        self,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        time: float = 0.0,
        terrain: TerrainLike | None = None,
        *,
        height: float | None = None,
        orientation: ArrayLike | None = None,
    ) -> None:
        """Start again from q (nq,), v (nv,) at `time` [s]; default: standing at rest.

        On another `terrain`, if given, under the same settings; reports so far stay valid.

        Args:
            q: configuration; None: the standing pose on the ground.
            v: velocity; None: at rest.
            time: [s].
            terrain: another ground; None: the present one.
            height: distance of the lowest foot, or of the lowest corner of another link that the
                ground may touch, from the ground [m]; the base is moved so.
            orientation: of the base in world, a unit quaternion x y z w or roll, pitch and yaw
                [rad]; what is lowest then touches the ground, or is at `height`.

        Raises:
            InvalidInput: wrong sizes, values that are not finite, a quaternion that is not unit,
                friction per contact where the new ground has another number of features; a height
                or an orientation of a fixed base, one orientation of several robots.
        """
        ground = self.terrain if terrain is None else as_terrain(terrain)
        if q is None:
            q = self.assembled(standing_on(self.robot, ground))
        start = self.robot.checked_configuration(q)
        if height is not None or orientation is not None:
            start = with_base(self.robot, ground, start, height, orientation)
        velocity = np.zeros(self.robot.nv) if v is None else self.robot.checked_velocity(v)
        time = finite('time', time)
        table, buffer = self._workspace.table, self._data.buffer.copy()
        try:
            if self._declared:
                place_checked(self._workspace, self._declared, start)
            if ground is not self.terrain:
                self._continue_in(on_ground(self._workspace, ground), ground)
        except ContactSimError:
            self._put_back(table, buffer)
            raise
        self._data.q[:] = start
        self._data.v[:] = velocity
        self._data.friction[:] = self._workspace.default_friction
        self._data.clock[:] = (time, time, 0.0)
        self._resume()
        self._data.clear_history()

    def snapshot(self) -> Snapshot:
        """Return the complete state; the steps after `restore` are bit-identical."""
        return Snapshot(
            self.robot.name, self._data.buffer.copy(),
            frozen(self._workspace.default_friction), frozen(self._workspace.default_restitution),
            self._workspace.stabilisation.copy(), self._model, self.constraints,
            self._workspace.has_moments,
        )  # fmt: skip

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a snapshot of this simulation.

        Raises:
            InvalidInput: a snapshot of another robot, or on a ground with other features.
        """
        self._restore_constraints(of_type('snapshot', snapshot, Snapshot))
        before = self._workspace.has_moments
        self._use_moments(of_type('snapshot: moments', snapshot.moments, bool))
        try:
            snapshot.check_fits(self.snapshot())
        except ContactSimError:
            self._use_moments(before)
            raise
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

    def _resume(self) -> None:
        """Go on from the configuration in the arrays."""
        self._failure, self._workspace.status[0] = None, READY
        self._stepper.update_contacts()

    def _continue_in(self, work: Workspace, terrain: Terrain) -> None:
        """Step in other arrays from now on."""
        self._stepper = self._model.bind(work)
        self._terrain, self._workspace, self._data = terrain, work, work.data
        self._context, self._command = StepContext(work), work.command
        self._pushed = bool(work.external.any())  # copied from the arrays so far
        self.shadow = self._shadows.models  # type: ignore[assignment]

    # ---------------------------------------------------------------- contact models

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
            with announced(chosen):
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

    # ---------------------------------------------------------------- time step and gravity

    @property
    def time_step(self) -> float:
        """Time step h [s]; assignable between steps, time and state are kept.

        Of actuators with a delay, the efforts under way are those of the last command.

        Raises:
            InvalidInput: no number > 0, or one of which the delay of an actuator is no multiple.
        """
        return float(self._data.time_step[0])

    @time_step.setter
    def time_step(self, value: float) -> None:
        h = positive('time_step', value, 's')
        if h == self.time_step:
            return
        work = self._workspace.with_time_step(h, self.terrain)
        clock = work.data.clock
        clock[1] = clock[0] - clock[2] * h
        self._continue_in(work, self.terrain)

    @property
    def integrator(self) -> str:
        """Integrator of the time-stepping models; `hybrid` uses Runge-Kutta arcs."""
        return INTEGRATORS[self._workspace.integrator[0]]

    @property
    def gravity(self) -> Array:
        """Gravity in world [m/s²], shape (3,)."""
        return frozen(self._data.gravity)

    # ---------------------------------------------------------------- coefficients of contacts

    def _of_points(self, coefficients: Array) -> Array:
        """Return the coefficients of contact points, of bodies where there are none."""
        return coefficients[: self.sizes.n_ground or None]

    @property
    def friction(self) -> Array:
        """μ of every contact point outside of regions [-], one per contact with the ground.

        Contacts of bodies have the largest of them; without contact points it is theirs. Assign as
        in the constructor. What acted in a step is in `StepReport.contacts`.
        """
        return frozen(self._of_points(self._workspace.default_friction))

    @friction.setter
    def friction(self, value: float | ArrayLike) -> None:
        self._workspace.default_friction[:] = per_contact('friction', value, self._workspace.sizes)

    @property
    def restitution(self) -> Array:
        """Newton coefficient of every contact point outside of regions [-]; as friction."""
        return frozen(self._of_points(self._workspace.default_restitution))

    @restitution.setter
    def restitution(self, value: float | ArrayLike) -> None:
        coefficients = per_contact('restitution', value, self._workspace.sizes, 1.0)
        self._workspace.default_restitution[:] = coefficients

    @property
    def torsional_friction(self) -> Array:
        """Largest moment about the normal over the normal force [m], shape (n_ground,).

        Of every contact with the ground; contacts between bodies have none. Assign as in the
        constructor: one number, one per contact point, or one per contact.
        """
        return self._moment_coefficient('torsional_friction')

    @torsional_friction.setter
    def torsional_friction(self, value: float | ArrayLike) -> None:
        self._set_moments(torsional_friction=value)

    @property
    def rolling_friction(self) -> Array:
        """Largest moment along the ground over the normal force [m], as torsional_friction."""
        return self._moment_coefficient('rolling_friction')

    @rolling_friction.setter
    def rolling_friction(self, value: float | ArrayLike) -> None:
        self._set_moments(rolling_friction=value)

    def _moment_coefficient(self, name: str) -> Array:
        """Return one coefficient of moments for all contacts with the ground."""
        numbers = getattr(self._data, name)
        return frozen(numbers if len(numbers) else np.zeros(self.sizes.n_ground))

    def _set_moments(self, **values: float | ArrayLike) -> None:
        """Set coefficients of moments; the arrays have rows for them where one is not 0."""
        now = {name: self._moment_coefficient(name) for name in MOMENT_COEFFICIENTS}
        for name, value in values.items():
            now[name] = over_ground(name, value, self.sizes)
        moments = any(bool(numbers.any()) for numbers in now.values())
        self._use_moments(moments)
        if moments:
            for name, numbers in now.items():
                getattr(self._data, name)[:] = numbers

    def _use_moments(self, moments: bool) -> None:
        """Step in arrays with, or without, rows for moments of contacts from now on."""
        if moments == self._workspace.has_moments:
            return
        before = self._workspace
        try:
            self._continue_in(before.with_moments(moments, self.terrain), self.terrain)
        except ContactSimError:  # a contact model, or a shadow, that has none
            self._continue_in(before, self.terrain)
            raise

    @property
    def baumgarte(self) -> float:
        """Share β of a penetration that each step removes [-], in [0, 1]; assignable."""
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
        speed = number_within('restitution_threshold', value, np.inf)
        self._workspace.stabilisation[1] = speed

    # ---------------------------------------------------------------- bilateral constraints

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Active bilateral constraints with their reference poses; assignable between steps.

        Those that hold already stay where they are.
        """
        return self._workspace.table.constraints

    @constraints.setter
    def constraints(self, constraints: Sequence[Constraint]) -> None:
        self._constrain(checked_constraints(constraints), self._data.q.copy())

    @property
    def given_constraints(self) -> tuple[Constraint, ...]:
        """Active constraints as specified by the user, some without a reference pose."""
        return self._declared

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a bilateral constraint that acts from the next step on.

        Raises:
            InvalidInput: no constraint, one that removes no freedom, of a name that is there, or
                whose error is none of a step.
            UnknownName: a frame or joint that does not exist.
        """
        self.constraints = (*self._declared, constraint)

    def remove_constraint(self, constraint: str | Constraint) -> None:
        """Remove a constraint, selected by object or by name.

        Raises:
            UnknownName: none of that name holds.
        """
        name = constraint.name if isinstance(constraint, Constraint) else constraint
        rest = tuple(other for other in self._declared if other.name != name)
        if len(rest) == len(self._declared):
            raise UnknownName('constraint', name, [other.name for other in self._declared])
        self.constraints = rest

    def assembled(self, q: ArrayLike) -> Array:
        """Return the configuration near q (nq,) in which closed loops are closed, read-only.

        Constraints without a place hold where the robot is at q. The simulation stays as it is.

        Raises:
            InvalidInput: there is none near, or q is none.
        """
        start = self.robot.checked_configuration(q)
        if not self._declared:
            return start
        work, table, buffer = self._workspace, self._workspace.table, self._data.buffer.copy()
        try:
            return closed_configuration(work, self._declared, start)
        finally:
            self._put_back(table, buffer)

    def _constrain(self, declared: tuple[Constraint, ...], q: Array) -> None:
        """Let other constraints hold at q (nq,); those that hold already stay where they are."""
        holding = {constraint.name: constraint for constraint in self.constraints}
        kept = [with_place_of(holding.get(own.name), own) for own in declared]
        placed = [with_reference_pose(self.robot, own, q) for own in kept]
        work = self._workspace.under(self.terrain, placed)
        check_integrator(work)
        place_checked(work, placed, q)
        self._continue_in(work, self.terrain)
        self._declared = declared

    def _restore_constraints(self, snapshot: Snapshot) -> None:
        """Let the constraints of a snapshot hold in its state, unless they do.

        Those whose place was left open are declared without it again.
        """
        placed = checked_constraints(snapshot.constraints)
        if placed == self.constraints:
            return
        start = self._workspace.sizes.layout['q'][0]
        buffer = real_array('snapshot: buffer', snapshot.buffer)
        q = self.robot.checked_configuration(buffer[start : start + self.robot.nq])
        before = {constraint.name: constraint for constraint in self._declared}
        self._constrain(placed, q)
        declared = ((new, before.get(new.name, new)) for new in placed)
        self._declared = tuple(
            old if with_place_of(new, old) == new else new for new, old in declared
        )

    def _put_back(self, table: ConstraintTable, buffer: Array) -> None:
        """Let the constraints and the state before a change that failed hold again."""
        self._workspace.table = table
        self._workspace.fill_constraints()
        self._data.buffer[:] = buffer
        self._stepper.update_contacts()
