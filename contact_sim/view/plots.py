"""Running plots: what the judge says of the steps that are shown, and what they cost."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import viser
from viser import uplot

from contact_sim.simulation.report import StepReport

KEPT = 300
"""Points of a plot."""
LEAST = 1e-18
"""What is shown in place of zero where powers of ten are."""
COLOURS = ('#d9480f', '#1c7ed6', '#2f9e44', '#ae3ec9')
HEIGHT = 150
"""Of a plot [pixels]."""


@dataclass(frozen=True)
class Plot:
    """One plot over simulated time."""

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
        self._time: deque[float] = deque(maxlen=KEPT)
        names = [name for plot in plots for name in plot.series]
        self._values: dict[str, deque[float]] = {name: deque(maxlen=KEPT) for name in names}
        self._handles = [self._made(gui, plot) for plot in plots]

    def add(self, time: float, numbers: Mapping[str, float]) -> None:
        """Add a point at simulated `time` [s]; one that is not later begins the plots anew.

        Args:
            time: of the point.
            numbers: by the names of the series; those that are missing leave a gap.
        """
        if self._time and time <= self._time[-1]:
            for kept in (self._time, *self._values.values()):
                kept.clear()
        self._time.append(time)
        for name, kept in self._values.items():
            kept.append(numbers.get(name, math.nan))

    def draw(self) -> None:
        """Show all points."""
        for plot, handle in zip(self._plots, self._handles, strict=True):
            handle.data = self._data(plot)

    def _data(self, plot: Plot) -> tuple[np.ndarray, ...]:
        values = [np.array(self._values[name], dtype=float) for name in plot.series]
        if plot.powers:
            values = [np.log10(np.maximum(value, LEAST)) for value in values]
        return np.array(self._time, dtype=float), *values

    def _made(self, gui: viser.GuiApi, plot: Plot) -> viser.GuiUplotHandle:
        lines = zip(plot.series, COLOURS, strict=False)
        series = [uplot.Series(label=name, stroke=colour, width=1) for name, colour in lines]
        return gui.add_uplot(
            self._data(plot),
            (uplot.Series(label='t [s]'), *series),
            title=plot.title,
            scales={'x': uplot.Scale(time=False, auto=True)},
            legend=uplot.Legend(show=True),
            height=HEIGHT,
        )
