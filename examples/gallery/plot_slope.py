r"""
Slope: it holds, or it slides
=============================

A cube on a slope :math:`\alpha` with friction :math:`\mu` rests as long as
:math:`\tan\alpha \le \mu`, and beyond slides with

.. math:: a = g\,(\sin\alpha - \mu \cos\alpha).
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import InclinedPlane, Simulator, load_robot

GRAVITY, FRICTION, SIDE, DURATION = 9.81, 0.4, 0.2, 0.2
box = load_robot('box_on_slope')

# %%
# ``InclinedPlane`` goes down along +x. The cube lies flat on it: turned by α about y, its middle
# half a side above the plane.


def acceleration(model, angle):
    """Return the mean acceleration down a slope `angle` [rad] after a start at rest [m/s²]."""
    sim = Simulator(box, model, InclinedPlane(angle), friction=FRICTION, gravity=GRAVITY)
    normal = np.array([np.sin(angle), 0.0, np.cos(angle)])
    turn = [0.0, np.sin(0.5 * angle), 0.0, np.cos(0.5 * angle)]
    sim.reset([*(0.5 * SIDE * normal), *turn])
    for _ in range(round(DURATION / sim.time_step)):
        sim.step([])
    return sim.v[0] / DURATION  # v is in the axes of the body, x down the slope


degrees = np.array([5.0, 10.0, 15.0, 20.0, 21.0, 22.0, 23.0, 25.0, 30.0, 35.0])
measured = np.array([acceleration('ncp', angle) for angle in np.deg2rad(degrees)])


def coulomb(angle):
    """Return the closed form [m/s²]."""
    return np.maximum(GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle)), 0.0)


limit = np.arctan(FRICTION)
print(f'slides from atan μ = {np.rad2deg(limit):.2f}°')
for one, value in zip(degrees, measured, strict=True):
    print(f'{one:5.1f}°  measured {value:9.6f}   closed form {coulomb(np.deg2rad(one)):9.6f} m/s²')

# %%
# A rigid model has no creep: below the limit the cube does not move at all. A soft model needs a
# little speed for any friction force. At 20°, ``todorov`` (the model of MuJoCo) goes on creeping.

creep = {model: acceleration(model, np.deg2rad(20.0)) * DURATION for model in ('ncp', 'todorov')}
print(f'speed on 20°: ncp {creep["ncp"]:.1e} m/s, todorov {creep["todorov"]:.1e} m/s')

line = np.linspace(0.0, 38.0, 400)
figure, axes = plt.subplots(figsize=(7.0, 4.0), layout='constrained')
axes.axvspan(0.0, np.rad2deg(limit), color='0.93')
axes.text(0.5 * np.rad2deg(limit), 2.0, 'holds', ha='center')
axes.text(0.5 * (38.0 + np.rad2deg(limit)), 2.0, 'slides', ha='center')
axes.plot(line, coulomb(np.deg2rad(line)), color='0.4', label='g (sin α − μ cos α)')
axes.plot(degrees, measured, 'o', color='#D55E00', label='ncp')
axes.set(xlabel='slope α [°]', ylabel='acceleration [m/s²]', xlim=(0.0, 38.0))
axes.set_title(f'A cube on a slope, μ = {FRICTION:g}: atan μ = {np.rad2deg(limit):.1f}°')
axes.legend(loc='upper left')

assert np.abs(measured - coulomb(np.deg2rad(degrees))).max() < 1e-6
assert abs(creep['ncp']) < 1e-9 < 1e-4 < creep['todorov'] < 1e-2
plt.show()
