"""The same robot in MuJoCo: joints from its URDF, our inertias and contact spheres, a floor.

Inertias come from the Pinocchio model, because MuJoCo refuses the placeholder inertias of links
that published URDFs weld to others (go1's 'base', for one).
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

import mujoco
import numpy as np
import pinocchio as pin

from contact_sim import RobotModel, load_robot, robots

FOOT_BIT, FLOOR_BIT = 1, 2


def trees() -> list[str]:
    """Return the robots of the catalogue that can be built: those without loops."""
    return [name for name in robots() if not load_robot(name).constraints]


class MujocoPeer:
    """A robot on a plane, free or with a fixed base; MuJoCo's defaults except the time step.

    With `gains`, k_p [N m/rad] and k_d [N m s/rad] of shape (n_joints,), the joints have PD
    actuators with the effort limits of the robot, aimed by `set_targets`. With `whole_body` the
    floor touches the collision geometry of the URDF in place of the contact spheres. `steps` are
    least and largest corners of boxes [m] on the floor.

    Raises:
        ValueError: MuJoCo does not load the URDF, or the robot has joints that follow others.
    """

    def __init__(
        self,
        robot: RobotModel,
        friction: float,
        time_step: float,
        gains: tuple[np.ndarray, np.ndarray] | None = None,
        whole_body: bool = False,
        steps: Sequence[tuple[Sequence[float], Sequence[float]]] = (),
    ) -> None:
        if robot.constraints:
            raise ValueError(f'{robot.name}: its loops and couplings are not rebuilt here')
        spec = mujoco.MjSpec.from_string(_joints_only(robot.description))
        spec.option.timestep = time_step
        self._free = robot.floating_base
        if self._free:
            spec.worldbody.first_body().add_freejoint()
        bodies = _bodies(spec, robot)
        for joint, body in bodies.items():
            _copy_inertia(robot, joint, body)
        touching = {
            'mass': 0.0,
            'friction': [friction, 0.0, 0.0],
            'contype': FOOT_BIT,
            'conaffinity': FLOOR_BIT,
        }
        if whole_body:
            _add_shapes(bodies, robot, touching)
        for point in () if whole_body else robot.contact_points:
            bodies[point.joint].add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE,
                size=[point.radius, 0.0, 0.0],
                pos=point.offset,
                **touching,
            )
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[0.0, 0.0, 1.0],
            friction=[friction, 0.0, 0.0],
            contype=FLOOR_BIT,
            conaffinity=FOOT_BIT,
        )
        for lower, upper in np.array(steps, dtype=float).reshape(-1, 2, 3):
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=0.5 * (upper - lower),
                pos=0.5 * (upper + lower),
                friction=[friction, 0.0, 0.0],
                contype=FLOOR_BIT,
                conaffinity=FOOT_BIT,
            )
        if gains is not None:
            _add_actuators(spec, robot, *gains)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(name) for name in robot.joint_names]
        self._position = np.array([joint.qposadr[0] for joint in joints])
        self.joint_dofs = np.array([joint.dofadr[0] for joint in joints])

    def reset(self, q: np.ndarray, joint_positions: np.ndarray) -> None:
        """Start at rest from Pinocchio's q (pose of a free base first) and joint angles [rad]."""
        mujoco.mj_resetData(self.model, self.data)
        if self._free:
            self.data.qpos[:3] = q[:3]
            self.data.qpos[3:7] = q[[6, 3, 4, 5]]  # MuJoCo has w first
        self.data.qpos[self._position] = joint_positions

    @property
    def total_mass(self) -> float:
        """Mass of all bodies [kg]."""
        return float(self.model.body_mass.sum())

    @property
    def joint_positions(self) -> np.ndarray:
        """Angles in the order of robot.joint_names [rad]."""
        return np.array(self.data.qpos[self._position])

    @property
    def joint_velocities(self) -> np.ndarray:
        """Velocities in the order of robot.joint_names [rad/s]."""
        return np.array(self.data.qvel[self.joint_dofs])

    def state(self, robot: RobotModel) -> tuple[np.ndarray, np.ndarray]:
        """Return q (nq,) and v (nv,) in Pinocchio's conventions."""
        if not self._free:
            q = robot.with_joint_positions(np.zeros(robot.nq), self.joint_positions)
            v = np.zeros(robot.nv)
            v[robot.joint_velocity_index] = self.joint_velocities
            return q, v
        base = np.concatenate([self.data.qpos[[0, 1, 2, 4, 5, 6, 3]], np.zeros(robot.nq - 7)])
        q = robot.with_joint_positions(base, self.joint_positions)
        v = np.zeros(robot.nv)
        v[:3] = pin.Quaternion(base[3:7]).toRotationMatrix().T @ self.data.qvel[:3]
        v[3:6] = self.data.qvel[3:6]
        v[robot.joint_velocity_index] = self.joint_velocities
        return q, v

    @property
    def contacts(self) -> int:
        """Contacts between feet and floor."""
        return int(self.data.ncon)

    @property
    def penetration(self) -> float:
        """Depth of the deepest foot [m]."""
        return float(max(0.0, -self.data.contact.dist.min())) if self.data.ncon else 0.0

    def set_effort(self, effort: np.ndarray) -> None:
        """Apply joint efforts [N m] in the steps that follow."""
        self.data.qfrc_applied[self.joint_dofs] = effort

    def set_targets(self, positions: np.ndarray) -> None:
        """Aim the PD actuators at joint positions [rad]."""
        self.data.ctrl[:] = positions

    def step(self, steps: int = 1) -> None:
        """Advance by `steps` time steps in one call."""
        mujoco.mj_step(self.model, self.data, nstep=steps)


