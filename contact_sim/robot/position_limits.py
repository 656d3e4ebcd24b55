"""Limits of joint positions, and joints that follow others: what a URDF says of positions.

    lower ≤ Σ_i share_i · position_i ≤ upper

A joint limit has one share, 1. A <mimic> joint has two, 1 and −multiplier, and both bounds are its
offset: a bilateral row. In the step each is one interval row of the contact problem (theory 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.arguments import checked_fields
from contact_sim.errors import InvalidInput, RobotDescriptionError, UnknownName, of_type
from contact_sim.robot.numbers import number

Array = NDArray[np.float64]
MOST_JOINTS = 2
UNBOUNDED = 1e300
"""Bound from which Pinocchio means that there is none."""


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
    """Largest value [rad or m]; inf for none. Equal to `lower`: the value is held."""
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
        if not 0.0 <= self.restitution <= 1.0:
            raise InvalidInput(
                f'{where}: restitution = {self.restitution}: expected a number in [0, 1]'
            )

    @property
    def holds(self) -> bool:
        """Whether the value is held at one number."""
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
        # what is not in order is refused with all other numbers of the model
        if lower <= upper and (np.isfinite(lower) or np.isfinite(upper)):
            limits.append(PositionLimit((str(name),), lower, upper, restitution=restitution))
    return tuple(limits)


def described_limits(
    model: pin.Model, robot: Element, place: str
) -> tuple[tuple[PositionLimit, ...], tuple[str, ...]]:
    """Return what a URDF says of positions, and who ought to follow but moves on its own.

    A joint whose <limit> gives neither lower nor upper has no limits. Joints without a single
    coordinate (continuous ones) can neither follow nor be followed.

    Args:
        model: what Pinocchio made of it.
        robot: the <robot> element.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: a <mimic> of no other joint, or numbers that are none.
    """
    joints = list(robot.iterfind('joint'))
    silent = {joint.get('name') for joint in joints if _is_silent(joint.find('limit'))}
    limits = [limit for limit in joint_limits(model) if limit.joints[0] not in silent]
    single = {str(name) for name, j in zip(model.names, model.joints, strict=True) if j.nq == 1}
    names, alone = {joint.get('name', '') for joint in joints}, []
    for joint in joints:
        mimic, name = joint.find('mimic'), joint.get('name', '')
        if mimic is None or joint.get('type') == 'fixed':
            continue
        leader = mimic.get('joint', '')
        if leader not in names or leader == name:
            raise RobotDescriptionError(
                f'{place}: joint {name!r}: <mimic> joint = {leader!r}: expected another joint'
            )
        if {name, leader} <= single:
            limits.append(_following(mimic, name, f'{place}: joint {name!r}: <mimic>'))
        else:
            alone.append(f'joint {name!r} (of {leader!r})')
    return tuple(limits), tuple(alone)


def _is_silent(limit: Element | None) -> bool:
    return limit is not None and limit.get('lower') is None and limit.get('upper') is None


def _following(mimic: Element, name: str, where: str) -> PositionLimit:
    """Return the row q_name − multiplier q_leader = offset."""
    share = number(mimic, 'multiplier', where) if mimic.get('multiplier') is not None else 1.0
    offset = number(mimic, 'offset', where)
    if share == 0.0:
        return PositionLimit((name,), offset, offset)
    return PositionLimit((name, mimic.get('joint', '')), offset, offset, (1.0, -share))


def describe_limits(limits: Sequence[PositionLimit]) -> list[str]:
    """Return lines that say which joints stop where, and which follow others."""
    stops = [str(limit) for limit in limits if len(limit.joints) == 1]
    follows = [str(limit) for limit in limits if len(limit.joints) > 1]
    lines = [f'position limits: {"; ".join(stops)}' if stops else 'no joint has position limits']
    return [*lines, f'joints that follow others: {"; ".join(follows)}'] if follows else lines


def followed(model: pin.Model, limits: Sequence[PositionLimit], q: Array) -> Array:
    """Return a copy of `q` (nq,) in which joints that follow others, or are held, do so."""
    q, place = q.copy(), {n: j.idx_q for n, j in zip(model.names, model.joints, strict=True)}
    for _ in limits:  # joints may follow joints that follow
        for limit in limits:
            if limit.holds:
                shares = zip(limit.shares[1:], limit.joints[1:], strict=True)
                led = sum(share * q[place[joint]] for share, joint in shares)
                q[place[limit.joints[0]]] = (limit.lower - led) / limit.shares[0]
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
