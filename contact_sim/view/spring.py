"""The spring with which somebody draws a robot: from the origin of a frame to a point in world.

It has the stiffness m ω² and the damping 2 m ω, critical, with m the mass that the frame moves in
its lightest direction where nothing holds the robot: 1/m is the largest eigenvalue of J M⁻¹ Jᵀ. So
it is as stable on a foot as on the trunk: h ω is far below 1 (theory 4.5).
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.robot.frames import frame_called
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
RATE = 12.0
"""ω of the spring [rad/s]."""
AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Spring:
    """A spring at one frame.

    Args:
        robot: what is drawn.
        frame: at whose origin.
        target: where to [m], world, shape (3,).
        q: configuration in which it is seized, shape (nq,).

    Raises:
        UnknownName: a frame that the robot does not have.

    Attributes:
        frame: its name.
        target: assign another while it draws.
    """

    def __init__(self, robot: RobotModel, frame: str, target: Array, q: Array) -> None:
        self._model = model = robot.pinocchio_model
        kind = frame_called(model, frame).type
        self._data, self._id = model.createData(), model.getFrameId(frame, kind)
        self.frame, self.target = frame, target
        jacobian = pin.computeFrameJacobian(model, self._data, q, self._id, AXES)[:3]
        upper = np.triu(pin.computeMinverse(model, self._data, q))
        mobility = jacobian @ (upper + np.triu(upper, 1).T) @ jacobian.T
        largest = float(np.linalg.eigvalsh(mobility)[-1])
        self.mass = 1.0 / largest if largest > 0.0 else 0.0

    def wrench(self, q: Array, v: Array) -> Array:
        """Return force [N] and torque [N m] at the frame's origin, world axes, shape (6,)."""
        model, data = self._model, self._data
        pin.forwardKinematics(model, data, q, v)
        position = pin.updateFramePlacement(model, data, self._id).translation
        velocity = pin.getFrameVelocity(model, data, self._id, AXES).linear
        force = self.mass * (RATE**2 * (self.target - position) - 2.0 * RATE * velocity)
        return np.array([*force, 0.0, 0.0, 0.0])
