"""Hybrid: rigid contact in continuous time, event by event.

Between events the contacts hold their modes (open, stick, slip) and the constrained motion is
integrated with a Runge-Kutta scheme of 4th order; touch-down, lift-off, the start and the end of
a slip are located, impacts are maps of the velocity, and after each event the modes are chosen by
the contact problem at acceleration level. theory 2.6 to 2.8, T8, T12 to T15.

Efforts and external forces are constant over a step. Normal drift is taken out at a rate of
`stabilisation`; friction needs no anchor, since the slip velocity is held at zero.

What cannot be answered so, a Painlevé configuration or a step with too many events, is answered
by one step of `ncp`, and the status says which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.hybrid.impacts import IMPACT_LAWS
from contact_sim.contact_models.hybrid.stepper import EventDriven, EventSettings
from contact_sim.contact_models.protocol import Stepper
from contact_sim.contact_models.time_stepping.ncp import Ncp
from contact_sim.contact_models.time_stepping.stepper import TimeStepping
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter


@dataclass(frozen=True)
class HybridParameters(Parameters):
    """Impact map and numerics of the event-driven model."""

    impact: str = parameter(
        'newton', '', 'what an impact does to the velocity', choices=IMPACT_LAWS, live=True
    )
    energy_guard: bool = parameter(
        True, '', 'reduce the restitution of newton until no energy is created', live=True
    )
    max_substep: float = parameter(
        1e-3, 's', 'longest Runge-Kutta step', at_least=1e-5, at_most=0.01, live=True
    )
    event_tolerance: float = parameter(
        1e-12, 's', 'how closely events are located', at_least=1e-15, at_most=1e-6, live=True
    )
    max_events: int = parameter(
        50, '-', 'events in one step before a time-stepping step takes over', at_least=1,
        at_most=100000, live=True,
    )  # fmt: skip
    stiction_speed: float = parameter(
        1e-8, 'm/s', 'speed up to which a contact or joint counts as at rest', at_least=1e-14,
        at_most=1e-3, live=True,
    )  # fmt: skip
    stabilisation: float = parameter(
        50.0, '1/s', 'rate at which drift of held contacts is taken out', at_least=0.0,
        at_most=100.0, live=True,
    )  # fmt: skip


class Hybrid:
    """Event-driven rigid contact.

    Raises:
        InvalidInput: a parameter outside its bounds.
    """

    name: ClassVar[str] = 'hybrid'
    parameter_class: ClassVar[type[Parameters]] = HybridParameters

    def __init__(self, **parameters: float | str | bool) -> None:
        self.parameters: HybridParameters = HybridParameters(**parameters)  # type: ignore[arg-type]

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the event-driven stepper, with a time-stepping step of ncp to fall back on.

        Raises:
            InvalidInput: a row of the robot that is bounded on one side only.
        """
        refuse_half_lines(workspace)
        p, ncp, h = self.parameters, Ncp(), float(workspace.data.time_step[0])
        settings = EventSettings(
            IMPACT_LAWS.index(p.impact), p.energy_guard, p.max_substep, p.event_tolerance,
            p.max_events, p.stiction_speed, p.stabilisation,
        )  # fmt: skip
        fallback = TimeStepping(workspace, ncp.compiled.advance, ncp.settings(h))
        return EventDriven(workspace, fallback, settings)


def refuse_half_lines(workspace: Workspace) -> None:
    """Raise InvalidInput where the force of an interval row is bounded on one side only.

    Such a row opens and closes like a contact, for which there is no guard.
    """
    lower, upper = workspace.interval_lower, workspace.interval_upper
    bad = np.flatnonzero(np.isfinite(lower) != np.isfinite(upper))
    if len(bad):
        k = int(bad[0])
        raise InvalidInput(
            f'contact model hybrid: interval row {k} (dof {workspace.interval_dof[k]}) has its '
            f'force in [{lower[k]:g}, {upper[k]:g}]; hybrid takes rows with two bounds or none; '
            'choose a time-stepping model'
        )
