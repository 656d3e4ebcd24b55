r"""
Four-bar linkage: a loop that stays closed
==========================================

A URDF is a tree. The crank, coupler and rocker of a four-bar close a loop, which is a constraint,
:math:`h(q) = p_{\mathrm{coupler}} - p_{\mathrm{rocker}} = 0`, with the force :math:`H^T\lambda`
that keeps it:

.. math:: M\dot v = \tau - C v - g + H^T\lambda, \qquad \ddot h = H\dot v + \dot H v = 0.

Where the linkage can be is geometry: the law of cosines gives the rocker for each angle of the
crank.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot
from contact_sim.constraints import Baumgarte, LoopClosure

CRANK, COUPLER, ROCKER, GROUND = 1.0, 2.0, 1.5, 2.0  # [m]
START, RATE, DURATION = 1.2, 1.5, 3.0


def pins(crank):
    """Return the pins of crank and rocker for an angle of the crank [rad], shape (2, 2) [m]."""
    first = CRANK * np.array([np.cos(crank), np.sin(crank)])
    across = first - [GROUND, 0.0]
    far = np.hypot(*across)
    between = np.arccos((far**2 + ROCKER**2 - COUPLER**2) / (2.0 * far * ROCKER))
    rocker = np.arctan2(across[1], across[0]) - between
    return np.array([first, [GROUND, 0.0] + ROCKER * np.array([np.cos(rocker), np.sin(rocker)])])


def configuration(crank):
    """Return the joints (crank, coupler from the crank, rocker) [rad]."""
    first, second = pins(crank)
    coupler = np.arctan2(*(second - first)[::-1])
    return np.array([crank, coupler - crank, np.arctan2(second[1], second[0] - GROUND)])


# %%
# Uniform rods of 1 kg/m under gravity, the crank turning at 1.5 rad/s. With α = 0 Baumgarte's
# stabilisation leaves the equation above as it is; here are its accelerations (from the ground,
# not from the crank) beside those of an independent solution.

robot = load_robot('four_bar')
rates = RATE * (configuration(START + 1e-6) - configuration(START - 1e-6)) / 2e-6
plain = LoopClosure('coupler_tip', 'rocker_tip', name='loop', stabilisation=Baumgarte(0.0))
sim = Simulator(robot, 'ncp', constraints=[plain])
sim.reset(configuration(START), rates)
report = sim.step([])
crank, coupler, rocker = report.acceleration
found = np.array([crank, crank + coupler, rocker, *report.constraints['loop'].force[[0, 2]]])
reference = np.array([-3.82325152, 0.95587181, -1.64423588, 1.61844923, 7.33439081])
for name, one, other in zip(
    ('crank', 'coupler', 'rocker', 'λ_x', 'λ_z'), found, reference, strict=True
):
    print(f'{name:8s}{one:12.8f}{other:12.8f}')
np.testing.assert_allclose(found, reference, atol=1e-6)

# %%
# For a run the loop is projected back to zero after each step, the default.

sim = Simulator(robot, 'ncp', constraints=[LoopClosure('coupler_tip', 'rocker_tip')])
sim.reset(configuration(START), rates)
q = np.array([sim.step([]).q for _ in range(round(DURATION / sim.time_step))])
closed_form = np.array([configuration(angle) for angle in q[:, 0]])
error = np.abs(q - closed_form).max()
print(f'largest difference of an angle from the law of cosines: {error:.1e} rad')
assert error < 1e-9

# %%
# The crank swings like a pendulum that carries the others with it.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout='constrained')
corners = np.array([[[0.0, 0.0], *pins(angle), [GROUND, 0.0]] for angle in q[:, 0]])
for k in range(0, len(q), 250):
    left.plot(*corners[k].T, color='0.85', lw=1, zorder=0)
left.plot(*corners[0].T, 'o-', color='0.2', lw=2.5, label='at the start')
left.plot(*corners[:, 1:3].mean(axis=1).T, color='#D55E00', label='middle of the coupler')
left.set(xlabel='x [m]', ylabel='z [m]', aspect='equal', xlim=(-1.3, 2.9), ylim=(-1.2, 2.2))
left.legend(loc='upper left')
line = np.linspace(q[:, 0].min(), q[:, 0].max(), 300)
geometry = np.array([configuration(angle) for angle in line])
right.plot(np.rad2deg(line), np.rad2deg(geometry[:, 2]), color='0.6', label='law of cosines')
some = slice(None, None, 60)
right.plot(*np.rad2deg(q[some][:, [0, 2]]).T, 'o', color='#D55E00', label='simulated')
right.set(xlabel='crank [°]', ylabel='rocker [°]')
right.legend()
plt.show()
