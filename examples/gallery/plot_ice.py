r"""
Ice: friction that depends on the place
=======================================

A square box slides over dry ground, a strip of ice, and dry ground again. Its front and rear
corners cross the borders one after the other, and they do not carry the same load: friction
:math:`F` acts half a side below the middle, so :math:`N_f - N_r = F`. With :math:`N_f + N_r = m g`
and :math:`F = \mu_f N_f + \mu_r N_r`,

.. math:: \frac{F}{m g} = \frac{\mu_f + \mu_r}{2 - \mu_f + \mu_r}.

Ice under the front therefore brakes less than ice under the rear.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Plane, Simulator, load_robot
from contact_sim.terrain import Region

GRAVITY, DRY, ICE, SPEED, SIDE = 9.81, 0.4, 0.05, 4.0, 1.0
BEGIN, END, DURATION = 1.0, 3.0, 1.5

# %%
# A region of the ground has a friction of its own, which replaces that of the simulation there.

strip = Region(x_range=(BEGIN, END), y_range=(-1.0, 1.0), friction=ICE)
box = load_robot('box_on_corners')  # 1 kg, a corner in front and one behind
sim = Simulator(box, 'ncp', Plane().with_regions([strip]), friction=DRY)
sim.reset([0.0, 0.0, 0.5 * SIDE, 0.0, 0.0, 0.0, 1.0], [SPEED, 0.0, 0.0, 0.0, 0.0, 0.0])
reports = [sim.step([]) for _ in range(round(DURATION / sim.time_step))]
run = np.array([(report.q[0], report.v[0]) for report in reports])

# %%
# Between two borders the deceleration is constant, so that :math:`v^2` falls by :math:`2 a \Delta
# x`.


def braking(front, rear):
    """Return the deceleration [m/s²] with these frictions under front and rear corners."""
    return GRAVITY * (front + rear) / (2.0 - front + rear)


half = 0.5 * SIDE
borders = np.array([0.0, BEGIN - half, BEGIN + half, END - half, END + half])
frictions = [(DRY, DRY), (ICE, DRY), (ICE, ICE), (DRY, ICE), (DRY, DRY)]
decelerations = np.array([braking(*pair) for pair in frictions])
squares = SPEED**2 - np.cumsum([0.0, *(2.0 * decelerations[:-1] * np.diff(borders))])


def closed_form(x):
    """Return the speed at x [m/s]."""
    k = np.searchsorted(borders, x, side='right') - 1
    return np.sqrt(squares[k] - 2.0 * decelerations[k] * (x - borders[k]))


error = np.abs(run[:, 1] - closed_form(run[:, 0])).max()
for pair, value in zip(frictions, decelerations, strict=True):
    print(f'front μ = {pair[0]:<4g} rear μ = {pair[1]:<4g} brakes with {value:.4f} m/s²')
print(f'largest difference of the speed from the closed form: {error:.1e} m/s')

figure, axes = plt.subplots(figsize=(7.0, 4.0), layout='constrained')
axes.axvspan(BEGIN, END, color='#56B4E9', alpha=0.3, lw=0)
axes.text(0.5 * (BEGIN + END), 1.05 * run[-1, 1], 'ice', ha='center')
line = np.linspace(0.0, run[-1, 0], 400)
axes.plot(line, closed_form(line), color='0.5', label='closed form')
axes.plot(*run[::100].T, 'o', color='#D55E00', label='ncp')
for border in borders[1:]:
    axes.axvline(border, color='0.8', lw=0.8, zorder=0)
axes.set(xlabel='middle of the box x [m]', ylabel='speed [m/s]')
axes.set_title('Thin lines: a corner crosses a border')
axes.legend()

# in a step that crosses a border the speed misses by at most Δμ g h
assert error < 4.0 * (DRY - ICE) * GRAVITY * sim.time_step
plt.show()
