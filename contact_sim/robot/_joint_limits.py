"""Limits of joint positions, or of a weighted sum of two.

    lower ≤ Σ_i share_i · position_i ≤ upper

A joint limit has one share, 1. In the step each is one interval row of the contact problem (theory
4.3). A sum with equal limits is a constraint, `JointCoupling`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked_fields
from contact_sim.errors import InvalidInput, UnknownName, of_type

MOST_JOINTS = 2
UNBOUNDED = 1e300
"""From here on a bound of Pinocchio is none."""


@checked_fields
@dataclass(frozen=True)
class PositionLimit:
    """Bounds of the position of a joint, or of a weighted sum of two.

    Raises:
        InvalidInput: not one or two joints, twice the same, shares of another number, zero or not
            finite, bounds that are no numbers or leave no position, restitution outside [0, 1].
    """

    joints: tuple[str, ...]
    """Names of one or two joints with one degree of freedom."""
    lower: float
    """Least value [rad or m]; −inf for none."""
    upper: float
    """Largest value [rad or m]; inf for none. Equal to `lower`: the joint is locked."""
    shares: tuple[float, ...] = (1.0,)
    """Share of each joint in the value [-]."""
    restitution: float = 0.0
    """Newton's e of a joint that hits its limit [-]."""

    def __post_init__(self) -> None:
        where = f'PositionLimit of {", ".join(self.joints) or "no joint"}'
        if not 1 <= len(self.joints) <= MOST_JOINTS or len(set(self.joints)) < len(self.joints):
            raise InvalidInput(f'{where}: expected one joint, or two different ones')
        if len(self.shares) != len(self.joints):
            raise InvalidInput(f'{where}: {len(self.shares)} shares for {len(self.joints)} joints')
        if not all(np.isfinite(share) and share != 0.0 for share in self.shares):
            raise InvalidInput(f'{where}: shares = {self.shares}: expected finite, not 0')
        if not self.lower <= self.upper or self.lower == np.inf or self.upper == -np.inf:
            raise InvalidInput(
                f'{where}: lower = {self.lower}, upper = {self.upper}: expected lower <= upper'
            )
        if self.holds and len(self.joints) > 1:
            raise InvalidInput(
                f'{where}: lower = upper = {self.lower}: expected room; JointCoupling of '
                'contact_sim.constraints holds one joint to another'
            )
        if not 0.0 <= self.restitution <= 1.0:
            raise InvalidInput(
                f'{where}: restitution = {self.restitution}: expected a number in [0, 1]'
            )

    @property
    def holds(self) -> bool:
        """Whether the joint is locked."""
        return self.lower == self.upper

    def __str__(self) -> str:
        value = ' + '.join(
            joint if share == 1.0 else f'{share:g} * {joint}'
            for joint, share in zip(self.joints, self.shares, strict=True)
        )
        if self.holds:
            return f'{value} = {self.lower:g}'
        return f'{self.lower:g} <= {value} <= {self.upper:g}'


def joint_limits(model: pin.Model, restitution: float = 0.0) -> tuple[PositionLimit, ...]:
    """Return the position limits of `model`, of the joints with one coordinate that have any."""
    limits = []
    for name, joint in list(zip(model.names, model.joints, strict=True))[1:]:
        if joint.nq != 1 or joint.nv != 1:
            continue
        bounds = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        lower, upper = (
            float(bound) if abs(bound) < UNBOUNDED else sign * np.inf
            for bound, sign in zip(bounds, (-1.0, 1.0), strict=True)
        )
        # lower > upper is refused later, with all other numbers of the model
        if lower <= upper and (np.isfinite(lower) or np.isfinite(upper)):
            limits.append(PositionLimit((str(name),), lower, upper, restitution=restitution))
    return tuple(limits)


def described_limits(model: pin.Model, robot: Element) -> tuple[PositionLimit, ...]:
    """Return the position limits of a URDF.

    A joint whose <limit> gives neither lower nor upper has no limits.

    Args:
        model: its Pinocchio model.
        robot: the <robot> element.
    """
    joints = robot.iterfind('joint')
    unlimited = {joint.get('name') for joint in joints if _has_no_range(joint.find('limit'))}
    return tuple(limit for limit in joint_limits(model) if limit.joints[0] not in unlimited)


def _has_no_range(limit: Element | None) -> bool:
    return limit is not None and limit.get('lower') is None and limit.get('upper') is None


def describe_limits(limits: Sequence[PositionLimit]) -> str:
    """Return the limits as one line of text."""
    stops = '; '.join(map(str, limits))
    return f'position limits: {stops}' if stops else 'no joint has position limits'


def with_locked_joints(model: pin.Model, limits: Sequence[PositionLimit], q: Array) -> Array:
    """Return a copy of `q` (nq,) with the joints of equal limits at these."""
    q = q.copy()
    for limit in limits:
        if limit.holds:
            joint = model.joints[model.getJointId(limit.joints[0])]
            q[joint.idx_q] = limit.lower / limit.shares[0]
    return q


def check_position_limits(model: pin.Model, limits: tuple[PositionLimit, ...]) -> None:
    """Check that the joints of `limits` exist and have one coordinate each.

    Raises:
        UnknownName: a joint that the model does not have.
        InvalidInput: one with several coordinates.
    """
    known = list(model.names)[1:]
    for limit in limits:
        for name in of_type('position limit', limit, PositionLimit).joints:
            if name not in known:
                raise UnknownName('joint of a position limit:', name, known)
            joint = model.joints[model.getJointId(name)]
            if joint.nq != 1 or joint.nv != 1:
                raise InvalidInput(
                    f'position limit of joint {name!r}: it has {joint.nq} coordinates, expected '
                    'a joint with one'
                )
