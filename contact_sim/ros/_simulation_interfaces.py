"""The services and the action of simulation_interfaces, where that package is installed.

Releases from 1.0 to 2.1 are served; fields and constants that some releases lack are looked up by
name. Served is what makes sense for robots that are never spawned: time, state, the ground, and
the robots and their links as entities.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Vector3
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node

import contact_sim
from contact_sim.errors import ContactSimError, InvalidInput, shortened, shown
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._conversions import (
    quaternion_values,
    set_quaternion,
    set_stamp,
    set_vector,
    vector_values,
)
from contact_sim.ros._entity_bounds import EntityBoxes, overlaps_box, overlaps_sphere
from contact_sim.ros._inputs import Services, StateControl, bounded, unit_quaternion
from contact_sim.ros._publishers import EVERY

try:
    from rclpy.action import ActionServer, CancelResponse
    from simulation_interfaces import srv
    from simulation_interfaces.action import SimulateSteps
    from simulation_interfaces.msg import (
        Bounds,
        EntityCategory,
        EntityInfo,
        EntityState,
        NamedPose,
        Result,
        SimulationState,
        SimulatorFeatures,
    )

    INSTALLED = True
except ImportError:  # the services of standard types are always there
    INSTALLED = False

FEATURES = (
    'NAMED_POSES', 'ENTITY_CATEGORIES', 'ENTITY_STATE_GETTING', 'ENTITY_STATE_SETTING',
    'ENTITY_INFO_GETTING', 'ENTITY_INFO_SETTING', 'ENTITY_TAGS', 'ENTITY_BOUNDS',
    'ENTITY_BOUNDS_BOX', 'POSE_BOUNDS', 'WORLD_INFO_GETTING', 'SIMULATION_RESET',
    'SIMULATION_RESET_TIME', 'SIMULATION_RESET_STATE',
    'SIMULATION_STATE_GETTING', 'SIMULATION_STATE_SETTING', 'SIMULATION_STATE_PAUSE',
    'STEP_SIMULATION_SINGLE', 'STEP_SIMULATION_MULTIPLE', 'STEP_SIMULATION_ACTION',
)  # fmt: skip
"""Names of constants, because their numbers differ between releases."""
FAREWELL = 0.2
"""Wall seconds between the answer to STATE_QUITTING and the end."""
SPAWN = 'spawn'
"""Tag of the named poses: where the base starts."""


class SimulationInterfaces:
    """Serves the standard under the node's name; with `services_at_root` without it, too."""

    def __init__(self, node: Node, control: StateControl, services: Services) -> None:
        self._node, self._sim, self._loop = node, control.sim, control.loop
        self._control, self._services = control, services
        self._stopped = self._loop.paused  # a start without time is STATE_STOPPED
        self._ending: Any = None
        self._group = ReentrantCallbackGroup()  # states are read while steps are taken
        entities = Entities(control)
        prefixes = ('~/', '') if control.parameters.settings[''].services_at_root else ('~/',)
        services_by_name = {
            'get_simulator_features': (srv.GetSimulatorFeatures, self._on_get_features),
            'get_simulation_state': (srv.GetSimulationState, self._on_get_state),
            'set_simulation_state': (srv.SetSimulationState, self._on_set_state),
            'step_simulation': (srv.StepSimulation, self._on_step),
            'reset_simulation': (srv.ResetSimulation, self._on_reset),
            **entities.services(),
        }
        if hasattr(srv, 'GetCurrentWorld'):  # since 1.1
            services_by_name['get_current_world'] = srv.GetCurrentWorld, self._on_get_world
        for prefix in prefixes:
            for name, (kind, callback) in services_by_name.items():
                node.create_service(kind, prefix + name, callback, callback_group=self._group)
        self._actions = [
            ActionServer(
                node, SimulateSteps, prefix + 'simulate_steps', self._on_steps,
                cancel_callback=lambda _: CancelResponse.ACCEPT, callback_group=self._group,
                feedback_pub_qos_profile=EVERY,
            )
            for prefix in prefixes
        ]  # fmt: skip

    def _on_get_features(self, _: Any, response: Any) -> Any:
        numbers = (getattr(SimulatorFeatures, name, None) for name in FEATURES)
        response.features.features = [number for number in numbers if number is not None]
        response.features.custom_info = (
            f'contact_sim {contact_sim.__version__}, contact model {self._sim.contact_model}; '
            'documentation: docs/services.md'
        )
        return response

    def _on_get_world(self, _: Any, response: Any) -> Any:
        """Return the ground under the robots, which is all of the world that is loaded."""
        settings = self._control.parameters.settings['terrain']
        response.world.name = settings.type
        response.world.description = shortened(repr(self._sim.terrain))
        if settings.file:
            response.world.world_resource.uri = Path(settings.file).absolute().as_uri()
        return _answer(response)

    @property
    def _state(self) -> int:
        if not self._loop.paused:
            return int(SimulationState.STATE_PLAYING)
        at_start = self._stopped and self._sim.step_count == 0
        return int(SimulationState.STATE_STOPPED if at_start else SimulationState.STATE_PAUSED)

    def _on_get_state(self, _: Any, response: Any) -> Any:
        response.state.state = self._state
        return _answer(response)

    def _on_set_state(self, request: Any, response: Any) -> Any:
        target = request.state.state
        action = {
            SimulationState.STATE_STOPPED: self._stop,
            SimulationState.STATE_PLAYING: lambda: self._set_paused(False),
            SimulationState.STATE_PAUSED: lambda: self._set_paused(True),
            SimulationState.STATE_QUITTING: self._quit,
        }.get(target)
        if action is None:
            reason = f'state {target} cannot be asked for: there is one world, always loaded'
            return _answer(response, response.INCORRECT_TRANSITION, reason)
        if target == self._state:
            reason = f'already in state {target}'
            return _answer(response, response.ALREADY_IN_TARGET_STATE, reason)
        if target == SimulationState.STATE_PLAYING and self._loop.tally.failure:
            reason = self._loop.tally.failure
            return _answer(response, response.STATE_TRANSITION_ERROR, reason)
        return _attempt(response, action)

    def _set_paused(self, paused: bool) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(paused))
        self._stopped = False

    def _stop(self) -> None:
        self._set_paused(True)
        self._control.reset(time_too=True)
        self._stopped = True

    def _quit(self) -> None:
        """End once the answer is on its way."""
        self._ending = self._node.create_timer(FAREWELL, self._node.context.try_shutdown)

    async def _on_step(self, request: Any, response: Any) -> Any:
        if not self._loop.paused:
            return _answer(response, Result.RESULT_OPERATION_FAILED, 'not paused')
        reason = await self._services.take_steps(request.steps)
        code = Result.RESULT_OPERATION_FAILED if reason else Result.RESULT_OK
        return _answer(response, code, reason)

    async def _on_steps(self, goal: Any) -> Any:
        outcome = SimulateSteps.Result()
        if not self._loop.paused:
            goal.abort()
            return _answer(outcome, Result.RESULT_OPERATION_FAILED, 'not paused')
        total = goal.request.steps
        feedback = SimulateSteps.Feedback()

        def after_step(left: int) -> bool:
            feedback.completed_steps, feedback.remaining_steps = total - left, left
            goal.publish_feedback(feedback)
            return not goal.is_cancel_requested

        reason = await self._services.take_steps(total, after_step)
        if not reason:
            goal.succeed()
            return _answer(outcome)
        if goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return _answer(outcome, Result.RESULT_OPERATION_FAILED, reason)

    def _on_reset(self, request: Any, response: Any) -> Any:
        scope = request.scope
        if scope in (request.SCOPE_DEFAULT, request.SCOPE_ALL):
            return _attempt(response, lambda: self._control.reset(time_too=True))
        known = request.SCOPE_TIME | request.SCOPE_STATE
        if scope & ~known:
            reason = f'scope {scope}: only TIME ({request.SCOPE_TIME}), STATE '
            reason += f'({request.SCOPE_STATE}) and ALL; nothing is ever spawned'
            return _answer(response, Result.RESULT_FEATURE_UNSUPPORTED, reason)
        if scope & request.SCOPE_STATE:
            both = bool(scope & request.SCOPE_TIME)
            return _attempt(response, lambda: self._control.reset(time_too=both))
        return _attempt(response, self._control.reset_time)


