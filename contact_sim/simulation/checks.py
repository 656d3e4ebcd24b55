"""Checks at the edge of the simulation: what users hand in, and what they are handed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arrays.fields import Sizes
from contact_sim.errors import InvalidInput, shown
from contact_sim.numbers import LARGEST, is_finite, real_array, within
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]


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
