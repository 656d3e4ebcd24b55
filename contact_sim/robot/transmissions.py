"""Gear ratios of a URDF: <mechanicalReduction>, and <mechanical_reduction> of ros2_control."""

from __future__ import annotations

import math
from collections.abc import Mapping
from xml.etree.ElementTree import Element

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.numbers import as_number

_TAGS = ('actuator/mechanicalReduction', 'joint/mechanicalReduction', 'joint/mechanical_reduction')
"""Where a transmission states its reduction: URDF, URDF of old, ros2_control."""


def gear_ratios(robot: Element, place: str) -> Mapping[str, float]:
    """Return the gear ratio of every joint whose transmission states one [-].

    The sign of a ratio, which says that the motor turns the other way, is left out: efforts and
    limits are those of the joint. A transmission of several joints has no ratio of one of them.

    Args:
        robot: the <robot> element.
        place: what to call the description in a message.

    Raises:
        RobotDescriptionError: a ratio that is not a finite number other than 0, or two of them.
    """
    ratios: dict[str, float] = {}
    for transmission in robot.iter('transmission'):
        names = [joint.get('name', '') for joint in transmission.iterfind('joint')]
        stated = [found for tag in _TAGS for found in transmission.iterfind(tag)]
        if len(names) != 1 or not stated:
            continue
        values = {_ratio(one, f'{place}: transmission of joint {names[0]!r}') for one in stated}
        values |= {ratios[name] for name in names if name in ratios}
        if len(values) > 1:
            listed = ' and '.join(f'{value:g}' for value in sorted(values))
            raise RobotDescriptionError(f'{place}: joint {names[0]!r} has gear ratios {listed}')
        ratios[names[0]] = values.pop()
    return ratios


def _ratio(element: Element, where: str) -> float:
    text = element.text or ''
    ratio = abs(as_number(text))
    if not (ratio > 0.0 and math.isfinite(ratio)):
        raise RobotDescriptionError(
            f'{where}: <{element.tag}> = {text.strip()!r}, expected a finite number other than 0'
        )
    return ratio
