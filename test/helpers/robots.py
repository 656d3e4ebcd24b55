"""Small robots with known answers, and ways to make robots stand."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_sim import ContactPoint, RobotModel, Simulator, load_robot
from contact_sim.simulation._report import StepReport

FREE_FLYER = 'root_joint'


def rigid_body(
    name: str, mass: float, inertia: np.ndarray, spheres: list[tuple[list[float], float]]
) -> RobotModel:
    """Return a free body with contact spheres (centre, radius) in its own frame."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), FREE_FLYER)
    model.appendBodyToJoint(joint, pin.Inertia(mass, np.zeros(3), inertia), pin.SE3.Identity())
    model.addBodyFrame('body', joint, pin.SE3.Identity(), 0)
    points = [
        ContactPoint(f'point_{k}', 'body', FREE_FLYER, np.array(centre), radius)
        for k, (centre, radius) in enumerate(spheres)
    ]
    return RobotModel.from_pinocchio(model, points, name=name)


def ball(mass: float = 1.0, radius: float = 0.1, factor: float = 0.4) -> RobotModel:
    """Return a sphere with inertia factor·m r² (0.4: solid)."""
    return rigid_body(
        'ball', mass, factor * mass * radius**2 * np.eye(3), [([0.0, 0.0, 0.0], radius)]
    )


def cube(side: float = 0.2, mass: float = 1.0) -> RobotModel:
    """Return a uniform cube with contact points at its four lower corners."""
    half = side / 2
    corners = [([x * half, y * half, -half], 0.0) for x in (-1, 1) for y in (-1, 1)]
    return rigid_body('cube', mass, mass * side**2 / 6 * np.eye(3), corners)


def sled(mass: float = 2.0, lean: tuple[float, float] = (0.0, 0.0)) -> RobotModel:
    """Return a free body on two box feet, frames left and right at y = ±0.2 m, 0.1 m below it.

    Each foot has points at the corners of a square of 0.1 m, 0.02 m below its frame; the centre of
    mass is at `lean` (x, y) [m].
    """
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), FREE_FLYER)
    inertia = pin.Inertia(mass, np.array([*lean, 0.0]), 0.01 * mass * np.eye(3))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.addBodyFrame('body', joint, pin.SE3.Identity(), 0)
    points = []
    for name, y in (('left', 0.2), ('right', -0.2)):
        model.addBodyFrame(name, joint, pin.SE3(np.eye(3), np.array([0.0, y, -0.1])), 0)
        points += [
            ContactPoint(f'{name}_{k}', name, FREE_FLYER, np.array([dx, y + dy, -0.12]), 0.0)
            for k, (dx, dy) in enumerate((x, z) for x in (-0.05, 0.05) for z in (-0.05, 0.05))
        ]
    return RobotModel.from_pinocchio(model, points, name='sled')


def point_mass(mass: float) -> RobotModel:
    """Return a point that slides without turning: three prismatic joints, none driven."""
    model = pin.Model()
    joint = 0
    for axis in 'XYZ':
        kind = getattr(pin, f'JointModelP{axis}')()
        joint = model.addJoint(joint, kind, pin.SE3.Identity(), f'slide_{axis.lower()}')
    model.appendBodyToJoint(
        joint, pin.Inertia(mass, np.zeros(3), 1e-3 * np.eye(3)), pin.SE3.Identity()
    )
    model.addBodyFrame('point', joint, pin.SE3.Identity(), 0)
    return RobotModel.from_pinocchio(model, ['point'], actuated_joints=(), name='point')


def axle() -> RobotModel:
    """Return a wheel of inertia 1 with dry friction 0.5 N m and damping 0.2 N m s/rad."""
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), 'axle')
    model.appendBodyToJoint(joint, pin.Inertia(1.0, np.zeros(3), np.eye(3)), pin.SE3.Identity())
    model.friction = np.array([0.5])
    model.damping = np.array([0.2])
    return RobotModel.from_pinocchio(model, name='axle')


def pose(x: float = 0.0, y: float = 0.0, z: float = 0.0, yaw: float = 0.0) -> np.ndarray:
    """Return the configuration of a free body turned about the vertical."""
    return np.array([x, y, z, 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)])


