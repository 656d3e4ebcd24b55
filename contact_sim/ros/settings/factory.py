"""From settings to a robot, a simulator and a recorder; imports no ROS."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from contact_sim.collision.terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
    Terrain,
    as_terrain,
)
from contact_sim.contact_models import CONTACT_MODELS
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.errors import InvalidInput
from contact_sim.replay.recorder import Recorder
from contact_sim.robot.actuators import quantities
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot
from contact_sim.robot.xacro_program import xacro_arguments
from contact_sim.ros.settings.declarations import NOT_SET, Settings
from contact_sim.sensors import ContactFlags, Encoders, FootForces, Imu
from contact_sim.simulation.placement import standing_on
from contact_sim.simulation.simulator import Simulator
from contact_sim.terrain.ready_made import READY_MADE, ground_from_file, ready_made

Array = NDArray[np.float64]
IMU_LINK = 'imu_link'
NONE_AT_ZERO = 'velocity_limit', 'saturation_effort'
"""Quantities of an actuator that 0 switches off."""
ALL = 'all'
"""In `contact_links`: every link that moves and has collision geometry."""


def loaded_robot(settings: Settings) -> RobotModel:
    """Return the robot that the settings name."""
    common = settings['']
    source = common.robot_description or common.urdf_path or common.robot
    robot = load_robot(
        source, common.floating_base, common.contact_frames or None,
        common.actuated_joints or None, common.srdf_path or None,
        check_meshes=common.check_meshes, xacro_arguments=xacro_arguments(common.xacro_arguments),
    )  # fmt: skip
    robot = robot.with_position_limits(
        replace(limit, restitution=0.0 if limit.holds else common.joint_limit_restitution)
        for limit in robot.position_limits
        if common.joint_limits or len(limit.joints) > 1
    )
    if not common.contact_links:
        return robot
    links = None if ALL in common.contact_links else common.contact_links
    return robot.with_body_contacts(links, edge_radius=common.contact_edge_radius)


def loaded_simulator(robot: RobotModel, settings: Settings) -> Simulator:
    """Return the simulator of `robot` under the settings."""
    common, contact = settings[''], settings['contact']
    sim = Simulator(
        robot,
        contact_model=chosen_contact_model(settings),
        terrain=chosen_terrain(settings),
        friction=settings['friction'].mu,
        restitution=common.restitution,
        time_step=common.time_step,
        gravity=common.gravity,
        integrator=common.integrator,
    )
    sim.baumgarte = contact.baumgarte
    sim.restitution_threshold = contact.restitution_threshold
    sim.shadow = chosen_shadows(settings)
    return sim


def start_configuration(
    sim: Simulator,
    settings: Settings,
    x: float = 0.0,
    y: float = 0.0,
    yaw: float = 0.0,
    terrain: Terrain | None = None,
) -> Array:
    """Return the reference pose above the ground, q of shape (nq,).

    Args:
        sim: what is simulated.
        settings: reference_pose, initial_x, initial_y, initial_height.
        x: distance from initial_x [m].
        y: distance from initial_y [m].
        yaw: turn about the robot's own vertical [rad].
        terrain: the ground; None: that of `sim`.

    Raises:
        ContactSimError: the pose or ground there does not exist.
    """
    common = settings['']
    where = common.initial_x + x, common.initial_y + y, yaw
    ground = terrain or sim.terrain
    q = standing_on(sim.robot, ground, common.reference_pose, *where).copy()
    if sim.robot.floating_base:
        q[:3] += common.initial_height * ground.normals(q[None, :3])[0]
    return q


def chosen_terrain(settings: Settings) -> Terrain:
    """Return the ground that the settings name."""
    ground = settings['terrain']
    along = (math.cos(ground.heading), math.sin(ground.heading), 0.0)
    centre = (0.0, 0.0, ground.radius if ground.hollow else -ground.radius)
    if ground.type in READY_MADE:
        return as_terrain(ready_made(ground.type, ground.difficulty, ground.seed))
    if ground.type == 'file':
        if not ground.file:
            raise InvalidInput("terrain.file is empty: terrain.type = 'file' needs a path")
        scales = ground.horizontal_scale, ground.vertical_scale or None
        return as_terrain(ground_from_file(ground.file, *scales))
    if ground.type == 'inclined_plane':
        return InclinedPlane(ground.angle, ground.heading)
    if ground.type == 'groove':
        return groove(ground.angle, ground.heading)
    if ground.type == 'sphere':
        return SphereGround(centre, ground.radius, ground.hollow)
    if ground.type == 'cylinder':
        return CylinderGround(centre, along, ground.radius, ground.hollow)
    return Plane()


def groove(angle: float, heading: float) -> Planes:
    """Return two planes that fall towards a level line through the origin.

    Args:
        angle: slope of both [rad].
        heading: direction of the line about the world z axis [rad], 0 = +x.
    """
    across = (-math.sin(angle) * math.sin(heading), math.sin(angle) * math.cos(heading))
    up = math.cos(angle)
    return Planes((((*across, up), 0.0), ((-across[0], -across[1], up), 0.0)))


def chosen_contact_model(settings: Settings) -> ContactModel:
    """Return the contact model that the settings name, with its parameters."""
    return _contact_model(settings['contact'].model, settings)


def chosen_shadows(settings: Settings) -> list[ContactModel]:
    """Return the contact models of contact.shadow, with their parameters.

    Raises:
        InvalidInput: a model named twice.
    """
    names = settings['contact'].shadow
    if len(set(names)) < len(names):
        raise InvalidInput(f'contact.shadow = {list(names)}: every contact model only once')
    return [_contact_model(name, settings) for name in names]


def _contact_model(name: str, settings: Settings) -> ContactModel:
    return CONTACT_MODELS[name](**vars(settings[f'contact.{name}']))


def joint_gains(robot: RobotModel, settings: Settings) -> tuple[Array, Array]:
    """Return PD gains (kp [N m/rad], kd [N m s/rad]), each (n_joints,).

    A joint's own gain wins over `gains`, and that over the default of the robot; 0 means not set.
    """
    default = [np.broadcast_to(gain, (robot.n_joints,)) for gain in robot.default_gains]
    common = settings['gains']
    gains = []
    for name, fallback in zip(('p', 'd'), default, strict=True):
        own = np.array([getattr(settings[f'gains.{j}'], name) for j in robot.joint_names])
        shared = getattr(common, name) or fallback
        gains.append(np.where(own > 0.0, own, shared))
    return gains[0], gains[1]


def driven_robot(robot: RobotModel, settings: Settings) -> RobotModel:
    """Return the robot with the actuators of the settings.

    A joint's own number wins over that of `actuators`, and that over the description.

    Raises:
        InvalidInput: a number that is not allowed, see `Actuators`.
    """
    changes: dict[str, Array] = {}
    for name in quantities():
        shared = getattr(settings['actuators'], name)
        own = np.array([getattr(settings[f'actuators.{j}'], name) for j in robot.joint_names])
        chosen = np.where(own == NOT_SET, shared, own)
        if np.any(chosen != NOT_SET):
            off = (chosen == 0.0) & (name in NONE_AT_ZERO)
            given = np.where(off, np.inf, chosen)
            changes[name] = np.where(chosen == NOT_SET, getattr(robot.actuators, name), given)
    return robot.with_actuators(None, **changes) if changes else robot


class RobotSensors(NamedTuple):
    """The sensors of a robot."""

    joints: Encoders
    imu: Imu
    contacts: ContactFlags
    forces: FootForces


def chosen_sensors(robot: RobotModel, settings: Settings) -> RobotSensors:
    """Return the sensors that the settings describe.

    Raises:
        UnknownName: a frame or a foot that the robot does not have.
    """
    noise, seed, wrench = settings['noise'], settings[''].seed, settings[''].contact_wrench_frame
    return RobotSensors(
        Encoders(robot, None, noise, settings['sensors.joints'], seed),
        Imu(robot, imu_frame(robot, settings), noise, settings['sensors.imu'], seed),
        ContactFlags(robot, settings['sensors.contacts'], seed),
        FootForces(
            robot, 'foot' if wrench == 'foot' else 'world', noise, settings['sensors.forces'], seed
        ),
    )


def imu_frame(robot: RobotModel, settings: Settings) -> str:
    """Return the Pinocchio frame of the IMU, '' for the base itself."""
    wanted: str = settings['imu'].frame_id
    root = 1 if robot.floating_base else 0
    on_base = [f.name for f in robot.pinocchio_model.frames if f.parentJoint == root]
    return wanted or (IMU_LINK if IMU_LINK in on_base else '')


def recorder_of(
    sim: Simulator, settings: Settings, report_failure: Callable[[str], None]
) -> Recorder | None:
    """Return a recorder where the parameter `record` names a file.

    Raises:
        InvalidInput: a file that cannot be written.
    """
    name = settings[''].record
    if not name:
        return None
    parameters = {prefix or 'node': dict(vars(group)) for prefix, group in settings.items()}
    return Recorder(sim, Path(name).expanduser(), parameters=parameters, on_error=report_failure)
