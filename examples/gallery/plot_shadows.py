r"""
Shadow models: the same step, asked of others
=============================================

While ``ncp`` slides a cube over the floor, other contact models answer the same steps beside it.
Nothing of theirs enters the simulation, which keeps every bit. So forces can be compared in one
and the same state, where two simulations would long have drifted apart. What each does wrong is
known:

* ``anitescu`` drops a condition, so that what slides shall leave the floor with :math:`u_n = \mu
  |u_t|`. In one step that takes :math:`N = m g + m \mu |u_t|/h`.
* ``lcp`` has a pyramid for a cone: friction points along the nearest of its edges, not against the
  slip.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Lcp, Simulator, load_robot

GRAVITY, FRICTION, SPEED, SIDE, STEPS = 9.81, 0.4, 1.0, 0.2, 240
HEADING, SIDES = np.deg2rad(30.0), 8

# %%
# Two runs of the same slide, one of them with shadows. A shadow solves a step when its answer is
# read.

box = load_robot('box_on_slope')  # a cube of 1 kg


def slide(shadow):
    """Return the simulator after the slide, and its reports."""
    sim = Simulator(box, 'ncp', friction=FRICTION, gravity=GRAVITY)
    sim.shadow = shadow
    speed = SPEED * np.array([np.cos(HEADING), np.sin(HEADING)])
    sim.reset([0.0, 0.0, 0.5 * SIDE, 0.0, 0.0, 0.0, 1.0], [*speed, 0.0, 0.0, 0.0, 0.0])
    return sim, [sim.step([]) for _ in range(STEPS)]


alone, _ = slide([])
sim, reports = slide(['anitescu', Lcp(sides=SIDES)])
assert sim.snapshot().buffer.tobytes() == alone.snapshot().buffer.tobytes()
print('the run with shadows equals that without to the bit')

# %%
# Forces of the whole floor, under each model.

force = {'ncp': np.array([report.contacts.force.sum(axis=0) for report in reports])}
for name in ('anitescu', 'lcp'):
    force[name] = np.array([report.shadows[name].force.sum(axis=0) for report in reports])
own = np.array([report.shadows['anitescu'].velocity[:2] for report in reports])
expected = GRAVITY + FRICTION * np.hypot(*own.T) / sim.time_step  # [N] of 1 kg
error = np.abs(force['anitescu'][:, 2] / expected - 1.0).max()
print(f'normal force of anitescu: closed form to {error:.1e}')


def off_heading(pull):
    """Return the angles between friction and the way back [°]."""
    angle = np.arctan2(-pull[:, 1], -pull[:, 0]) - HEADING
    return np.rad2deg(angle)


edge = 2.0 * np.pi / SIDES
nearest = np.rad2deg(edge * np.round(HEADING / edge) - HEADING)
angles = {name: off_heading(force[name]) for name in ('ncp', 'lcp')}
print(f'friction of lcp is off by {angles["lcp"].mean():.3f}°, nearest edge {nearest:.3f}°')

# %%
# ``ncp`` carries the weight and brakes straight against the slip.

time = np.array([report.time for report in reports])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout='constrained')
left.plot(time, force['ncp'][:, 2], color='0.4', lw=3, label='ncp, which moves the cube')
left.plot(time[::12], force['anitescu'][::12, 2], 'o', color='#D55E00', label='anitescu, shadow')
left.plot(time, expected, color='#D55E00', lw=1, label='m g + m μ |u_t| / h')
left.set(xlabel='time [s]', ylabel='normal force [N]')
left.legend()
right.plot(time, angles['ncp'], color='0.4', lw=3, label='ncp, which moves the cube')
right.plot(time[::12], angles['lcp'][::12], 'o', color='#0072B2', label='lcp, shadow')
right.axhline(nearest, color='#0072B2', lw=1, label=f'nearest of {SIDES} edges')
right.set(xlabel='time [s]', ylabel='friction off the slip [°]', ylim=(-3.0, 25.0))
right.legend()

assert error < 1e-6
assert np.abs(angles['lcp'] - nearest).max() < 1e-6
assert np.abs(angles['ncp']).max() < 1e-6
plt.show()
