"""Scenarios of the comparison: a robot, a ground, a start, a controller.

    drop   from 0.1 m into its stance; the feet meet the ground after √(2 H / g)
    slide  launched at 1 m/s, all joints locked; the centre of mass stops after v0² / (2 μ g)
    stand  at rest; what moves, creeps
    slope  at rest on 15°, far inside the friction cone; what moves, creeps
    trot   diagonal pairs of feet, commanded to go at 0.3 m/s

In `slide` the joints are locked so that the analytic distance holds: the robot is one rigid body
that slides without turning, because friction μ λ_n of every foot has the moment about the vertical
that λ_n has about the direction of slip, and that is zero in sum (theory X2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields, positive
from contact_sim.collision._terrain import InclinedPlane, Plane, Terrain
from contact_sim.contact_models._base import ContactModel
from contact_sim.control._trot import Trot
from contact_sim.errors import InvalidInput, known_name
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.simulation._simulator import Simulator

Controller = Callable[[float, Array, Array], Array]
"""(time [s], q, v) -> joint efforts [N m], shape (n_joints,)."""
GRAVITY = 9.81


@checked_fields
@dataclass(frozen=True)
class Scenario:
    """One scenario; angles in rad, SI units."""

    name: str
    meaning: str
    """In one line, for titles."""
    trace: str
    """Quantity drawn over time, with its unit; a field of `runs.Trace`."""
    headline: str
    """The measure that tells the models apart, with its unit; a field of `runs.Measures`."""
    duration: float
    friction: float = 0.8
    slope: float = 0.0
    height: float = 0.0
    """Gap below the lowest foot at the start [m]."""
    speed: float = 0.0
    """Launched (slide) or commanded (trot) at this speed along x [m/s]."""

    def __post_init__(self) -> None:
        positive('duration', self.duration, 's')

    @property
    def reference(self) -> str:
        """Origin of `expected`, in one word."""
        return 'commanded' if self.name == 'trot' else 'analytic'

    def expected(self) -> float:
        """Return the analytic or commanded value of the headline in its unit."""
        values = {
            'drop': 1e3 * float(np.sqrt(2.0 * self.height / GRAVITY)),
            'slide': 1e3 * self.speed**2 / (2.0 * self.friction * GRAVITY),
            'stand': 0.0,
            'slope': 0.0,
            'trot': self.speed,
        }
        return values[self.name]


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            'drop', 'dropped from 0.1 m into its stance', 'height of the base [m]',
            'time of landing [ms]', duration=1.0, height=0.1,
        ),
        Scenario(
            'slide', 'launched at 1 m/s, joints locked, friction 0.4', 'speed [m/s]',
            'stopping distance [mm]', duration=0.5, friction=0.4, speed=1.0,
        ),
        Scenario(
            'stand', 'standing at rest', 'way slipped [mm]', 'creep [mm/s]', duration=2.0,
        ),
        Scenario(
            'slope', 'standing on a slope of 15°', 'way slipped [mm]', 'creep [mm/s]',
            duration=2.0, slope=float(np.radians(15.0)),
        ),
        Scenario(
            'trot', 'trotting forward at 0.3 m/s', 'speed [m/s]', 'mean speed [m/s]',
            duration=3.0, speed=0.3,
        ),
    )
}  # fmt: skip
"""By name."""


@dataclass(frozen=True)
class Start:
    """A simulator at the start of a scenario, and its controller."""

    sim: Simulator
    controller: Controller


@checked
def scenario_of(name: str, duration: float | None = None) -> Scenario:
    """Return a scenario by name, with another duration [s] if one is given.

    Raises:
        UnknownName: a scenario that does not exist.
        InvalidInput: a duration that is not positive.
    """
    name = known_name('scenario', name, SCENARIOS)
    if duration is None:
        return SCENARIOS[name]
    return replace(SCENARIOS[name], duration=duration)


def start(
    scenario: Scenario, robot: RobotModel, model: str | ContactModel, time_step: float
) -> Start:
    """Return a simulator of `robot` at the start of a scenario."""
    if not robot.floating_base or not robot.contact_points:
        raise InvalidInput(f'robot {robot.name!r}: comparing needs a floating base and feet')
    standing = robot.reference_configuration('standing')
    body = locked(robot, standing) if scenario.name == 'slide' else robot
    terrain: Terrain = InclinedPlane(scenario.slope) if scenario.slope else Plane()
    sim = Simulator(
        body, model, terrain, friction=scenario.friction, time_step=time_step, gravity=GRAVITY
    )
    if body is not robot:
        sim.reset(standing[:7], np.array([scenario.speed, 0.0, 0.0, 0.0, 0.0, 0.0]))
        return Start(sim, lambda time, q, v: np.zeros(0))
    q = sim.standing_configuration().copy()
    q[:3] += scenario.height * terrain.normals(q[None, :3])[0]
    sim.reset(q)
    if scenario.name == 'trot':
        trot = Trot(robot)
        trot.velocity = scenario.speed, 0.0, 0.0
        return Start(sim, trot.effort)
    return Start(sim, hold(robot, q))


def hold(robot: RobotModel, q: Array) -> Controller:
    """Return joint PD about the pose q with the robot's default gains."""
    pose, (kp, kd) = robot.joint_positions(q), robot.default_gains

    def efforts(time: float, q: Array, v: Array) -> Array:
        return np.asarray(kp * (pose - robot.joint_positions(q)) - kd * robot.joint_velocities(v))

    return efforts


def locked(robot: RobotModel, q: Array) -> RobotModel:
    """Return the robot as one rigid body with its feet, all joints locked at q (nq,)."""
    model = robot.pinocchio_model
    body = pin.buildReducedModel(model, list(range(2, model.njoints)), q)
    data = data_of(model)
    base = q.copy()
    base[:7] = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0
    pin.forwardKinematics(model, data, base)
    root = str(model.names[1])
    points = [
        ContactPoint(
            point.name, point.frame, root,
            np.array(data.oMi[model.getJointId(point.joint)].act(point.offset)), point.radius,
        )
        for point in robot.contact_points
    ]  # fmt: skip
    return RobotModel.from_pinocchio(body, points, actuated_joints=(), name=robot.name)
