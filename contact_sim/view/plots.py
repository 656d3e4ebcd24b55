"""Running plots: what the judge says of the steps that are shown, and what they cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import viser
from viser import uplot

from contact_sim.simulation.report import StepReport

KEPT, SAMPLING = 300, 0.1
"""Points of a plot, and wall seconds between two of them."""
SPAN = KEPT * SAMPLING
"""Of the time axis, which stays: viser loses one that moves while the browser is slow [s]."""
LEAST = 1e-18
"""What is shown in place of zero where powers of ten are."""
COLOURS = ('#d9480f', '#1c7ed6', '#2f9e44', '#ae3ec9')
HEIGHT = 150
"""Of a plot [pixels]."""


@dataclass(frozen=True)
class Plot:
    """One plot over the last wall seconds."""

    title: str
    series: tuple[str, ...]
    """Names of numbers, with their units."""
    powers: bool = False
    """Whether the decimal logarithm is shown."""


PLOTS = (
    Plot('residuals, powers of 10', ('ncp [N s]', 'momentum [N s]', 'penetration [m]'), True),
    Plot('energy of a step [J]', ('change', 'actuation', 'contact', 'integration')),
    Plot('time of a step [µs]', ('step',)),
    Plot('simulated over wall time', ('real-time factor',)),
)


def judged(report: StepReport) -> dict[str, float]:
    """Return what the judge says of a step, by the names of PLOTS."""
    residuals = report.residuals
    energy = residuals.energy_balance
    return {
        'ncp [N s]': residuals.ncp,
        'momentum [N s]': residuals.momentum,
        'penetration [m]': residuals.penetration,
        'change': energy.change,
        'actuation': energy.actuation,
        'contact': energy.contact,
        'integration': energy.integration,
    }


class Plots:
    """Plots in the panel of a page, made where the panel is at the time.

    Args:
        gui: of the page.
        plots: which.
    """

    def __init__(self, gui: viser.GuiApi, plots: tuple[Plot, ...] = PLOTS) -> None:
        self._plots = plots
        names = [name for plot in plots for name in plot.series]
        self._values: dict[str, deque[float]] = {name: deque(maxlen=KEPT) for name in names}
        self._handles = [self._made(gui, plot) for plot in plots]

    def add(self, numbers: Mapping[str, float]) -> None:
        """Add a point, by the names of the series; all others are a little older from then on."""
        for name, kept in self._values.items():
            kept.append(numbers[name])

    def draw(self) -> None:
        """Show all points."""
        for plot, handle in zip(self._plots, self._handles, strict=True):
            handle.data = self._data(plot)

    def _data(self, plot: Plot) -> tuple[np.ndarray, ...]:
        values = [np.nan_to_num(self._values[name]) for name in plot.series]  # a NaN empties it
        if plot.powers:
            values = [np.log10(np.maximum(value, LEAST)) for value in values]
        return SAMPLING * np.arange(1.0 - len(values[0]), 1.0), *values

    def _made(self, gui: viser.GuiApi, plot: Plot) -> viser.GuiUplotHandle:
        lines = zip(plot.series, COLOURS, strict=False)
        series = [uplot.Series(label=name, stroke=colour, width=1) for name, colour in lines]
        return gui.add_uplot(
            self._data(plot),
            (uplot.Series(label='wall time [s]'), *series),
            title=plot.title,
            scales={'x': uplot.Scale(time=False, range=(-SPAN, 0.0))},
            legend=uplot.Legend(show=True),
            height=HEIGHT,
        )
