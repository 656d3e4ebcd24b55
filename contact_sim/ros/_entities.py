"""Robots and their links as entities of simulation_interfaces; needs that package.

A robot is called by its name, its links `<robot>/<link>`. Links can be read, not set.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pinocchio as pin
from rclpy.node import Node

from contact_sim.errors import ContactSimError
from contact_sim.robot._several_robots import parts_of
from contact_sim.ros._conversions import set_quaternion, set_stamp, set_vector, vector_values
from contact_sim.ros._loop import Loop
from contact_sim.ros._parameter_server import ParameterServer
from contact_sim.ros._services import StateControl, bounded, unit_quaternion
from contact_sim.simulation._simulator import Simulator

try:
    from simulation_interfaces.msg import Bounds, EntityCategory, EntityState, NamedPose, Result
    from simulation_interfaces.srv import (
        GetEntities,
        GetEntitiesStates,
        GetEntityInfo,
        GetEntityState,
        GetNamedPoses,
        SetEntityState,
    )
except ImportError as error:
    raise ImportError('simulation_interfaces is not installed') from error

SPAWN = 'spawn'
"""Tag of the named poses: where the base starts."""


class Entities:
    """Callbacks of the services about entities."""

    def __init__(
        self,
        node: Node,
        sim: Simulator,
        loop: Loop,
        control: StateControl,
        parameters: ParameterServer,
    ) -> None:
        self._log, self._sim, self._loop, self._control = node.get_logger(), sim, loop, control
        common = parameters.settings['']
        self._world = common.world_frame or common.odom_frame
        self._world_frames = ('', common.world_frame, common.odom_frame)
        model = sim.robot.pinocchio_model
        self._data = model.createData()
        self._robots = {part.name or part.robot.name: part for part in parts_of(sim.robot)}
        bodies = {f.name: k for k, f in enumerate(model.frames) if f.type == pin.FrameType.BODY}
        bodies.pop('universe', None)
        self._frames: dict[str, int] = {}
        self._robot_of: dict[str, str] = {}
        for robot, part in self._robots.items():
            base = bodies.get(part.called(part.robot.base_frame))
            own = {robot: 0 if base is None else base}
            own |= {f'{robot}/{name}': bodies[part.called(name)] for name in part.own(bodies)}
            self._frames |= own
            self._robot_of |= dict.fromkeys(own, robot)

    def served(self) -> dict[str, tuple[Any, Any]]:
        """Return name to type and callback of every service."""
        return {
            'get_entities': (GetEntities, self._on_get_entities),
            'get_entities_states': (GetEntitiesStates, self._on_get_states),
            'get_entity_state': (GetEntityState, self._on_get_state),
            'set_entity_state': (SetEntityState, self._on_set_state),
            'get_entity_info': (GetEntityInfo, self._on_get_info),
            'get_named_poses': (GetNamedPoses, self._on_get_named_poses),
        }

    # ---------------------------------------------------------------- which there are

    def _on_get_entities(self, request: Any, response: Any) -> Any:
        response.result, response.entities = self._matching(request.filters)
        return response

    def _on_get_states(self, request: Any, response: Any) -> Any:
        response.result, response.entities = self._matching(request.filters)
        response.states = self._states(response.entities)
        return response

    def _matching(self, filters: Any) -> tuple[Any, list[str]]:
        """Return the names of the entities that pass all filters."""
        if filters.bounds.type != Bounds.TYPE_EMPTY:
            return _result(Result.RESULT_FEATURE_UNSUPPORTED, 'no filter of bounds'), []
        try:
            pattern = re.compile(filters.filter)
        except re.error as error:
            reason = f'filter {filters.filter!r} is no regular expression: {error}'
            return _result(Result.RESULT_OPERATION_FAILED, reason), []
        robots = EntityCategory.CATEGORY_ROBOT
        categories = [category.category for category in filters.categories] or [robots]
        if filters.tags.tags or robots not in categories:  # no entity has tags
            return _result(), []
        return _result(), [name for name in self._frames if pattern.search(name)]

    def _on_get_info(self, request: Any, response: Any) -> Any:
        if request.entity not in self._frames:
            response.result = self._not_found(request.entity)
            return response
        response.result = _result()
        response.info.category.category = EntityCategory.CATEGORY_ROBOT
        name = self._robot_of[request.entity]
        robot = self._robots[name].robot
        response.info.description = (
            f'{robot.total_mass:.3f} kg, {robot.n_joints} joints, {len(robot.contact_points)} feet'
            if request.entity == name
            else f'link of {name}, can be read only'
        )
        return response

    # ---------------------------------------------------------------- their states

    def _on_get_state(self, request: Any, response: Any) -> Any:
        if request.entity not in self._frames:
            response.result = self._not_found(request.entity)
            return response
        (response.state,) = self._states([request.entity])
        response.result = _result()
        return response

    def _states(self, names: list[str]) -> list[Any]:
        """Return where entities are and how they move, seen from the world."""
        now: list[Any] = []
        sim = self._sim

        def look() -> None:
            now.extend((sim.time, sim.q, sim.v, np.array(sim.last_report.acceleration)))

        self._loop.between_steps(look)
        time, q, v, acceleration = now
        model, data = sim.robot.pinocchio_model, self._data
        pin.forwardKinematics(model, data, q, v, acceleration)
        pin.updateFramePlacements(model, data)
        return [self._state(self._frames[name], time) for name in names]

    def _state(self, frame: int, time: float) -> Any:
        model, data, axes = (
            self._sim.robot.pinocchio_model,
            self._data,
            pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
        )
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
        """Put a robot elsewhere or give it another velocity; accelerations are ignored."""
        if request.entity not in self._frames:
            response.result = self._not_found(request.entity)
            return response
        failed = Result.RESULT_OPERATION_FAILED
        state, frame = request.state, request.state.header.frame_id
        if request.entity not in self._robots:
            response.result = _result(failed, f'link {request.entity!r} can be read only')
            return response
        if frame not in self._world_frames:
            reason = f'frame {frame!r}: expected one of {self._world_frames}'
            response.result = _result(failed, reason)
            return response
        # before 2.1 there were no flags, and everything was set
        with_pose = getattr(request, 'set_pose', True)
        with_twist = getattr(request, 'set_twist', True)
        position, quaternion, twist = _values(state)
        try:
            unit = unit_quaternion(quaternion) if with_pose else None
            if with_pose:
                bounded('position', position)
        except ContactSimError as error:
            code = getattr(response, 'INVALID_POSE', failed)  # which 1.5.0 and 1.6.0 lack
            response.result = _result(code, str(error))
            return response
        try:
            if with_pose or with_twist:
                self._control.place(
                    self._robots[request.entity],
                    position if with_pose else None, unit, twist if with_twist else None,
                    twist_in_world=True,
                )  # fmt: skip
            response.result = _result()
        except ContactSimError as error:
            response.result = _result(failed, str(error))
        return response

    # ---------------------------------------------------------------- poses

    def _on_get_named_poses(self, request: Any, response: Any) -> Any:
        """Return the bases in every reference pose of their robots, standing on the ground."""
        response.result = _result()
        wanted = set(request.tags.tags)
        if wanted and (
            SPAWN not in wanted
            or (request.tags.filter_mode == request.tags.FILTER_MODE_ALL and len(wanted) > 1)
        ):
            return response
        for robot in self._robots:
            response.poses += self._named_poses(robot)
        return response

    def _named_poses(self, name: str) -> list[Any]:
        """Return the base of a robot in its reference poses."""
        part, poses = self._robots[name], []
        for reference in part.robot.reference_configurations:
            pose = NamedPose(name=part.called(reference), tags=[SPAWN])
            pose.description = f'{name}, {reference}: ~/reset with reference_pose:={reference}'
            pose.pose.orientation.w = 1.0
            if part.robot.floating_base:
                q = self._sim.standing_configuration(reference)[part.q]
                set_vector(pose.pose.position, q[:3])
                set_quaternion(pose.pose.orientation, q[3:7])
            poses.append(pose)
        return poses

    def _not_found(self, entity: str) -> Any:
        known = ', '.join(self._frames)
        return _result(Result.RESULT_NOT_FOUND, f'no entity {entity!r}; there are {known}')


def _values(state: Any) -> tuple[Any, Any, Any]:
    """Return position (3,), quaternion (4,) and twist (6,) of an EntityState."""
    pose, twist = state.pose, state.twist
    return (
        np.array(vector_values(pose.position)),
        np.array([*vector_values(pose.orientation), pose.orientation.w]),
        np.array([*vector_values(twist.linear), *vector_values(twist.angular)]),
    )


def _result(code: int | None = None, reason: str = '') -> Any:
    """Return a Result, OK by default."""
    return Result(result=Result.RESULT_OK if code is None else code, error_message=reason)
