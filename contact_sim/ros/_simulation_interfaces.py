"""The services and the action of simulation_interfaces, where that package is installed.

Releases from 1.0 to 2.1 are served; fields and constants that some releases lack are looked up by
name. Entities are the robots, which come and go, and their links; the world is the ground.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Vector3
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node

import contact_sim
from contact_sim.errors import ContactSimError, InvalidInput, shown
from contact_sim.robot._several_robots import parts_of
from contact_sim.robot._trees import data_of
from contact_sim.ros._conversions import (
    quaternion_values,
    set_quaternion,
    set_stamp,
    set_vector,
    vector_values,
)
from contact_sim.ros._entity_bounds import EntityBoxes, overlaps_box, overlaps_sphere
from contact_sim.ros._inputs import Services, StateControl, bounded, unit_quaternion
from contact_sim.ros._population import Member, Population, Refused
from contact_sim.ros._publishers import EVERY
from contact_sim.ros._spawning import (
    Request,
    Spawning,
    is_loose,
    spawn_formats,
    spawnables,
    spawnables_in,
)
from contact_sim.ros._world_loading import UNLOADED, World, WorldLoading

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
        Spawnable,
    )

    try:  # since 1.1
        from simulation_interfaces.msg import WorldResource
    except ImportError:
        WorldResource = None
    try:  # since 1.5, but for 2.0
        from simulation_interfaces.msg import SpawnResult
    except ImportError:
        SpawnResult = None

    INSTALLED = True
except ImportError:  # the services of standard types are always there
    INSTALLED = False

FEATURES = (
    'NAMED_POSES', 'ENTITY_CATEGORIES', 'ENTITY_STATE_GETTING', 'ENTITY_STATE_SETTING',
    'ENTITY_INFO_GETTING', 'ENTITY_INFO_SETTING', 'ENTITY_TAGS', 'ENTITY_BOUNDS',
    'ENTITY_BOUNDS_BOX', 'POSE_BOUNDS', 'SIMULATION_RESET',
    'SIMULATION_RESET_TIME', 'SIMULATION_RESET_STATE',
    'SIMULATION_STATE_GETTING', 'SIMULATION_STATE_SETTING', 'SIMULATION_STATE_PAUSE',
    'STEP_SIMULATION_SINGLE', 'STEP_SIMULATION_MULTIPLE', 'STEP_SIMULATION_ACTION',
    'SPAWNING', 'SPAWNING_RESOURCE_STRING', 'DELETING', 'SPAWNABLES', 'SIMULATION_RESET_SPAWNED',
)  # fmt: skip
"""Names of constants, because their numbers differ between releases."""
OF_SERVICES = {
    'SpawnEntities': ('SPAWNING_ENTITIES',),
    'GetCurrentWorld': ('WORLD_INFO_GETTING',),
    'LoadWorld': ('WORLD_LOADING', 'WORLD_RESOURCE_STRING'),
    'UnloadWorld': ('WORLD_UNLOADING',),
    'GetAvailableWorlds': ('AVAILABLE_WORLDS', 'WORLD_TAGS'),
}
"""Those of services that not every release has."""
FAREWELL = 0.2
"""Wall seconds between the answer to STATE_QUITTING and the end."""
SPAWN = 'spawn'
"""Tag of the named poses: where the base starts."""


class SimulationInterfaces:
    """Serves the standard under the node's name; with `services_at_root` without it, too."""

    def __init__(
        self, node: Node, control: StateControl, services: Services, population: Population
    ) -> None:
        self._node, self._sim, self._loop = node, control.sim, control.loop
        self._control, self._services, self._population = control, services, population
        self._stopped = self._loop.paused  # a start without time is STATE_STOPPED
        self._ending: Any = None
        self._group = ReentrantCallbackGroup()  # states are read while steps are taken
        entities = Entities(control)
        population.changed.append(entities.follow_robots)
        self._worlds = WorldServices(WorldLoading(control, population), self._begin_stopped)
        prefixes = ('~/', '') if control.parameters.settings[''].services_at_root else ('~/',)
        services_by_name = {
            'get_simulator_features': (srv.GetSimulatorFeatures, self._on_get_features),
            'get_simulation_state': (srv.GetSimulationState, self._on_get_state),
            'set_simulation_state': (srv.SetSimulationState, self._on_set_state),
            'step_simulation': (srv.StepSimulation, self._on_step),
            'reset_simulation': (srv.ResetSimulation, self._on_reset),
            **entities.services(),
            **SpawnServices(Spawning(node, control, population), entities.links).services(),
            **self._worlds.services(),
        }
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
        of_services = (names for kind, names in OF_SERVICES.items() if hasattr(srv, kind))
        names = (*FEATURES, *itertools.chain.from_iterable(of_services))
        numbers = (getattr(SimulatorFeatures, name, None) for name in names)
        response.features.spawn_formats = spawn_formats()
        response.features.features = [number for number in numbers if number is not None]
        response.features.custom_info = (
            f'contact_sim {contact_sim.__version__}, contact model {self._sim.contact_model}; '
            'documentation: docs/services.md'
        )
        return response

    @property
    def _state(self) -> int:
        if self._worlds.loading.loading:
            return int(SimulationState.STATE_LOADING_WORLD)
        if self._loop.inactive:
            return int(SimulationState.STATE_NO_WORLD)
        if not self._loop.paused:
            return int(SimulationState.STATE_PLAYING)
        at_start = self._stopped and self._sim.step_count == 0
        return int(SimulationState.STATE_STOPPED if at_start else SimulationState.STATE_PAUSED)

    def _on_get_state(self, _: Any, response: Any) -> Any:
        response.state.state = self._state
        return _answer(response)

    async def _on_set_state(self, request: Any, response: Any) -> Any:
        target = request.state.state
        action = {
            SimulationState.STATE_STOPPED: lambda: None,
            SimulationState.STATE_PLAYING: lambda: self._set_paused(False),
            SimulationState.STATE_PAUSED: lambda: self._set_paused(True),
            SimulationState.STATE_QUITTING: self._quit,
        }.get(target)
        idle = self._loop.inactive or (
            'a world is loading' if self._worlds.loading.loading else ''
        )
        if action is None or (idle and target != SimulationState.STATE_QUITTING):
            reason = idle or f'state {target} cannot be asked for: call load_world, unload_world'
            return _answer(response, response.INCORRECT_TRANSITION, reason)
        if target == self._state:
            reason = f'already in state {target}'
            return _answer(response, response.ALREADY_IN_TARGET_STATE, reason)
        if target == SimulationState.STATE_PLAYING and self._loop.tally.failure:
            reason = self._loop.tally.failure
            return _answer(response, response.STATE_TRANSITION_ERROR, reason)
        if target == SimulationState.STATE_STOPPED:
            return await _attempted(response, self._stop())
        return _attempt(response, action)

    def _set_paused(self, paused: bool) -> None:
        self._loop.between_steps(lambda: self._loop.set_paused(paused))
        self._stopped = False

    async def _stop(self) -> None:
        """Pause, and begin anew with the robots of the start."""
        self._set_paused(True)
        await self._population.in_turn(self._population.restore)
        self._control.reset(time_too=True)
        self._stopped = True

    def _begin_stopped(self) -> None:
        """Count as stopped: a world was loaded."""
        self._stopped = True

    def _quit(self) -> None:
        """End once the answer is on its way."""
        self._ending = self._node.create_timer(FAREWELL, self._node.context.try_shutdown)

    async def _on_step(self, request: Any, response: Any) -> Any:
        if self._loop.inactive:
            return _answer(response, Result.RESULT_INCORRECT_STATE, self._loop.inactive)
        if not self._loop.paused:
            return _answer(response, Result.RESULT_OPERATION_FAILED, 'not paused')
        reason = await self._services.take_steps(request.steps)
        code = Result.RESULT_OPERATION_FAILED if reason else Result.RESULT_OK
        return _answer(response, code, reason)

    async def _on_steps(self, goal: Any) -> Any:
        outcome = SimulateSteps.Result()
        if self._loop.inactive:
            goal.abort()
            return _answer(outcome, Result.RESULT_INCORRECT_STATE, self._loop.inactive)
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

    async def _on_reset(self, request: Any, response: Any) -> Any:
        scope = request.scope
        if self._loop.inactive:
            return _answer(response, Result.RESULT_INCORRECT_STATE, self._loop.inactive)
        known = request.SCOPE_TIME | request.SCOPE_STATE | request.SCOPE_SPAWNED
        if scope & ~known and scope != request.SCOPE_ALL:
            reason = f'scope {scope}: only TIME ({request.SCOPE_TIME}), STATE '
            reason += f'({request.SCOPE_STATE}), SPAWNED ({request.SCOPE_SPAWNED}) and ALL'
            return _answer(response, Result.RESULT_FEATURE_UNSUPPORTED, reason)
        return await _attempted(response, self._reset(request, scope or request.SCOPE_ALL))

    async def _reset(self, request: Any, scope: int) -> None:
        population = self._population
        if scope == request.SCOPE_ALL:
            await population.in_turn(population.restore)
        elif scope & request.SCOPE_SPAWNED:
            await population.in_turn(population.remove_spawned)
        if scope & request.SCOPE_STATE:
            self._control.reset(time_too=bool(scope & request.SCOPE_TIME))
        elif scope & request.SCOPE_TIME:
            self._control.reset_time()


