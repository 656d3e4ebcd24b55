"""What the running plots of the live page show."""

from types import SimpleNamespace

import numpy as np
import pytest
from robots import ball

from contact_sim import Simulator

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view._page import (
    LOG_FLOOR,
    PLOTS,
    POINTS,
    SAMPLING,
    Plots,
    fitting_power,
    plotted_numbers,
)
from contact_sim.view._session import DisplayedStep

G, H, MASS = 9.81, 1e-3, 2.0


class Gui:
    """Takes plots."""

    def __init__(self):
        self.plots = {}

    def add_uplot(self, data, series, title, **rest):
        self.plots[title] = SimpleNamespace(
            title=title, data=data, names=[line['label'] for line in series], **rest
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
    loss = -0.5e6 * MASS * G**2 * H**2  # 96 µJ
    assert values['change'] == pytest.approx(loss, rel=1e-6)
    assert values['integration'] == pytest.approx(loss, rel=1e-6)
    assert values['actuation'] == values['contact'] == 0.0
    assert values['step'] == pytest.approx(12.0)  # µs
    assert values['real-time factor'] == 50.0
    titles = ['energy of a step [µJ]', 'time of a step [µs]', 'simulated over wall time [%]']
    assert [plot.title for plot in gui.plots.values()][1:] == titles
    assert values['penetration [m]'] == np.log10(LOG_FLOOR)


@pytest.mark.parametrize(
    ('largest', 'before', 'power'),
    [
        (0.0, None, 0), (0.0, -6, -6), (1e-30, 0, -9), (9.9e-6, 0, -9), (1e-5, 0, -6),
        (0.02, 0, -3), (9.0, 0, 0), (9.0, -3, -3), (4.0, 0, -3), (1e4, -3, 3), (1e20, 0, 9),
        (15e-3, -6, -6), (21e-3, -6, -3),
    ],
)  # fmt: skip
def test_the_unit_fits_the_largest_number(largest, before, power):
    lines = [np.array([0.0, -largest]), np.array([0.1 * largest, 0.0])]
    assert fitting_power(lines, before) == power


def test_residuals_are_powers_of_ten_and_the_oldest_points_go():
    gui = Gui()
    plots = Plots(gui)
    names = [name for plot in PLOTS for name in plot.series]
    for k in range(POINTS + 5):
        plots.add(dict.fromkeys(names, 0.0) | {'ncp [N s]': 1e-9, 'change': k, 'contact': np.nan})
    assert gui.values()['ncp [N s]'] == pytest.approx(-9.0)
    energy = gui.plots['energy of a step [J]']
    assert all(not plot.legend['live'] for plot in gui.plots.values())
    assert all(step >= 1.0 for plot in gui.plots.values() for step in plot.axes[1]['incrs'])
    time, change = energy.data[:2]
    np.testing.assert_array_equal(change, np.arange(5, POINTS + 5))
    np.testing.assert_allclose(time, SAMPLING * np.arange(1 - POINTS, 1), atol=1e-12)
    low, high = energy.scales['x']['range']
    assert low <= time[0] < time[-1] <= high
    assert all(np.isfinite(line).all() for line in energy.data)
