"""Regions of the ground with a friction and restitution of their own."""

from __future__ import annotations

from dataclasses import dataclass

from contact_sim._validation import checked
from contact_sim.errors import InvalidInput
from contact_sim.parameters import Parameters, parameter


@dataclass(frozen=True)
class Region(Parameters):
    """A rectangle, along the axes, in which the ground has its own friction or restitution.

    Raises:
        InvalidInput: a range that is empty or not finite, negative friction, restitution outside
            [0, 1].
    """

    x_range: tuple[float, float] = parameter((-1.0, 1.0), 'm', 'extent along x')
    y_range: tuple[float, float] = parameter((-1.0, 1.0), 'm', 'extent along y')
    friction: float | None = parameter(
        None, '-', 'Coulomb friction coefficient; none: as everywhere', at_least=0.0
    )
    restitution: float | None = parameter(
        None, '-', 'coefficient of restitution; none: as everywhere', at_least=0.0, at_most=1.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ('x_range', 'y_range'):
            low, high = getattr(self, name)
            if not low < high:
                raise InvalidInput(
                    f'Region.{name} = ({low:g}, {high:g}) m: expected a smaller, then a larger one'
                )

    @checked
    def contains(self, x: float, y: float) -> bool:
        """Return whether a point [m] lies in the region, its low sides included."""
        (x_low, x_high), (y_low, y_high) = self.x_range, self.y_range
        return x_low <= x < x_high and y_low <= y < y_high
