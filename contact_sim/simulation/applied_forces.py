"""Joint efforts and external wrenches of one step, checked at the edge."""

from __future__ import annotations

from collections.abc import Mapping

import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim.collision.candidates import leaf_dof
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.time_stepping.stepper import apply_commands
from contact_sim.dynamics.applied import add_wrench
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import real_array
from contact_sim.robot.frames import frame_called
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.checks import checked_wrench


class AppliedForces:
    """Writes efforts and wrenches into the workspace of a simulation."""

    def __init__(self, robot: RobotModel, workspace: Workspace) -> None:
        self._robot, self._workspace = robot, workspace
        self._command, self._external = workspace.command, workspace.external
        self._shape = workspace.command.shape
        self._pushed = bool(workspace.external.any())  # passed on from other arrays

    def set(self, effort: ArrayLike, wrenches: Mapping[str, ArrayLike] | None) -> None:
        """Take joint efforts (n_joints,) [N m] and wrenches by frame, (6,) each.

        Efforts that are not finite are refused by the step itself, see `check`.

        Raises:
            InvalidInput: efforts of another shape, a wrench that is not 6 finite numbers.
            UnknownName: a frame that does not exist.
        """
        command = real_array('effort', effort)
        if command.shape != self._shape:
            raise InvalidInput(f'effort: shape {command.shape}, expected {self._shape}')
        self._command[:] = command
        if wrenches is not None and not isinstance(wrenches, Mapping):
            raise InvalidInput(
                f'external_wrenches = {shown(wrenches)}: expected wrenches by frame'
            )
        if wrenches:
            self._push(wrenches)
        elif self._pushed:
            self.release()

    def release(self) -> None:
        """Take the wrenches away."""
        self._external[:], self._pushed = 0.0, False

    def check(self) -> None:
        """Fill the saturated efforts and τ.

        Raises:
            InvalidInput: an effort that is not finite.
        """
        bad = apply_commands(*self._workspace.arrays)
        if bad:
            raise self.refusal(bad)

    def refusal(self, status: int) -> InvalidInput:
        """Return the error for a step that was refused with `status` > 0."""
        name, value = self._robot.joint_names[status - 1], self._command[status - 1]
        return InvalidInput(f'effort of joint {name!r} = {value} N m: must be finite')

    def _push(self, wrenches: Mapping[str, ArrayLike]) -> None:
        """Check all external wrenches, then make them the external force of the step."""
        work, tree = self._workspace, self._workspace.tree
        checked = [
            (self.frame(name), checked_wrench(name, value)) for name, value in wrenches.items()
        ]
        self._external[:], self._pushed = 0.0, True
        for frame, wrench in checked:
            body = tree.body_of_joint[frame.parentJoint]
            add_wrench(
                wrench, tree.axes[body].T @ frame.placement.translation, work.pose[body],
                (work.columns, work.origin), leaf_dof(work.model.joints[frame.parentJoint]),
                work.dof_parent, self._external,
            )  # fmt: skip

    def frame(self, name: str) -> pin.Frame:
        """Return a frame of the robot.

        Raises:
            UnknownName: a frame that does not exist.
        """
        return frame_called(self._workspace.model, name)

    def frame_placement(self, name: str) -> pin.SE3:
        """Return the placement of a frame in world at the current configuration.

        Raises:
            UnknownName: a frame that does not exist.
        """
        frame, tree = self.frame(name), self._workspace.tree
        body = tree.body_of_joint[frame.parentJoint]
        pose = self._workspace.pose[body]
        axes = pose[:9].reshape(3, 3).T @ tree.axes[body].T
        return pin.SE3(axes, pose[9:].copy()) * frame.placement
