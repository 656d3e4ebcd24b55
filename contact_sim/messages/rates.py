"""Rates of messages, which divide the step rate; imports no ROS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, declared_parameters, parameter

RATE_TOLERANCE = 1e-5
"""Relative error of a rate that still counts as exact: six digits are enough to type."""
SLOWEST, FASTEST = 1e-6, 1e6
"""Bounds of publish rates [Hz]; 0 besides."""


def steps_between(name: str, rate: float, time_step: float) -> int:
    """Return the number of steps between two messages, 0 for never.

    Raises:
        InvalidInput: a rate that does not divide the step rate; names the nearest that do. A rate
            above 0 but below SLOWEST.
    """
    if rate == 0.0:
        return 0
    if not rate >= SLOWEST:
        raise InvalidInput(f'{name} = {rate:g} Hz: expected 0, or at least {SLOWEST:g} Hz')
    steps = 1.0 / (rate * time_step)
    if steps > 1.0 - RATE_TOLERANCE and abs(steps - round(steps)) <= RATE_TOLERANCE * steps:
        return round(steps)
    fewer = int(steps)
    allowed = (fewer + 1, fewer) if fewer else (1,)
    near = ' and '.join(f'{1.0 / (n * time_step):.6g}' for n in allowed)
    raise InvalidInput(
        f'{name} = {rate:g} Hz: must divide the step rate {1.0 / time_step:g} Hz; '
        f'nearest: {near} Hz'
    )


def _rate(default: float, meaning: str) -> Any:
    return parameter(default, 'Hz', meaning, at_least=0.0, at_most=FASTEST, live=True)


@dataclass(frozen=True)
class PublishRateParameters(Parameters):
    """Rates in simulated time; each must divide the step rate. 0: not published."""

    joint_states: float = _rate(250.0, 'joint_states')
    odom: float = _rate(250.0, 'odom and TF')
    imu: float = _rate(250.0, 'imu/data')
    wrenches: float = _rate(125.0, 'contacts/<foot>/wrench, foot_contacts, constraints/<name>/*')
    markers: float = _rate(25.0, '~/contact_markers')
    solver_state: float = _rate(25.0, '~/solver_state')
    shadow: float = _rate(25.0, '~/shadow, see contact.shadow')


def publish_periods(rates: PublishRateParameters, time_step: float) -> dict[str, int]:
    """Return the steps between two messages for every rate."""
    return {
        field.name: steps_between(
            f'publish_rate.{field.name}', getattr(rates, field.name), time_step
        )
        for field in declared_parameters(PublishRateParameters)  # type: ignore[arg-type]
    }