class Entities:
    """Robots and their links, `<robot>/<link>`, as entities; links can be read, not set."""

    def __init__(self, control: StateControl) -> None:
        self._sim, self._loop, self._control = control.sim, control.loop, control
        common = control.parameters.settings['']
        self._world = common.world_frame or common.odom_frame
        self._world_frames = ('', common.world_frame, common.odom_frame)
        self._told: dict[str, Any] = {}  # information that was set, by entity
        self.follow_robots()

    def follow_robots(self) -> None:
        """Know the robots that there are now; what was told of others is forgotten."""
        model = self._sim.robot.pinocchio_model
        self._data = data_of(model)
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
        self._told = {name: info for name, info in self._told.items() if name in self._frames}

    def links(self) -> set[str]:
        """Return the names of entities that are links."""
        return self._frames.keys() - self._robots.keys()

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
        if is_loose(robot):
            info.category.category = EntityCategory.CATEGORY_DYNAMIC_OBJECT
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


class SpawnServices:
    """Entities that come and go; `links` returns those that cannot go alone."""

    def __init__(self, spawning: Spawning, links: Callable[[], set[str]]) -> None:
        self._spawning, self._links = spawning, links

    def services(self) -> dict[str, tuple[Any, Any]]:
        """Return name to type and callback of every service that the release has."""
        return _of_release({
            'spawn_entity': ('SpawnEntity', self._on_spawn),
            'spawn_entities': ('SpawnEntities', self._on_spawn_several),
            'delete_entity': ('DeleteEntity', self._on_delete),
            'get_spawnables': ('GetSpawnables', self._on_get_spawnables),
        })  # fmt: skip

    async def _on_spawn(self, request: Any, response: Any) -> Any:
        (outcome,) = await self._spawning.spawn([Request.from_message(request)])
        return _spawned(response, outcome)

    async def _on_spawn_several(self, request: Any, response: Any) -> Any:
        requests = [Request.from_message(one) for one in request.spawn_requests]
        outcomes = await self._spawning.spawn(requests)
        response.results = [_spawned(SpawnResult(), outcome) for outcome in outcomes]
        failed = [str(one) for one in outcomes if isinstance(one, Refused)]
        if failed:
            reason = f'{len(failed)} of {len(outcomes)} failed: {failed[0]}'
            return _answer(response, response.ENTITIES_SPAWN_FAILED, reason)
        return _answer(response)

    async def _on_delete(self, request: Any, response: Any) -> Any:
        entity = request.entity
        if entity in self._links():
            reason = f'{entity!r} is a link: only whole robots can be deleted'
            return _answer(response, Result.RESULT_OPERATION_FAILED, reason)
        return await _attempted(response, self._spawning.delete(entity))

    def _on_get_spawnables(self, request: Any, response: Any) -> Any:
        found, unknown = spawnables_in(request.sources)
        response.spawnables = [
            _with_uri(Spawnable(description=text), 'entity_resource', uri)
            for uri, text in (spawnables() | found).items()
        ]
        return _answer(response, reason=f'no folders: {", ".join(unknown)}' if unknown else '')


