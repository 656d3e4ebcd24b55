"""Constraints in words that JSON and YAML have, and back: recordings and the node's configuration.

{'kind': 'loop_closure', 'frame': 'rod', 'other': 'knee', 'stabilisation': {'alpha': 10.0}}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.robot.constraints import (
    Constraint,
    FrameAnchor,
    Holonomic,
    JointCoupling,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
)
from contact_sim.robot.stabilisation import Baumgarte

KINDS: dict[str, type[Constraint]] = {
    kind.kind: kind
    for kind in (PointAnchor, FrameAnchor, LoopClosure, JointLock, JointCoupling, JointVelocity)
}
"""Those that can be said in words."""


def in_words(constraint: Constraint) -> dict[str, Any]:
    """Return what a constraint is; without what is as by default.

    Raises:
        InvalidInput: a function h(q) has no words.
    """
    if isinstance(constraint, Holonomic):
        raise InvalidInput(
            f'constraint {constraint.name!r} is a Python function: it can be neither recorded nor '
            'configured'
        )
    said: dict[str, Any] = {'kind': constraint.kind}
    for field in dataclasses.fields(constraint):
        value = getattr(constraint, field.name)
        if field.name == 'stabilisation':
            if isinstance(value, Baumgarte):
                said[field.name] = {'kp': value.kp, 'kd': value.kd}
        elif field.default is dataclasses.MISSING or value != field.default:
            said[field.name] = list(value) if isinstance(value, tuple) else value
    return said


def from_words(said: Any) -> Constraint:
    """Return the constraint that `in_words` described.

    Raises:
        UnknownName: a kind or a field that does not exist.
        InvalidInput: no mapping, a field that is missing, or a value that it does not take.
    """
    if not isinstance(said, Mapping):
        raise InvalidInput(
            f'constraint {shown(said)}: expected a mapping with kind, frame or joint, ...'
        )
    fields = dict(said)
    kind = fields.pop('kind', None)
    if kind not in KINDS:
        raise UnknownName('kind of constraint', kind, KINDS)
    known = {field.name for field in dataclasses.fields(KINDS[kind])}
    for name in fields:
        if name not in known:
            raise UnknownName(f'field of {kind}', name, known)
    feedback = fields.get('stabilisation')
    if isinstance(feedback, Mapping):
        try:
            fields['stabilisation'] = Baumgarte(**feedback)
        except TypeError as error:
            raise InvalidInput(
                f'{kind}: stabilisation = {shown(dict(feedback))}: expected alpha, or kp and kd'
            ) from error
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    try:
        return KINDS[kind](**fields)
    except TypeError as error:
        raise InvalidInput(f'constraint {shown(dict(said))}: {error}') from error
