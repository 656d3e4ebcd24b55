"""~/support: which feet null_space holds, given while it runs.

One number per foot in the order of robot.feet, as on `foot_contacts`, or one per contact point in
the order of robot.contact_points: not 0 is held. It stays in force until the next message, or
until a parameter of the contact model is set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from contact_sim.contact_models.time_stepping.null_space import NullSpace
from contact_sim.ros.stepping.loop import Loop
from contact_sim.simulation.simulator import Simulator


class SupportCommand:
    """Gives sets of feet to null_space, between two steps."""

    def __init__(self, sim: Simulator, loop: Loop) -> None:
        self._sim, self._loop = sim, loop
        self._feet = tuple(foot.name for foot in sim.robot.feet)
        self._points = len(sim.robot.contact_points)

    def take(self, held: Sequence[int]) -> str | None:
        """Hold the feet whose number is not 0; return why it was refused, or None."""
        if len(held) == len(self._feet):
            names = self._feet
        elif len(held) == self._points:
            names = tuple(str(index) for index in range(self._points))
        else:
            return (
                f'~/support: {len(held)} numbers, expected one for each of the '
                f'{len(self._feet)} feet {", ".join(self._feet)}'
            )
        feet = tuple(name for name, flag in zip(names, held, strict=True) if flag)
        refusals: list[str] = []
        self._loop.between_steps(lambda: self._give(feet, refusals))
        return refusals[0] if refusals else None

    def _give(self, feet: tuple[str, ...], refusals: list[str]) -> None:
        model = self._sim.model
        if not isinstance(model, NullSpace):
            refusals.append(
                f'~/support: the contact model is {model.name}; only null_space is given feet'
            )
            return
        settings = asdict(model.parameters) | {'support': 'given', 'feet': feet}
        if settings != asdict(model.parameters):
            self._sim.contact_model = NullSpace(**settings)  # type: ignore[assignment]
