"""~/support: which feet null_space holds, given while it runs.

One number per foot in the order of robot.feet, as on `foot_contacts`, or one per contact point in
the order of robot.contact_points: not 0 is held. It stays in force until the next message, or
until a parameter of the contact model is set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from contact_sim.contact_models.time_stepping.null_space import NullSpace
from contact_sim.robot.feet import points_called
from contact_sim.robot.parts import RobotPart
from contact_sim.ros.stepping.loop import Loop
from contact_sim.simulation.simulator import Simulator


class SupportCommand:
    """Gives sets of feet of one robot to null_space, between two steps.

    Args:
        sim: what is simulated.
        loop: who steps it.
        part: which robot; the feet of others stay as they were given, all held until they are.
    """

    def __init__(self, sim: Simulator, loop: Loop, part: RobotPart) -> None:
        self._sim, self._loop = sim, loop
        points = part.candidates[: len(part.robot.contact_points)]
        self._feet = tuple(part.called(foot.name) for foot in part.robot.feet)
        self._points = tuple(str(index) for index in points)
        self._own = frozenset(points.tolist())

    def take(self, held: Sequence[int]) -> str | None:
        """Hold the feet whose number is not 0; return why it was refused, or None."""
        if len(held) == len(self._feet):
            names = self._feet
        elif len(held) == len(self._points):
            names = self._points
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
        now = asdict(model.parameters)
        settings = now | {'support': 'given', 'feet': (*self._of_others(now), *feet)}
        if settings != now:
            self._sim.contact_model = NullSpace(**settings)  # type: ignore[assignment]

    def _of_others(self, parameters: Mapping[str, Any]) -> list[str]:
        """Return the feet of other robots that are held."""
        robot = self._sim.robot
        every = [foot.name for foot in robot.feet]
        held = parameters['feet'] if parameters['support'] == 'given' else every
        points, what = robot.contact_points, 'foot'
        return [
            name
            for name in held
            if not self._own.issuperset(points_called(what, name, robot.feet, points))
        ]
