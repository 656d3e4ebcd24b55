"""The handle with which somebody draws the robot: three arrows at a frame."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import viser
from numpy.typing import NDArray

from contact_sim.robot.frames import frame_called
from contact_sim.robot.model import RobotModel
from contact_sim.view.session import Session

Array = NDArray[np.float64]
NAME = '/handle'
SIZE = 0.15
"""Length of its arrows [m]."""


class DragHandle:
    """A handle that is where its frame is, and draws the frame where it is dragged.

    The browser only says where it is dragged; the thread that draws asks the session for it, so
    that the end of a drag never comes before its last motion.

    Args:
        server: of the page.
        session: whose robot is drawn.

    Attributes:
        frame: its name; '' where there is nothing to draw.
        offset: where the origin of the world is in the page [m], (3,).
    """

    def __init__(self, server: viser.ViserServer, session: Session) -> None:
        self._session = session
        self.frame = next(iter(session.offers.frames), '')
        self._drawn = ''
        self._dragged = False
        self._model: pin.Model = None
        self.offset = np.zeros(3)
        self._gizmo = server.scene.add_transform_controls(
            NAME, scale=SIZE, disable_rotations=True, depth_test=False, visible=False
        )
        self._gizmo.on_update(self._on_update)

    @property
    def visible(self) -> bool:
        """Whether it is to be seen."""
        return bool(self._gizmo.visible)

    @visible.setter
    def visible(self, visible: bool) -> None:
        self._gizmo.visible = visible and bool(self.frame)

    async def _on_update(self, event: Any) -> None:
        if event.phase != 'update':  # of which one may come late
            self._dragged = event.phase == 'start'

    @property
    def held(self) -> bool:
        """Whether somebody drags it."""
        return self._dragged and self.visible

    @property
    def acts(self) -> bool:
        """Whether the session has to be told something, see `act`."""
        return self.held or bool(self._drawn)

    def act(self) -> None:
        """Draw the frame to where the handle is, or let it go.

        Raises:
            ContactSimError: it cannot be drawn.
        """
        drawn, self._drawn = self._drawn, self.frame if self.held else ''
        if drawn and drawn != self._drawn:
            self._session.drag(drawn, None)
        if self._drawn:
            self._session.drag(self._drawn, tuple((self._gizmo.position - self.offset).tolist()))

    def follow(self, robot: RobotModel, q: Array) -> None:
        """Be where the frame is at q (nq,), unless somebody drags it elsewhere."""
        if self.visible and not self._dragged:
            self._gizmo.position = self.offset + self._origin(robot, q)

    def _origin(self, robot: RobotModel, q: Array) -> Array:
        """Return the origin of the frame at q (nq,) [m], world, (3,)."""
        model = robot.pinocchio_model
        if model is not self._model:
            self._model, self._data = model, model.createData()
        frame = frame_called(model, self.frame)
        pin.forwardKinematics(model, self._data, q)
        return np.array((self._data.oMi[frame.parentJoint] * frame.placement).translation)
