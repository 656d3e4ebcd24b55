"""Numbers in the attributes of a URDF, checked."""

from __future__ import annotations

import math
import re
from xml.etree.ElementTree import Element

from contact_sim.errors import RobotDescriptionError

_NUMBER = re.compile(r'(?ai)[+-]?(inf|infinity|(\d+\.?\d*|\.\d+)(e[+-]?\d+)?)')
"""What is a number to everybody: Python alone knows 1_0 and digits of other scripts."""


def as_number(text: str) -> float:
    """Return the number in `text`, blanks around it passed over; NaN where it is none."""
    return float(text) if _NUMBER.fullmatch(text.strip()) else math.nan


def number(
    element: Element,
    key: str,
    where: str,
    *,
    at_least: float = -math.inf,
    infinite: bool = False,
    required: bool = False,
    unit: str = '',
) -> float:
    """Return an attribute of `element`; 0 where it is missing and not required.

    Args:
        element: an element of a URDF.
        key: name of the attribute.
        where: how a message begins, e.g. "file: joint 'knee': <limit>".
        at_least: smallest number allowed.
        infinite: whether plus and minus infinity are allowed.
        required: whether the attribute has to be there.
        unit: what a message puts behind the value.

    Raises:
        RobotDescriptionError: missing, not a number, or not allowed.
    """
    text = element.get(key)
    if text is None and not required:
        return 0.0
    value = as_number(text or '')
    if value >= at_least and (infinite or math.isfinite(value)):
        return value
    what = 'a number' if infinite else 'a finite number'
    bound = f' of at least {at_least:g}' if at_least > -math.inf else ''
    raise RobotDescriptionError(f'{where} {key} = {text!r}{unit}, expected {what}{bound}')


def vector(
    element: Element | None, key: str, default: str, where: str
) -> tuple[float, float, float]:
    """Return an attribute that holds three numbers; `default` where it is missing.

    Raises:
        RobotDescriptionError: not three finite numbers.
    """
    text = element.get(key, default) if element is not None else default
    values = [as_number(part) for part in text.split()]
    if len(values) != 3 or not all(map(math.isfinite, values)):
        raise RobotDescriptionError(f'{where} {key} = {text!r}, expected three finite numbers')
    return values[0], values[1], values[2]
