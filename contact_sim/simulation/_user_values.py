"""Values as users give them: robot, efforts, wrenches, coefficients of the contacts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import is_finite, real_array, within
from contact_sim.arrays._fields import Sizes
from contact_sim.collision._terrain import Terrain
from contact_sim.errors import InvalidInput, shortened, shown
from contact_sim.robot._coordinates import find_frame
from contact_sim.robot._model import RobotModel
from contact_sim.step._workspace import Workspace

# --- Robot, efforts and wrenches


def checked_robot(robot: object) -> RobotModel:
    """Return the robot, or raise InvalidInput if it is none."""
    if not isinstance(robot, RobotModel):
        source = shown(robot) if isinstance(robot, str) else 'name or path'
        raise InvalidInput(
            f'robot = {shown(robot)}: expected a RobotModel, from contact_sim.load_robot({source})'
        )
    return robot


def effort_form(robot: RobotModel) -> str:
    """Return what efforts have to be, in words."""
    names = robot.joint_names
    listed = shortened(', '.join(names), 100)
    return (
        f'expected {len(names)} numbers [N m] in the order of robot.joint_names ({listed}); '
        'from a dict: [efforts[name] for name in robot.joint_names]'
    )


def checked_wrenches(
    model: pin.Model, wrenches: Mapping[str, ArrayLike]
) -> list[tuple[pin.Frame, Array]]:
    """Return the frames and the forces and torques (6,) on them, or raise InvalidInput."""
    if not isinstance(wrenches, Mapping):
        raise InvalidInput(f'external_wrenches = {shown(wrenches)}: expected wrenches by frame')
    pushes = []
    for name, value in wrenches.items():
        frame = find_frame(model, name)
        wrench = np.array(real_array(f'external wrench on {name!r}', value))
        if wrench.shape != (6,) or not is_finite(wrench):
            raise InvalidInput(
                f'external wrench on {shown(name)} = {shown(value)}: expected 6 finite numbers'
            )
        pushes.append((frame, wrench))
    return pushes


# --- Coefficients of the contacts, also on another ground

MOMENT_COEFFICIENTS = ('torsional_friction', 'rolling_friction')


def per_contact(
    name: str, value: float | ArrayLike, sizes: Sizes, largest: float = np.inf
) -> Array:
    """Return one number in [0, largest] per contact, shape (nc,), or raise InvalidInput.

    `value` is one number, one per contact or one per contact point.
    """
    nc, points = sizes.nc, sizes.n_candidates
    lengths = f'{nc}' if nc == points else f'{points} (per contact point) or {nc} (per contact)'
    try:
        numbers = real_array(name, value)
    except InvalidInput as error:
        raise InvalidInput(
            f'{name} = {shown(value)}: expected one number, such as 0.8, or a list of {lengths} '
            'in the order of robot.contact_points'
        ) from error
    try:
        full = np.broadcast_to(over_features(numbers, sizes), (nc,))
    except ValueError as error:
        raise InvalidInput(f'{name} = {shown(value)}: expected one number or {lengths}') from error
    within(name, value, largest)
    return full


def over_ground(name: str, value: float | ArrayLike, sizes: Sizes) -> Array:
    """Return one number >= 0 per contact with the ground, shape (n_ground,), as `per_contact`."""
    return per_contact(name, value, sizes)[: sizes.n_ground]


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


def on_ground(work: Workspace, ground: Terrain) -> Workspace:
    """Return a workspace for another ground; contacts get the coefficients of their points."""
    other = work.on(ground)
    before, now = work.sizes, other.sizes
    fields = {'friction': 'default_friction', 'restitution': 'default_restitution'}
    if work.has_moments:
        fields |= {name: name for name in MOMENT_COEFFICIENTS}
    for name, field in fields.items():
        numbers = getattr(work, field)
        if before.nc != now.nc:
            with_ground, between = np.split(numbers, [before.n_ground])
            per_point = with_ground.reshape(before.n_candidates, -1)
            if (per_point != per_point[:, :1]).any():
                raise InvalidInput(
                    f'{name} is given for each of {before.features} contacts of a contact point, '
                    f'on the new ground there are {now.features}: give it per contact point first'
                )
            numbers = np.concatenate([np.repeat(per_point[:, 0], now.features), between])
        getattr(other, field)[:] = numbers
    return other
