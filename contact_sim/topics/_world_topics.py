"""Topics of the world, and all topics of a simulation in the order of publishing.

The numbers of the solver, of the support and of the constraints are computed here as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from contact_sim._types import Array
from contact_sim.collision._terrain import Terrain
from contact_sim.constraints._constraint_rows import WORLD
from contact_sim.drawing._step_shapes import ConstrainedPoint, constrains_frame
from contact_sim.parameters import Settings
from contact_sim.robot._constraints import Constraint, JointCoupling
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._shadow import ShadowReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._trajectory import velocity_labels
from contact_sim.solvers._cone_problem import NONFINITE
from contact_sim.step._problem import STATUSES, SolverStatus
from contact_sim.support._measures import MEASURES, SupportMeasures
from contact_sim.terrain._grid import ELEVATION, GroundGrid, ground_grid
from contact_sim.topics._markers import (
    CLEAR,
    ContactMarkers,
    MarkerArrays,
    Shapes,
    SupportMarkers,
    arrows,
    ground_markers,
    marker_array,
)
from contact_sim.topics._messages import (
    NO_WRENCHES,
    Message,
    Output,
    Sink,
    Step,
    diagnostics,
    header,
    labelled,
    transform,
)
from contact_sim.topics._robot_topics import AT_THE_ORIGIN, RobotTopics, base_alias, report_of
from contact_sim.topics._table import (
    CLOCK,
    CONSTRAINT_EFFORT,
    CONSTRAINT_WRENCH,
    GRID_MAP,
    MARKERS,
    NODE,
    SHADOW,
    SOLVER_DIAGNOSTICS,
    SOLVER_STATE,
    TERRAIN,
    TF,
    TF_STATIC,
    nanoseconds,
)

OK, WARN, ERROR = 0, 1, 2
"""Levels of diagnostic_msgs/DiagnosticStatus."""


class SimulationTopics:
    """All topics of a simulation but /diagnostics; all messages of a step have the same stamp.

    Args:
        sim: the simulation.
        settings: frames and sensors.
        constraints: all that are described, in force or not, but those of the robots themselves.
        sink: where the messages go.
        node: name of the node.
        full_name: name of the node with its namespace.
        truth: publish the exact values beside what the sensors measure.
        links: publish transforms of the links, too, as robot_state_publisher does.
        namespaces: of the topics of robots, by the names of robots; left out: these names.

    Attributes:
        ground: terrain that was published last.
    """

    def __init__(
        self,
        sim: Simulator,
        settings: Settings,
        constraints: Sequence[Constraint],
        sink: Sink,
        node: str = NODE,
        full_name: str = NODE,
        truth: bool = True,
        links: bool = False,
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        self._sim, self._sink, self._common = sim, sink, settings['']
        self._full_name, self._with_links = full_name, links
        self._parts, self._frame = parts_of(sim.robot), settings[''].odom_frame
        self._constraints = {constraint.name: constraint for constraint in constraints}
        self._points = {
            name: ConstrainedPoint(sim.robot, constraint)
            for name, constraint in self._constraints.items()
            if constrains_frame(constraint)
        }
        self._solved: tuple[Step | None, dict[str, float]] = None, {}
        self._shadow = ShadowNumbers(sim.robot)
        self._follow_ground()

        has_world = self._common.world_frame not in ('', self._frame)
        aliases = [base_alias(part, settings) for part in self._parts]
        self._static = sink.channel(TF_STATIC) if links or has_world or any(aliases) else None
        moving = [TF] if links or self._common.publish_odom_tf else []
        transforms = Output(sink, moving, self._transforms)
        self._clock = sink.channel(CLOCK)
        self._robots = [
            RobotTopics(
                part,
                sim.last_report,
                settings,
                sink,
                node,
                truth,
                lambda: self._sim.terrain,
                sim.robot,
                (namespaces or {}).get(part.name),
            )
            for part in self._parts
        ]
        of_constraints = [self._constraint(constraint, settings) for constraint in constraints]
        self._marker_arrays = MarkerArrays(self._frame)
        self._markers = Output(sink, [MARKERS], self._marker_array)
        self._outputs = [
            transforms,  # before everything that is drawn in its frames
            *(robot.odometry for robot in self._robots),
            *(output for robot in self._robots for output in robot.sensors),
            *of_constraints,
            self._markers,
            Output(sink, [SOLVER_STATE], self._solver_state),
            Output(sink, [SOLVER_DIAGNOSTICS], self._solver_diagnostics),
            Output(sink, [SHADOW], self._shadow_array),
        ]
        self._terrain, self._grid_map = sink.channel(TERRAIN), sink.channel(GRID_MAP)

    def configure(self, settings: Settings) -> None:
        """Use other sensor errors from the next step on."""
        before = len(self._aliases(0))
        for robot in self._robots:
            robot.configure(settings)
        if len(self._aliases(0)) != before:  # a camera begins to publish
            self.publish_static_transforms(nanoseconds(self._sim.time))

    def go_on_from(self, before: SimulationTopics, sim: Simulator) -> None:
        """Take over the sensors of the robots that stay; from now on `sim` is published."""
        self._sim = sim
        old = {robot.part.name: robot for robot in before._robots}
        for robot in self._robots:
            if robot.part.name in old:
                robot.go_on_from(old[robot.part.name])

    def publish_arrivals(self, step: Step, names: Collection[str], described: bool) -> None:
        """Publish the first messages of robots that have come, their descriptions if wanted."""
        self.publish_static_transforms(step.stamp)
        for robot in self._robots:
            if robot.part.name in names:
                if described:
                    robot.publish_description(self._sink)
                robot.publish_now(step)

    def publish(self, step: Step) -> None:
        """Publish everything that is due after a step but /clock."""
        for robot in self._robots:
            robot.observe(step.report)
        for output in self._outputs:
            output.publish(step)

    def publish_clock(self, time: int) -> None:
        """Publish /clock at simulated time [ns]."""
        if self._clock is not None and self._clock.has_subscriber():
            self._clock.publish({'clock': time})

    def publish_static_transforms(self, time: int) -> None:
        """Publish odom in the world, base_link on the base, and with the links the fixed ones."""
        if self._static is None:
            return
        fixed: list[Message] = []
        if self._common.world_frame not in ('', self._frame):
            fixed.append(transform(time, self._common.world_frame, self._frame, AT_THE_ORIGIN))
        fixed += self._aliases(time)
        if self._with_links:
            for robot in self._robots:
                fixed += robot.fixed_transforms(time)
        self._static.publish({'transforms': fixed})

    def _aliases(self, time: int) -> list[Message]:
        """Return the transforms to other names of frames of the robots."""
        return [one for robot in self._robots for one in robot.alias_transforms(time)]

    def make_descriptions(self) -> None:
        """Make the channels of robot_description of every robot; nothing is published."""
        for robot in self._robots:
            robot.make_description(self._sink)

    def publish_descriptions(self) -> None:
        """Publish robot_description of every robot."""
        for robot in self._robots:
            robot.publish_description(self._sink)

    def publish_ground(self, time: int) -> None:
        """Publish ~/terrain and ~/grid_map at simulated time [ns]."""
        if self._sim.terrain is not self.ground:
            self._follow_ground()
        if self._terrain is not None:
            markers = ground_markers(self.ground)
            self._terrain.publish(marker_array(markers, time, self._frame))
        if self._grid_map is not None:
            friction, restitution = self._sim.friction, self._sim.restitution
            grid = ground_grid(
                self.ground, friction.max(initial=0.0), restitution.max(initial=0.0)
            )
            self._grid_map.publish(grid_map(grid, time, self._frame))

    def clear_markers(self, time: int) -> None:
        """Delete all contact markers at simulated time [ns]."""
        for channel in self._markers.channels:
            channel.publish(marker_array([CLEAR], time, self._frame))

    def rehearse(self, report: StepReport) -> None:
        """Make the messages whose content is computed by kernels, so that these are compiled."""
        self._shapes(report, NO_WRENCHES)
        self._numbers.of(report, 0.0)
        for part in self._parts:
            feet, q = range(len(part.robot.contact_points)), report.q[part.q]
            SupportMeasures(part.robot, self.ground).of(q, feet)

    def _follow_ground(self) -> None:
        self.ground = self._sim.terrain
        self._contact_markers = ContactMarkers()
        self._numbers = SolverNumbers(self._parts, self.ground, self._constraints)
        self._support_markers = [
            SupportMarkers(part.robot, self.ground, part.number) for part in self._parts
        ]

    # ---------------------------------------------------------------- transforms

    def _transforms(self, step: Step) -> list[Message]:
        transforms: list[Message] = []
        if 'odom' in step.due and self._common.publish_odom_tf:
            transforms += [robot.base_transform(step.stamp) for robot in self._robots]
        if 'joint_states' in step.due and self._with_links:
            for robot in self._robots:
                transforms += robot.link_transforms(step.stamp)
        return [{'transforms': transforms}] if transforms else []

    # ---------------------------------------------------------------- constraints

    def _constraint(self, constraint: Constraint, settings: Settings) -> Output:
        """Return the output of the wrench or the efforts of a constraint; zeros if it is off."""
        name, common, held = constraint.name, settings[''], constraint.holds[0]
        frame = str(common.odom_frame if held == WORLD else common.frame_prefix + held)
        pattern = CONSTRAINT_WRENCH if name in self._points else CONSTRAINT_EFFORT
        topic = pattern._replace(name=pattern.name.replace('<name>', name))

        def wrench(step: Step) -> list[Message]:
            # about the origin of the frame at the end of the step, in its axes
            acting = self._points[name].acting(step.report, self._in_force(name))
            rotation, _, where, force, torque = acting
            turned = rotation.T @ force
            torque = rotation.T @ torque + np.cross(where, turned)
            return [{
                'header': header(step.stamp, frame), 'wrench': np.concatenate([turned, torque]),
            }]  # fmt: skip

        def effort(step: Step) -> list[Message]:
            in_force, efforts = self._in_force(name), [0.0] * len(constraint.holds)
            if in_force is not None:
                efforts[0] = float(step.report.constraints[name].force[0])
            if isinstance(in_force, JointCoupling):
                efforts[1] = -in_force.ratio * efforts[0]  # h = q - ratio * q_leader - offset
            return [{
                'header': header(step.stamp), 'name': constraint.holds, 'effort': efforts,
            }]  # fmt: skip

        return Output(self._sink, [topic], wrench if name in self._points else effort)

    def _in_force(self, name: str) -> Constraint | None:
        return next((one for one in self._sim.constraints if one.name == name), None)

    # ---------------------------------------------------------------- markers

    def _marker_array(self, step: Step) -> list[bytes]:
        shapes = self._shapes(step.report, step.wrenches)
        return [self._marker_arrays.serialised(shapes, step.stamp)]

    def _shapes(self, report: StepReport, wrenches: Mapping[str, Array]) -> list[Shapes]:
        origins = {
            frame: np.array(self._sim.frame_placement(frame).translation) for frame in wrenches
        }
        shapes = self._contact_markers.of(report, wrenches, origins)
        for part, support in zip(self._parts, self._support_markers, strict=True):
            shapes += support.of(report_of(report, part))
        for k, (name, point) in enumerate(self._points.items()):
            arrow = point.arrow(report, self._in_force(name))
            shapes.append(arrows('constraint_force', arrow, k))
        return shapes

    # ---------------------------------------------------------------- solver and shadow

    def _solver_numbers(self, step: Step) -> dict[str, float]:
        """Return the numbers of a step, computed once for both topics."""
        if self._solved[0] is not step:
            self._solved = step, self._numbers.of(step.report, step.real_time_factor)
        return self._solved[1]

    def _solver_state(self, step: Step) -> list[Message]:
        numbers = self._solver_numbers(step)
        return [labelled(numbers, list(numbers.values()))]

    def _solver_diagnostics(self, step: Step) -> list[Message]:
        """Return the numbers by name, for plot tools that know no labels of arrays.

        The level is OK: whether anything is wrong stands on /diagnostics.
        """
        status = {'level': OK, 'name': 'solver', 'hardware_id': self._full_name}
        return [diagnostics(step.stamp, status, self._solver_numbers(step))]

    def _shadow_array(self, step: Step) -> list[Message]:
        return [self._shadow.of(step.report)] if self._sim.shadow else []


# --- ~/solver_state: convergence, residuals, support of the feet, constraint errors.

WARNED = SolverStatus.UNSTABLE, SolverStatus.IMMOVABLE, SolverStatus.INCONSISTENT
"""Statuses that are warned about, besides those with unphysical forces."""
MISSED = 1e-6
"""Drift rate [m/s, rad/s] above which one of contradictory constraints is reported as not met."""


class SolverNumbers:
    """Computes the number of every label of ~/solver_state.

    First time [s], status (index into the solver statuses), converged, iterations, the residual
    of the solver's own criterion, contacts, the real-time factor and the stiffness ratio (above 2
    explicit springs explode), whether the forces are physical, then the residuals of
    step/_problem.py and the support of the feet, `SupportMeasures`, with the name of each of
    several robots before it: `a/support_rank`. At the end the errors of the `constraints`:
    `constraints.stand.drift`, |h|, and `constraints.stand.drift_rate`, |ḣ|.

    Args:
        parts: the robots.
        terrain: the ground under them.
        constraints: names of all that are described, in force or not.
    """

    def __init__(
        self, parts: Iterable[RobotPart], terrain: Terrain, constraints: Iterable[str]
    ) -> None:
        self._constraints = tuple(constraints)
        self._supports = [(part, SupportMeasures(part.robot, terrain)) for part in parts]
        self._labels = [
            [part.qualified_name(f'support_{name}') for name in MEASURES] for part in parts
        ]

    def of(self, report: StepReport, real_time_factor: float) -> dict[str, float]:
        """Return the numbers of a step by their labels."""
        solver = report.solver
        values = {
            'time': report.time,
            'status': float(STATUSES.index(solver.status)),
            'converged': float(solver.converged),
            'iterations': float(solver.iterations),
            'solver_residual': solver.residual,
            'contacts': float(np.count_nonzero(report.contacts.mode) + _on_ground(report)),
            'real_time_factor': real_time_factor,
            'stiffness_ratio': report.stiffness_ratio,
            'physical': float(solver.physical),
            **report.residuals.as_dict(),
        }
        for (part, support), labels in zip(self._supports, self._labels, strict=True):
            view = report_of(report, part)
            touching = np.flatnonzero(view.contacts.mode) // support.terrain.features
            points = len(part.robot.contact_points)  # not the rest of the body
            standing = sorted({foot for foot in touching.tolist() if foot < points})
            values |= zip(labels, support.of(view.q, standing), strict=True)
        for name in self._constraints:
            state = report.constraints.get(name)  # None for those that are not in force
            values[f'constraints.{name}.drift'] = state.drift if state else 0.0
            values[f'constraints.{name}.drift_rate'] = state.drift_rate if state else 0.0
        return {label: float(value) for label, value in values.items()}


def _on_ground(report: StepReport) -> int:
    """Return the number of contacts of bodies with the ground that carry load."""
    return int(np.count_nonzero(report.pairs.on_ground & (report.pairs.normal_force > 0.0)))


def status_counts(statuses: Sequence[int]) -> dict[str, int]:
    """Return how many steps ended with each status, by the keys of /diagnostics."""
    return {
        f'solver_{outcome.name.lower()}': count
        for outcome, count in zip(STATUSES, statuses, strict=True)
    }


def troubles(before: Sequence[int], now: Sequence[int], last: StepReport) -> list[str]:
    """Return the warnings about the steps between two counts of statuses.

    Args:
        before: number of steps with each status before them, by its code.
        now: the same after them.
        last: report of the last step, for the constraints that are not met.
    """
    new = [status for code, status in enumerate(STATUSES) if now[code] > before[code]]
    warnings = [status.value for status in new if status in WARNED or not status.physical]
    if SolverStatus.INCONSISTENT in new:
        missed = [name for name, state in last.constraints.items() if state.drift_rate > MISSED]
        warnings += [f'constraints not met: {", ".join(missed)}'] if missed else []
    return warnings


# --- ~/shadow.


class ShadowNumbers:
    """Makes ~/shadow: what other contact models compute for the same step, as labelled numbers.

    First `time` [s], then for each model of contact.shadow: `<model>.status` (index into the
    solver statuses), `<model>.converged`, `<model>.iterations`, and how it differs from the model
    in force: `<model>.force.<foot>.x` and so on [N, world], `<model>.velocity.<label>` for the
    velocity after the step [m/s, rad/s], labels v_x to w_z for the base and the joints by name. Of
    several robots each foot, base and joint has its robot before its name: `a/v_x`.
    If a model has no finite answer its status says so and its differences are 0.
    """

    def __init__(self, robot: RobotModel) -> None:
        self._forces = [f'force.{foot.name}.{axis}' for foot in robot.feet for axis in 'xyz']
        self._velocities = [
            f'velocity.{part.qualified_name(name)}'
            for part in parts_of(robot)
            for name in velocity_labels(part.robot)
        ]

    def of(self, report: StepReport) -> Message:
        """Return the message; solves the step under every model of contact.shadow."""
        shadows = report.shadows
        names = ('status', 'converged', 'iterations', *self._forces, *self._velocities)
        labels = ['time', *(f'{model}.{name}' for model in shadows for name in names)]
        numbers = [[report.time], *(self._numbers(shadow) for shadow in shadows.values())]
        return labelled(labels, np.concatenate(numbers))

    def _numbers(self, shadow: ShadowReport) -> list[float]:
        if not shadow.finite:
            zeros = [0.0] * (len(self._forces) + len(self._velocities))
            return [float(NONFINITE), 0.0, 0.0, *zeros]
        solver = shadow.step.solver
        force = shadow.step.feet.force - shadow.taken.feet.force
        return [
            float(STATUSES.index(solver.status)), float(solver.converged),
            float(solver.iterations), *force.ravel(), *shadow.velocity_difference,
        ]  # fmt: skip


# --- ~/grid_map.


def grid_map(grid: GroundGrid, time: int, frame: str) -> Message:
    """Return a grid_map_msgs/GridMap at simulated time [ns]; its numbers run column by column."""
    x, y = grid.centre
    pose = x, y, 0.0, 0.0, 0.0, 0.0, 1.0
    return {
        'header': header(time, frame),
        'info': [grid.resolution, *grid.length, *pose],
        'layers': list(grid.layers),
        'basic_layers': [ELEVATION],
        'data': [
            {
                'layout': {'dim': [
                    {'label': 'column_index', 'size': layer.shape[1], 'stride': layer.size},
                    {'label': 'row_index', 'size': layer.shape[0], 'stride': layer.shape[0]},
                ]},
                'data': layer.astype(np.float32).ravel(order='F'),
            }
            for layer in grid.layers.values()
        ],
    }  # fmt: skip
