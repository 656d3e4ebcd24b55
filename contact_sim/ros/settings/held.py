"""Parameters of bilateral constraints; imports no ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contact_sim.constraints.words import KINDS
from contact_sim.parameters import Parameters, parameter

NOT_SET = -1.0
"""Of feedback, which is at least 0: none."""
FARTHEST, STIFFEST = 1e5, 1e12
"""Bounds of places and speeds [m, rad, m/s, rad/s], and of feedback [1/s²]."""


@dataclass(frozen=True)
class ConstraintNames(Parameters):
    """Which bilateral constraints there are."""

    names: tuple[str, ...] = parameter(
        (), '', 'bilateral constraints, each described by constraints.<name>.*, see '
        'docs/constraints.md',
    )  # fmt: skip


def _named(meaning: str) -> Any:
    return parameter('', '', meaning)


def _place(meaning: str) -> Any:
    return parameter((), 'm', meaning, at_least=-FARTHEST, at_most=FARTHEST, live=True)


def _number(default: float, unit: str, meaning: str) -> Any:
    return parameter(default, unit, meaning, at_least=-FARTHEST, at_most=FARTHEST, live=True)


def _feedback(unit: str, meaning: str, largest: float) -> Any:
    said = f'{meaning}; -1: none'
    return parameter(NOT_SET, unit, said, at_least=NOT_SET, at_most=largest, live=True)


@dataclass(frozen=True)
class ConstraintParameters(Parameters):
    """One of the constraints.

    Each kind takes what its class in `contact_sim.constraints` has. Without `alpha`, or `kp` and
    `kd`, positions are projected.
    """

    kind: str = _named('one of ' + ', '.join(KINDS))
    enabled: bool = parameter(True, '', 'whether it holds; false lets go', live=True)
    frame: str = _named('frame that is held')
    other: str = _named('loop_closure: frame that it is held to')
    joint: str = _named('joint that is held or driven')
    leader: str = _named('joint_coupling: joint that it follows')
    at: tuple[float, ...] = _place(
        'where it holds: x y z in world, for frame_anchor and quaternion x y z w, for joint_lock '
        'a position [rad or m]; empty: where it is when it begins to hold, and at resets'
    )
    point: tuple[float, ...] = _place('point that is held, in the axes of frame; empty: 0 0 0')
    other_point: tuple[float, ...] = _place(
        'loop_closure: where it is held, in the axes of other; empty: 0 0 0'
    )
    full: bool = parameter(False, '', 'loop_closure: frames do not turn against each other')
    ratio: float = _number(1.0, '-', 'joint_coupling: position = ratio * leader + offset')
    offset: float = _number(0.0, 'rad', 'joint_coupling')
    velocity: float = _number(0.0, 'rad/s', 'joint_velocity: speed [rad/s or m/s]')
    alpha: float = _feedback(
        '1/s', 'rate at which errors go to 0, for kp = alpha^2, kd = 2 alpha', FARTHEST
    )
    kp: float = _feedback('1/s^2', 'feedback of the error of the position, with kd', STIFFEST)
    kd: float = _feedback('1/s', 'feedback of its rate, with kp', STIFFEST)