def centroidal_momentum(model: pin.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return linear [N s] and angular momentum about the centre of mass [N m s], world, (6,)."""
    return np.array(pin.computeCentroidalMomentum(model, model.createData(), q, v).vector)


def world_velocity(sim: Simulator) -> np.ndarray:
    """Return the linear velocity of the base [m/s], world axes."""
    return np.array(pin.Quaternion(*sim.q[[6, 3, 4, 5]]).matrix() @ sim.v[:3])


def lay_on_slope(sim: Simulator, angle: float, height: float) -> None:
    """Lay a free body on an InclinedPlane of `angle` [rad], its centre `height` [m] above it."""
    half = 0.5 * angle
    sim.reset([*height * sim.terrain.plane[:3], 0.0, np.sin(half), 0.0, np.cos(half)])


class StandingController:
    """Joint PD about the pose in which it was made, with the robot's default gains."""

    def __init__(self, sim: Simulator) -> None:
        self.robot = sim.robot
        self.target = sim.robot.joint_positions(sim.q)
        self.stiffness, self.damping = sim.robot.default_gains

    def __call__(self, sim: Simulator) -> np.ndarray:
        error = self.target - self.robot.joint_positions(sim.q)
        return self.stiffness * error - self.damping * self.robot.joint_velocities(sim.v)


def stand(sim: Simulator, steps: int) -> list[StepReport]:
    """Return the reports of `steps` steps under a StandingController."""
    controller = StandingController(sim)
    return [sim.step(controller(sim)) for _ in range(steps)]


def centre_of_mass_acceleration(robot: RobotModel, report: StepReport) -> np.ndarray:
    """Return the acceleration of the centre of mass in the step [m/s²], world, by Pinocchio."""
    data = robot.pinocchio_model.createData()
    record = report.record
    pin.centerOfMass(
        robot.pinocchio_model, data, record.q_start, record.v_start, report.acceleration
    )
    return np.array(data.acom[0])


def held(geometry: str, place: str = '0 0 0', turn: str = '0 0 0') -> RobotModel:
    """Return a body of this geometry that is fixed to the world, with a wheel at rest."""
    inertial = (
        '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial>'
    )
    return load_robot(
        f'<robot name="held"><link name="body"><collision><origin xyz="{place}" rpy="{turn}"/>'
        f'<geometry>{geometry}</geometry></collision></link><link name="wheel">{inertial}</link>'
        '<joint name="axle" type="continuous"><parent link="body"/><child link="wheel"/>'
        '<axis xyz="0 0 1"/></joint></robot>',
        floating_base=False,
    )


LINK, LINK_MASS, TIP = 0.05, 0.05, 0.02
"""Of a chain: length [m] and mass [kg] of a link, radius of its ends [m]."""


def chain(links: int, damping: float = 0.0, name: str = 'chain') -> RobotModel:
    """Return a floating chain of equal links that touches the ground at both ends.

    Axes of the joints are y and z in turn, links point along x; no joint is actuated.
    """
    slender = LINK_MASS * (LINK**2 / 12.0 + TIP**2 / 4.0)
    about = np.diag([LINK_MASS * TIP**2 / 2.0, slender, slender])
    link = pin.Inertia(LINK_MASS, np.array([LINK / 2.0, 0.0, 0.0]), about)
    model, joint = pin.Model(), 0
    for k in range(links):
        turning = pin.JointModelRY() if k % 2 else pin.JointModelRZ()
        kind = turning if k else pin.JointModelFreeFlyer()
        place = np.array([LINK if k else 0.0, 0.0, 0.0])
        joint = model.addJoint(joint, kind, pin.SE3(np.eye(3), place), f'joint_{k}')
        model.appendBodyToJoint(joint, link, pin.SE3.Identity())
        model.addBodyFrame(f'link_{k}', joint, pin.SE3.Identity(), 0)
    model.damping[6:] = damping
    last = links - 1
    ends = [
        ContactPoint('first', 'link_0', 'joint_0', np.zeros(3), TIP),
        ContactPoint('last', f'link_{last}', f'joint_{last}', np.array([LINK, 0.0, 0.0]), TIP),
    ]
    return RobotModel.from_pinocchio(model, ends, actuated_joints=(), name=name)


def hanging(robot: RobotModel) -> np.ndarray:
    """Return q of an even chain in a half circle below the ground, its ends on the ground."""
    model = robot.pinocchio_model
    q = pin.neutral(model)
    bends = np.arange(7, robot.nq, 2)  # axes along y
    q[bends] = -np.pi / len(bends)
    q[2] = TIP
    q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.5 * np.pi, 0.0)).coeffs()
    return q
