"""Checks at the edge of the simulation: what users hand in, and what they are handed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import LARGEST, is_finite, real_array, within
from contact_sim.arrays._fields import Sizes
from contact_sim.collision._detection import leaf_dof
from contact_sim.contact_models._base import apply_commands
from contact_sim.dynamics._forces import add_wrench
from contact_sim.errors import InvalidInput, shown
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.step._workspace import Workspace


def checked_robot(robot: object) -> RobotModel:
    """Return the robot, or raise InvalidInput if it is none."""
    if not isinstance(robot, RobotModel):
        raise InvalidInput(f'robot = {shown(robot)}: expected a RobotModel; see load_robot')
    return robot


def checked_wrench(name: str, value: ArrayLike) -> Array:
    """Return a checked wrench, shape (6,)."""
    wrench = np.array(real_array(f'external wrench on {name!r}', value))
    if wrench.shape != (6,) or not is_finite(wrench):
        raise InvalidInput(
            f'external wrench on {shown(name)} = {shown(value)}: expected 6 finite numbers'
        )
    return wrench


def per_contact(
    name: str, value: float | ArrayLike, sizes: Sizes, largest: float = np.inf
) -> Array:
    """Return one number in [0, largest] per contact, shape (nc,), or raise InvalidInput.

    `value` is one number, one per contact or one per contact point, which holds for all contacts
    that it has with the features of the ground.
    """
    nc, points = sizes.nc, sizes.n_candidates
    numbers = real_array(name, value)
    try:
        full = np.broadcast_to(over_features(numbers, sizes), (nc,))
    except ValueError as error:
        lengths = (
            f'{nc}' if nc == points else f'{points} (per contact point) or {nc} (per contact)'
        )
        raise InvalidInput(f'{name} = {shown(value)}: expected one number or {lengths}') from error
    within(name, value, largest)
    return full


def over_features(numbers: Array, sizes: Sizes) -> Array:
    """Repeat numbers per contact point, the last axis, for its contacts; keep all others.

    Contacts between bodies get the largest of numbers per contact point, or per contact with the
    ground.
    """
    if numbers.ndim == 0 or numbers.shape[-1] not in (sizes.n_candidates, sizes.n_ground):
        return numbers
    if numbers.shape[-1] != sizes.n_ground:
        numbers = np.repeat(numbers, sizes.features, axis=-1)
    if not sizes.n_pair_slots or not sizes.n_ground:
        return numbers
    between = np.repeat(numbers.max(axis=-1, keepdims=True), sizes.n_pair_slots, axis=-1)
    return np.concatenate([numbers, between], axis=-1)


def per_world(
    name: str,
    value: float | ArrayLike,
    n: int,
    length: int,
    largest: float = np.inf,
    least: float = 0.0,
) -> Array:
    """Return numbers in [least, largest], one row per world, shape (n, length).

    Raises:
        InvalidInput: a shape that is not that of one number, (length,), (n, 1) or (n, length);
            values outside the bounds or not finite.
    """
    numbers = real_array(name, value)
    allowed = ((), (length,), (n, 1), (n, length))
    if numbers.shape not in allowed:
        raise InvalidInput(
            f'{name}: shape {numbers.shape}, expected one number, ({length},), ({n}, 1) or '
            f'({n}, {length})'
        )
    within = (np.abs(numbers) <= LARGEST) & (numbers >= least) & (numbers <= largest)
    if not within.all():
        worst = numbers[~within].flat[0]
        raise InvalidInput(f'{name}: {worst} is not a finite value in [{least:g}, {largest:g}]')
    return np.broadcast_to(numbers, (n, length))


def per_world_contact(
    name: str, value: float | ArrayLike, n: int, sizes: Sizes, largest: float = np.inf
) -> Array:
    """Return `per_world` of numbers per contact, shape (n, nc), or given per contact point."""
    return per_world(name, over_features(real_array(name, value), sizes), n, sizes.nc, largest)


# --- Joint efforts and external wrenches of one step, checked at the edge.


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
        return find_frame(self._workspace.model, name)

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
