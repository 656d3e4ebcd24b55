"""What the running plots of the live page show."""

from types import SimpleNamespace

import numpy as np
import pytest
from robots import ball

from contact_sim import Simulator

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view._page import LOG_FLOOR, PLOTS, POINTS, SAMPLING, Plots, plotted_numbers
from contact_sim.view._session import DisplayedStep

G, H, MASS = 9.81, 1e-3, 2.0


class Gui:
    """Takes plots."""

    def __init__(self):
        self.plots = {}

    def add_uplot(self, data, series, title, **rest):
        self.plots[title] = SimpleNamespace(
            data=data, names=[line['label'] for line in series], **rest
        )
        return self.plots[title]

    def values(self):
        return {
            name: values[-1]
            for plot in self.plots.values()
            for name, values in zip(plot.names[1:], plot.data[1:], strict=True)
        }


def test_the_energy_of_a_fall():
    """Semi-implicit Euler loses m g² h² / 2 per step in free fall, all of it by integration."""
    sim = Simulator(ball(mass=MASS), time_step=H)
    q = sim.q.copy()
    q[2] += 1.0
    sim.reset(q)
    sim.step(np.zeros(0))
    gui = Gui()
    plots = Plots(gui)
    report = sim.step(np.zeros(0))
    plots.add(plotted_numbers(DisplayedStep(report, step_seconds=12e-6, real_time_factor=0.5)))
    values = gui.values()
    loss = -0.5 * MASS * G**2 * H**2
    assert values['change'] == pytest.approx(loss, rel=1e-6)
    assert values['integration'] == pytest.approx(loss, rel=1e-6)
    assert values['actuation'] == values['contact'] == 0.0
    assert values['step'] == pytest.approx(12.0)
    assert values['real-time factor'] == 0.5
    assert values['penetration [m]'] == np.log10(LOG_FLOOR)


def test_residuals_are_powers_of_ten_and_the_oldest_points_go():
    gui = Gui()
    plots = Plots(gui)
    names = [name for plot in PLOTS for name in plot.series]
    for k in range(POINTS + 5):
        plots.add(dict.fromkeys(names, 0.0) | {'ncp [N s]': 1e-9, 'change': k, 'contact': np.nan})
    assert gui.values()['ncp [N s]'] == pytest.approx(-9.0)
    energy = gui.plots['energy of a step [J]']
    time, change = energy.data[:2]
    np.testing.assert_array_equal(change, np.arange(5, POINTS + 5))
    np.testing.assert_allclose(time, SAMPLING * np.arange(1 - POINTS, 1), atol=1e-12)
    low, high = energy.scales['x']['range']
    assert low <= time[0] < time[-1] <= high
    assert all(np.isfinite(line).all() for line in energy.data)