class WorldServices:
    """The grounds as worlds; `stopped` is called once one is loaded."""

    def __init__(self, loading: WorldLoading, stopped: Callable[[], None]) -> None:
        self.loading, self._stopped = loading, stopped

    def services(self) -> dict[str, tuple[Any, Any]]:
        """Return name to type and callback of every service that the release has."""
        return _of_release({
            'get_current_world': ('GetCurrentWorld', self._on_get_current),
            'get_available_worlds': ('GetAvailableWorlds', self._on_get_available),
            'load_world': ('LoadWorld', self._on_load),
            'unload_world': ('UnloadWorld', self._on_unload),
        })  # fmt: skip

    def _on_get_current(self, _: Any, response: Any) -> Any:
        world = self.loading.current
        if world is None:
            return _answer(response, response.NO_WORLD_LOADED, UNLOADED)
        response.world = _world(world)
        return _answer(response)

    def _on_get_available(self, request: Any, response: Any) -> Any:
        worlds, unknown = self.loading.available(request.additional_sources)
        if unknown and not request.continue_on_error:
            reason = f'no folders on this machine: {", ".join(unknown)}'
            return _answer(response, Result.RESULT_OPERATION_FAILED, reason)
        response.worlds = [
            _world(world) for world in worlds if _has_tags(world.tags, request.filter)
        ]
        return _answer(response)

    async def _on_load(self, request: Any, response: Any) -> Any:
        resource = getattr(request, 'world_resource', request)  # before 2.0 its fields alone

        async def load() -> None:
            response.world = _world(
                await self.loading.load(resource.uri, resource.resource_string)
            )
            self._stopped()

        return await _attempted(response, load())

    async def _on_unload(self, _: Any, response: Any) -> Any:
        return await _attempted(response, self.loading.unload())