def _add_shapes(
    bodies: dict[str, mujoco.MjsBody], robot: RobotModel, touching: dict[str, object]
) -> None:
    """Add boxes, cylinders and spheres of the URDF's collision geometry to the bodies."""
    model = robot.pinocchio_model
    shapes = pin.buildGeomFromUrdfString(
        model, robot.description, pin.GeometryType.COLLISION, package_dirs=list(robot.package_dirs)
    )
    for shape in shapes.geometryObjects:
        geometry, kind = shape.geometry, type(shape.geometry).__name__
        if kind == 'Box':
            of_kind, size = mujoco.mjtGeom.mjGEOM_BOX, list(geometry.halfSide)
        elif kind == 'Cylinder':
            of_kind = mujoco.mjtGeom.mjGEOM_CYLINDER
            size = [geometry.radius, geometry.halfLength, 0.0]
        elif kind == 'Sphere':
            of_kind, size = mujoco.mjtGeom.mjGEOM_SPHERE, [geometry.radius, 0.0, 0.0]
        else:
            raise ValueError(f'{shape.name}: a {kind} is not translated')
        bodies[model.names[shape.parentJoint]].add_geom(
            type=of_kind,
            size=size,
            pos=shape.placement.translation,
            quat=pin.Quaternion(shape.placement.rotation).coeffs()[[3, 0, 1, 2]],
            **touching,
        )


def _joints_only(text: str) -> str:
    """Return the URDF without visuals, collisions and inertias: no mesh file is needed."""
    robot = ElementTree.fromstring(text)
    for link in robot.iter('link'):
        link[:] = []
    return ElementTree.tostring(robot, encoding='unicode')


def _bodies(spec: mujoco.MjSpec, robot: RobotModel) -> dict[str, mujoco.MjsBody]:
    """Return {Pinocchio joint: the body it moves}; both engines put its frame at the joint."""
    bodies = {}
    if robot.floating_base:
        bodies[robot.pinocchio_model.names[1]] = spec.worldbody.first_body()
    for joint in ElementTree.fromstring(robot.description).findall('joint'):
        child = joint.find('child')
        if child is not None and joint.get('name') in robot.joint_names:
            bodies[joint.get('name', '')] = spec.body(child.get('link', ''))
    return bodies


def _copy_inertia(robot: RobotModel, joint: str, body: mujoco.MjsBody) -> None:
    """Give a body the inertia of everything that Pinocchio rigidly fixes to the joint."""
    inertia = robot.pinocchio_model.inertias[robot.pinocchio_model.getJointId(joint)]
    matrix = inertia.inertia
    body.mass = inertia.mass
    body.ipos = inertia.lever
    body.fullinertia = [*matrix.diagonal(), matrix[0, 1], matrix[0, 2], matrix[1, 2]]
    body.explicitinertial = True


def _add_actuators(
    spec: mujoco.MjSpec, robot: RobotModel, stiffness: np.ndarray, damping: np.ndarray
) -> None:
    """Add an actuator to every joint: effort k_p (target − q) − k_d q̇, within its limits."""
    limits = zip(robot.joint_names, stiffness, damping, robot.effort_limit, strict=True)
    for name, kp, kd, limit in limits:
        actuator = spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gaintype=mujoco.mjtGain.mjGAIN_FIXED, biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        )  # fmt: skip
        actuator.gainprm[0] = kp
        actuator.biasprm[:3] = 0.0, -kp, -kd
        if np.isfinite(limit):
            actuator.forcelimited = True
            actuator.forcerange = -limit, limit
