"""From settings to a simulator and a recorder; imports no ROS."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

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
from contact_sim.messages.frames import RECORDED_AS
from contact_sim.parameters import Settings
from contact_sim.replay.recorder import Recorder
from contact_sim.robot.model import STANDING, RobotModel
from contact_sim.robot.parts import RobotPart
from contact_sim.ros.settings.constraints import check_constraints, chosen_constraints
from contact_sim.simulation.placement import lift, standing_on
from contact_sim.simulation.simulator import Simulator
from contact_sim.terrain.ready_made import READY_MADE, ground_from_file, ready_made

Array = NDArray[np.float64]


def loaded_simulator(robot: RobotModel, settings: Settings) -> Simulator:
    """Return the simulator of `robot` under the settings.

    Raises:
        ContactSimError: settings that cannot be, constraints that the robot cannot have.
    """
    check_constraints(robot, settings)
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
        constraints=chosen_constraints(settings),
    )
    sim.baumgarte = contact.baumgarte
    sim.restitution_threshold = contact.restitution_threshold
    sim.shadow = chosen_shadows(settings)
    return sim


def start_configuration(
    sim: Simulator, settings: Settings, terrain: Terrain | None = None
) -> Array:
    """Return the reference pose of every robot above the ground, at its place, q of shape (nq,).

    Moved onto the constraints that hold.

    Args:
        sim: what is simulated.
        settings: reference_pose, initial_x, initial_y, initial_height.
        terrain: the ground; None: that of `sim`.

    Raises:
        ContactSimError: the pose or ground there does not exist, or no constraint can hold there.
    """
    common, ground = settings[''], terrain or sim.terrain
    where = common.initial_x, common.initial_y
    q = standing_on(sim.robot, ground, common.reference_pose, *where).copy()
    lift(sim.robot, q, ground, common.initial_height)
    return sim.assembled(q)


def standing_at(
    part: RobotPart, settings: Settings, terrain: Terrain, x: float, y: float, yaw: float
) -> Array:
    """Return the reference pose of one robot above the ground at x, y [m], yaw [rad], its q.

    Raises:
        ContactSimError: there is no ground.
    """
    common, robot = settings[''], part.robot
    pose = common.reference_pose if common.reference_pose in robot.references else STANDING
    q = standing_on(robot, terrain, pose, x, y, yaw).copy()
    lift(part.robot, q, terrain, common.initial_height)
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
    parameters = {prefix or RECORDED_AS: dict(vars(group)) for prefix, group in settings.items()}
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # somebody without a home
        raise InvalidInput(f'record = {name!r}: {error}') from error
    return Recorder(sim, path, parameters=parameters, on_error=report_failure)
