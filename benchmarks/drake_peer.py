"""The same robot in Drake: our joints, inertias and contact spheres on a half space.

Built from the Pinocchio model: no mesh file is needed, and both engines get the same numbers.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from pydrake.geometry import AddContactMaterial, HalfSpace, ProximityProperties, Sphere
from pydrake.math import RigidTransform
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    CoulombFriction,
    DiscreteContactApproximation,
    MultibodyPlant,
)
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    RevoluteJoint,
    RigidBody,
    SpatialInertia,
    UnitInertia,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder

from contact_sim import RobotModel

APPROXIMATIONS = {
    'sap': DiscreteContactApproximation.kSap,
    'lagged': DiscreteContactApproximation.kLagged,
    'similar': DiscreteContactApproximation.kSimilar,
}
AXES = {'JointModelRX': (1, 0, 0), 'JointModelRY': (0, 1, 0), 'JointModelRZ': (0, 0, 1)}


class DrakePeer:
    """A robot with a floating base and revolute joints on a half space, under Drake's defaults.

    Drake joins the compliances of two bodies and takes the contact point where they meet: each
    gets half of the compliance and of the relaxation time, so that the point lies halfway, as
    here. What is not given stays at Drake's default.

    Raises:
        ValueError: a joint that is not revolute about an axis of its frame.
    """

    def __init__(
        self,
        robot: RobotModel,
        friction: float,
        time_step: float,
        approximation: str | None = None,
        stiffness: float | None = None,
        dissipation: float | None = None,
        relaxation_time: float | None = None,
    ) -> None:
        builder = DiagramBuilder()
        self.plant, _ = AddMultibodyPlantSceneGraph(builder, time_step)
        plant = self.plant
        if approximation is not None:
            plant.set_discrete_contact_approximation(APPROXIMATIONS[approximation])
        plant.mutable_gravity_field().set_gravity_vector(robot.pinocchio_model.gravity.linear)
        material = ProximityProperties()
        AddContactMaterial(
            dissipation=dissipation,
            point_stiffness=None if stiffness is None else 2.0 * stiffness,
            friction=CoulombFriction(friction, friction),
            properties=material,
        )
        if relaxation_time is not None:
            material.AddProperty('material', 'relaxation_time', 0.5 * relaxation_time)
        bodies = _add_bodies(plant, robot)
        for point in robot.contact_points:
            plant.RegisterCollisionGeometry(
                bodies[point.joint], RigidTransform(point.offset), Sphere(point.radius),
                point.name, material,
            )  # fmt: skip
        plant.RegisterCollisionGeometry(
            plant.world_body(), RigidTransform(), HalfSpace(), 'ground', material
        )
        plant.Finalize()
        self._simulator = Simulator(builder.Build())
        root = self._simulator.get_mutable_context()
        self.context = plant.GetMyMutableContextFromRoot(root)
        self._robot, self._h, self._steps = robot, time_step, 0
        self._feet = [point.joint for point in robot.contact_points]
        joints = [plant.GetJointByName(name) for name in robot.joint_names]
        self._q = np.array([joint.position_start() for joint in joints])
        self._v = np.array([joint.velocity_start() for joint in joints])
        self._force = plant.get_applied_generalized_force_input_port()

    def set_state(self, q: np.ndarray, v: np.ndarray) -> None:
        """Take over q (nq,), v (nv,) in Pinocchio's conventions."""
        robot, context = self._robot, self.context
        x = np.zeros(self.plant.num_positions())
        x[:4], x[4:7] = q[[6, 3, 4, 5]], q[:3]  # quaternion first, w first
        x[self._q] = robot.joint_positions(q)
        turn = pin.Quaternion(q[3:7]).toRotationMatrix()
        u = np.zeros(self.plant.num_velocities())
        u[:3], u[3:6] = turn @ v[3:6], turn @ v[:3]
        u[self._v] = robot.joint_velocities(v)
        self.plant.SetPositions(context, x)
        self.plant.SetVelocities(context, u)

    def state(self) -> tuple[np.ndarray, np.ndarray]:
        """Return q (nq,), v (nv,) in Pinocchio's conventions."""
        x, u = self.plant.GetPositions(self.context), self.plant.GetVelocities(self.context)
        base = np.concatenate([x[4:7], x[[1, 2, 3, 0]], np.zeros(self._robot.nq - 7)])
        q = self._robot.with_joint_positions(base, x[self._q])
        turn = pin.Quaternion(q[3:7] / np.linalg.norm(q[3:7])).toRotationMatrix()
        v = np.zeros(self._robot.nv)
        v[:3], v[3:6] = turn.T @ u[3:6], turn.T @ u[:3]
        v[self._robot.joint_velocity_index] = u[self._v]
        return q, v

    def step(self, effort: np.ndarray) -> np.ndarray:
        """Advance by one time step under joint efforts [N m].

        Returns:
            Contact forces on the feet in the step [N], world, shape (nc, 3).
        """
        tau = np.zeros(self.plant.num_velocities())
        tau[self._v] = effort
        self._force.FixValue(self.context, tau)
        self._steps += 1
        # updates happen at multiples of h: halfway between two of them no rounding matters
        self._simulator.AdvanceTo((self._steps - 0.5) * self._h)
        results = self.plant.get_contact_results_output_port().Eval(self.context)
        forces = np.zeros((len(self._feet), 3))
        for k in range(results.num_point_pair_contacts()):
            info = results.point_pair_contact_info(k)
            on_world = info.bodyB_index() == self.plant.world_body().index()
            index = info.bodyA_index() if on_world else info.bodyB_index()
            foot = self._feet.index(self.plant.get_body(index).name())
            forces[foot] += (-1.0 if on_world else 1.0) * info.contact_force()
        return forces


def _add_bodies(plant: MultibodyPlant, robot: RobotModel) -> dict[str, RigidBody]:
    """Add one body per Pinocchio joint, named after it, in the frame of the joint."""
    model = robot.pinocchio_model
    bodies: dict[str, RigidBody] = {}
    for j in range(1, model.njoints):
        name, inertia = model.names[j], model.inertias[j]
        a = inertia.matrix()[3:, 3:] / inertia.mass  # about the joint
        unit = UnitInertia(a[0, 0], a[1, 1], a[2, 2], a[0, 1], a[0, 2], a[1, 2])
        spatial = SpatialInertia(inertia.mass, inertia.lever, unit, True)
        bodies[name] = body = plant.AddRigidBody(name, spatial)
        kind = model.joints[j].shortname()
        if j == 1:
            continue  # a body without a joint floats
        if kind not in AXES:
            raise ValueError(f'joint {name!r} is a {kind}: expected one of {", ".join(AXES)}')
        placement = model.jointPlacements[j]
        parent = plant.AddFrame(
            FixedOffsetFrame(
                f'{name}_on_parent',
                bodies[model.names[model.parents[j]]].body_frame(),
                RigidTransform(placement.homogeneous),
            )
        )
        damping = float(model.damping[model.joints[j].idx_v])
        plant.AddJoint(RevoluteJoint(name, parent, body.body_frame(), AXES[kind], damping=damping))
    return bodies
