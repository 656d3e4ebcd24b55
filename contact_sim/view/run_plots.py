"""Plots of a whole recorded run, with a line where one is in it."""

from __future__ import annotations

import numpy as np
import viser
from numpy.typing import NDArray
from viser import uplot

from contact_sim.replay.series import Series
from contact_sim.replay.survey import Survey
from contact_sim.view.plots import HEIGHT, LEAST

Array = NDArray[np.float64]
COLOURS = ('#d9480f', '#1c7ed6', '#2f9e44', '#ae3ec9', '#e8a202', '#0c8599', '#862e9c', '#5c940d')
CURSOR = '#868e96'
MOST_LINES = 8
"""Lines of one plot; of more feet the first ones are shown."""


class RunPlot:
    """One plot of a run.

    Args:
        gui: of the page; the plot is made where the panel is at the time.
        title: above it.
        time: of each bin since the beginning [s], shape (bins,).
        series: numbers over the bins.
        logarithmic: whether powers of ten are drawn.
    """

    def __init__(
        self, gui: viser.GuiApi, title: str, time: Array, series: Series, logarithmic: bool = False
    ) -> None:
        names = list(series.units)[:MOST_LINES]
        lines = [np.nan_to_num(series.column(name)) for name in names]  # a NaN empties a plot
        if logarithmic:
            lines = [np.log10(np.maximum(line, LEAST)) for line in lines]
        self._data = (time, *lines)
        self._low, self._high = np.min(lines, initial=0.0), np.max(lines, initial=0.0)
        labels = [f'{name} [{series.units[name]}]' for name in names]
        styles = zip(labels, COLOURS, strict=False)
        self._handle = gui.add_uplot(
            self._with_cursor(0),
            (
                uplot.Series(label='t [s]'),
                *(uplot.Series(label=label, stroke=colour, width=1) for label, colour in styles),
                uplot.Series(label='here', stroke=CURSOR, width=2),
            ),
            title=title,
            scales={'x': uplot.Scale(time=False, auto=True)},
            legend=uplot.Legend(show=True),
            height=HEIGHT,
        )

    def show(self, place: int) -> None:
        """Draw the line at a bin."""
        self._handle.data = self._with_cursor(place)

    def _with_cursor(self, place: int) -> tuple[Array, ...]:
        """Return the data with one more line: along the bottom, and up to the top in one bin."""
        cursor = np.full(len(self._data[0]), self._low)
        cursor[place : place + 1] = self._high
        return (*self._data, cursor)


class RunPlots:
    """Forces on the feet, residuals and energies of a run, over the time that its steps took.

    Args:
        gui: of the page; the plots are made where the panel is at the time.
        found: what there is to see.
    """

    def __init__(self, gui: viser.GuiApi, found: Survey) -> None:
        time = found.elapsed.column('elapsed')
        self._steps, self._place = found.elapsed.steps, 0
        stride = found.elapsed.stride
        note = '' if stride == 1 else f', of {stride} steps each'
        self._plots = [
            RunPlot(gui, f'{title}{note}', time, series, logarithmic)
            for title, series, logarithmic in (
                ('force on the feet [N]', found.force, False),
                ('residuals, powers of ten', found.residuals, True),
                ('energy since the beginning [J]', found.work, False),
            )
            if series.units
        ]

    def show(self, step: int) -> None:
        """Draw the line at a step."""
        place = int(np.searchsorted(self._steps, step))
        if place != self._place:
            self._place = place
            for plot in self._plots:
                plot.show(place)