class Entities:
    """Robots and their links, `<robot>/<link>`, as entities; links can be read, not set."""

    def __init__(self, control: StateControl) -> None:
        self._sim, self._loop, self._control = control.sim, control.loop, control
        common = control.parameters.settings['']
        self._world = common.world_frame or common.odom_frame
        self._world_frames = ('', common.world_frame, common.odom_frame)
        model = self._sim.robot.pinocchio_model
        self._data = model.createData()
        self._robots = {part.name or part.robot.name: part for part in parts_of(self._sim.robot)}
        bodies = {f.name: k for k, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
        bodies.pop('universe', None)
        self._frames: dict[str, int] = {}  # of Pinocchio, by entity
        self._robot_of: dict[str, str] = {}
        for robot, part in self._robots.items():
            base = bodies.get(part.qualified_name(part.robot.base_frame))
            own = {robot: 0 if base is None else base}
            own |= {
                f'{robot}/{name}': bodies[part.qualified_name(name)] for name in part.own(bodies)
            }
            self._frames |= own
            self._robot_of |= dict.fromkeys(own, robot)
        names = {entity: model.frames[frame].name for entity, frame in self._frames.items()}
        links = {
            entity: {name} if entity not in self._robots
            else {names[own] for own in self._frames if self._robot_of[own] == entity}
            for entity, name in names.items()
        }  # fmt: skip
        self._boxes = EntityBoxes(self._sim.robot, links)
        self._told: dict[str, Any] = {}  # information that was set, by entity

    def services(self) -> dict[str, tuple[Any, Any]]:
        """Return name to type and callback of every service."""
        return {
            'get_entities': (srv.GetEntities, self._on_get_entities),
            'get_entities_states': (srv.GetEntitiesStates, self._on_get_states),
            'get_entity_state': (srv.GetEntityState, self._on_get_state),
            'set_entity_state': (srv.SetEntityState, self._on_set_state),
            'get_entity_info': (srv.GetEntityInfo, self._on_get_info),
            'set_entity_info': (srv.SetEntityInfo, self._on_set_info),
            'get_entity_bounds': (srv.GetEntityBounds, self._on_get_bounds),
            'get_named_poses': (srv.GetNamedPoses, self._on_get_named_poses),
            'get_named_pose_bounds': (srv.GetNamedPoseBounds, self._on_get_pose_bounds),
        }

    def _on_get_entities(self, request: Any, response: Any) -> Any:
        filters = request.filters
        response.entities = []
        if filters.bounds.type == Bounds.TYPE_CONVEX_HULL:
            reason = 'bounds: only boxes and spheres'
            return _answer(response, Result.RESULT_FEATURE_UNSUPPORTED, reason)
        try:
            pattern = re.compile(filters.filter)
            inside = self._inside(filters.bounds)
        except (re.error, InvalidInput) as error:
            reason = f'filter {filters.filter!r} is no regular expression: {error}'
            if isinstance(error, InvalidInput):
                reason = str(error)
            return _answer(response, Result.RESULT_OPERATION_FAILED, reason)
        categories = {category.category for category in filters.categories}
        for name in self._frames:
            info = self._info(name)
            if (
                pattern.search(name)
                and (not categories or info.category.category in categories)
                and _has_tags(info.tags, filters.tags)
                and inside(name)
            ):
                response.entities.append(name)
        return _answer(response)

    def _inside(self, bounds: Any) -> Callable[[str], bool]:
        """Return whether the box about an entity, in the axes of the world, is within bounds."""
        if bounds.type == Bounds.TYPE_EMPTY:
            return lambda _: True
        points = np.array([vector_values(point) for point in bounds.points]).reshape(-1, 3)
        ball = bounds.type == Bounds.TYPE_SPHERE
        if (
            bounds.type not in (Bounds.TYPE_BOX, Bounds.TYPE_SPHERE)
            or len(points) != 2
            or not np.isfinite(points[:, 0] if ball else points).all()
            or not np.isfinite(points[0]).all()
            or (ball and points[1, 0] < 0.0)
        ):
            kind, values = bounds.type, shown(points.tolist())
            raise InvalidInput(f'bounds of type {kind} with points {values}: expected two finite')
        self._place_all()
        corners = points.min(axis=0), points.max(axis=0)

        def inside(name: str) -> bool:
            box = self._boxes.box(name, self._data)
            if box is None:
                place = np.array(self._data.oMf[self._frames[name]].translation)
                box = place, place
            if ball:
                return overlaps_sphere(box, points[0], points[1, 0])
            return overlaps_box(box, corners)

        return inside

    def _on_get_bounds(self, request: Any, response: Any) -> Any:
        """Return the box about an entity, in the axes of its link."""
        if request.entity not in self._frames:
            return self._not_found(response, request.entity)
        self._place_all()
        return self._bounds(request.entity, response)

    def _bounds(self, entity: str, response: Any) -> Any:
        axes = self._data.oMf[self._frames[entity]]
        box = self._boxes.box(entity, self._data, axes)
        if box is None:
            reason = f'{entity!r} has nothing that could be touched'
            return _answer(response, Result.RESULT_OPERATION_FAILED, reason)
        response.bounds.type = Bounds.TYPE_BOX
        for corner in reversed(box):  # the upper one first
            point = Vector3()
            set_vector(point, corner)
            response.bounds.points.append(point)
        return _answer(response)

    def _on_get_pose_bounds(self, request: Any, response: Any) -> Any:
        """Return the box about a robot in a reference pose, in the axes of its base."""
        for name, part in self._robots.items():
            for reference in part.robot.reference_configurations:
                if part.qualified_name(reference) == request.name:
                    q = self._sim.standing_configuration(reference)
                    model = self._sim.robot.pinocchio_model
                    pin.framesForwardKinematics(model, self._data, q)
                    return self._bounds(name, response)
        return self._not_found(response, request.name, 'named pose')

    def _on_get_states(self, request: Any, response: Any) -> Any:
        self._on_get_entities(request, response)
        response.states = self._states(response.entities)
        return response

    def _on_get_info(self, request: Any, response: Any) -> Any:
        if request.entity not in self._frames:
            return self._not_found(response, request.entity)
        response.info = self._info(request.entity)
        return _answer(response)

    def _on_set_info(self, request: Any, response: Any) -> Any:
        if request.entity not in self._frames:
            return self._not_found(response, request.entity)
        self._told[request.entity] = request.info
        return _answer(response)

    def _info(self, entity: str) -> Any:
        """Return what was set, or category and description."""
        if entity in self._told:
            return self._told[entity]
        info, name = EntityInfo(), self._robot_of[entity]
        info.category.category = EntityCategory.CATEGORY_ROBOT
        robot = self._robots[name].robot
        info.description = (
            f'{robot.total_mass:.3f} kg, {robot.n_joints} joints, {len(robot.contact_points)} feet'
            if entity == name
            else f'link of {name}, can be read only'
        )
        return info

    def _not_found(self, response: Any, name: str, kind: str = 'entity') -> Any:
        known: Iterable[str] = self._frames
        if kind != 'entity':
            known = [
                part.qualified_name(reference)
                for part in self._robots.values()
                for reference in part.robot.reference_configurations
            ]
        reason = f'no {kind} {shown(name)}; there are {", ".join(known)}'
        return _answer(response, Result.RESULT_NOT_FOUND, reason)

    def _on_get_state(self, request: Any, response: Any) -> Any:
        if request.entity not in self._frames:
            return self._not_found(response, request.entity)
        (response.state,) = self._states([request.entity])
        return _answer(response)

    def _states(self, names: list[str]) -> list[Any]:
        """Return poses, twists and accelerations of entities in the world."""
        time = self._place_all()
        return [self._state(self._frames[name], time) for name in names]

    def _place_all(self) -> float:
        """Compute the kinematics of the present state; return its time [s]."""
        now: list[Any] = []
        sim = self._sim

        def read() -> None:
            now.extend((sim.time, sim.q, sim.v, np.array(sim.last_report.acceleration)))

        self._loop.between_steps(read)
        time, q, v, acceleration = now
        model, data = sim.robot.pinocchio_model, self._data
        pin.forwardKinematics(model, data, q, v, acceleration)
        pin.updateFramePlacements(model, data)
        return float(time)

    def _state(self, frame: int, time: float) -> Any:
        model, data = self._sim.robot.pinocchio_model, self._data
        axes = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        placement = data.oMf[frame]
        twist = pin.getFrameVelocity(model, data, frame, axes)
        acceleration = pin.getFrameClassicalAcceleration(model, data, frame, axes)
        state = EntityState()
        state.header.frame_id = self._world
        set_stamp(state.header.stamp, time)
        set_vector(state.pose.position, placement.translation)
        set_quaternion(state.pose.orientation, pin.Quaternion(placement.rotation).coeffs())
        set_vector(state.twist.linear, twist.linear)
        set_vector(state.twist.angular, twist.angular)
        set_vector(state.acceleration.linear, acceleration.linear)
        set_vector(state.acceleration.angular, acceleration.angular)
        return state

    def _on_set_state(self, request: Any, response: Any) -> Any:
        """Set pose or twist of a robot; accelerations are ignored."""
        entity, failed = request.entity, Result.RESULT_OPERATION_FAILED
        state, frame = request.state, request.state.header.frame_id
        if entity not in self._frames:
            return self._not_found(response, entity)
        if entity not in self._robots:
            return _answer(response, failed, f'link {entity!r} can be read only')
        if frame not in self._world_frames:
            reason = f'frame {frame!r}: expected one of {self._world_frames}'
            return _answer(response, failed, reason)
        # before 2.1 there were no flags, and everything was set
        with_pose = getattr(request, 'set_pose', True)
        with_twist = getattr(request, 'set_twist', True)
        pose, motion = state.pose, state.twist
        position = np.array(vector_values(pose.position))
        quaternion = np.array(quaternion_values(pose.orientation))
        twist = np.array([*vector_values(motion.linear), *vector_values(motion.angular)])
        try:
            if with_pose:
                quaternion = unit_quaternion(quaternion)
                bounded('position', position)
        except ContactSimError as error:
            code = getattr(response, 'INVALID_POSE', failed)  # which 1.5.0 and 1.6.0 lack
            return _answer(response, code, str(error))

        def place() -> None:
            if with_pose or with_twist:
                self._control.place(
                    self._robots[entity],
                    position if with_pose else None, quaternion if with_pose else None,
                    twist if with_twist else None, twist_in_world=True,
                )  # fmt: skip

        return _attempt(response, place)

    def _on_get_named_poses(self, request: Any, response: Any) -> Any:
        """Return the bases in every reference pose of their robots, standing on the ground."""
        if _has_tags([SPAWN], request.tags):
            response.poses = [
                self._named_pose(robot, reference)
                for robot, part in self._robots.items()
                for reference in part.robot.reference_configurations
            ]
        return _answer(response)

    def _named_pose(self, name: str, reference: str) -> Any:
        part = self._robots[name]
        pose = NamedPose(name=part.qualified_name(reference), tags=[SPAWN])
        pose.description = f'{name}, {reference}: ~/reset with reference_pose:={reference}'
        pose.pose.orientation.w = 1.0
        if part.robot.floating_base:
            q = self._sim.standing_configuration(reference)[part.q]
            set_vector(pose.pose.position, q[:3])
            set_quaternion(pose.pose.orientation, q[3:7])
        return pose


def _has_tags(tags: Iterable[str], wanted: Any) -> bool:
    """Return whether tags pass a TagsFilter; an empty one lets all pass."""
    found = [tag in set(tags) for tag in wanted.tags]
    return not found or (all if wanted.filter_mode == wanted.FILTER_MODE_ALL else any)(found)


def _answer(response: Any, code: int | None = None, reason: str = '') -> Any:
    """Return a response with its result, OK by default."""
    response.result.result = Result.RESULT_OK if code is None else code
    response.result.error_message = reason
    return response


def _attempt(response: Any, action: Callable[[], None]) -> Any:
    """Run an action and answer whether it worked."""
    try:
        action()
    except ContactSimError as error:
        return _answer(response, Result.RESULT_OPERATION_FAILED, str(error))
    return _answer(response)