def _of_release(services: dict[str, tuple[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return the services whose types the installed release has."""
    return {
        name: (getattr(srv, kind), callback)
        for name, (kind, callback) in services.items()
        if hasattr(srv, kind)
    }


def _with_uri(message: Any, field: str, uri: str, text: str = '') -> Any:
    """Return a message with a resource, in a field or, before 2.0, with a URI of its own."""
    resource = getattr(message, field, message)
    resource.uri = uri
    if text:
        resource.resource_string = text
    return message


def _world(world: World) -> Any:
    message = WorldResource(name=world.name, description=world.description, tags=[*world.tags])
    return _with_uri(message, 'world_resource', world.uri, world.text)


def _spawned(response: Any, outcome: Member | Refused) -> Any:
    """Return a response about one entity."""
    if isinstance(outcome, Refused):
        return _answer(response, _code(response, outcome.code), str(outcome))
    response.entity_name = outcome.entity
    return _answer(response)


def _code(response: Any, name: str) -> int:
    """Return a constant of the response or of Result, that of a failure where there is none."""
    failed = Result.RESULT_OPERATION_FAILED
    return int(getattr(response, name, getattr(Result, name, failed)))


async def _attempted(response: Any, action: Awaitable[None]) -> Any:
    """Await an action and answer whether it worked."""
    try:
        await action
    except Refused as refusal:
        return _answer(response, _code(response, refusal.code), str(refusal))
    except ContactSimError as error:
        return _answer(response, Result.RESULT_OPERATION_FAILED, str(error))
    return _answer(response)


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
