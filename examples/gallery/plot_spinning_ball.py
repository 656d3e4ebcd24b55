r"""
A spinning ball: spin becomes speed
===================================

A hollow ball (:math:`I = \tfrac23 m r^2`) meets the floor at :math:`(v_x, v_z)` with back spin
:math:`\omega`. While its lowest point slips, friction is :math:`\mu` times the normal impulse
:math:`m (1 + e)|v_z|`. If that is enough to stop the slip :math:`v_x + r \omega`,

.. math::

   v_x^+ = \tfrac35 v_x - \tfrac25 r \omega, \qquad
   v_z^+ = -e\,v_z, \qquad
   \omega^+ = -\tfrac35 \frac{v_x}{r} + \tfrac25 \omega,

else :math:`v_x` changes by :math:`\mu (1 + e) |v_z|`, against the slip.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot

RADIUS, RESTITUTION, FRICTION, GRAVITY = 0.3, 0.8, 0.3, 9.81
FORWARD, DOWN = 1.0, 2.0
ball = load_robot('bouncing_ball')

# %%
# One step of a nanosecond is the impact alone. Spin about −y turns the lowest point forwards, as
# the textbook counts it.


def impact(spin):
    """Return (v_x, v_z, ω) after an impact with back spin ω [rad/s]."""
    sim = Simulator(
        ball, 'ncp', friction=FRICTION, restitution=RESTITUTION, gravity=0.0, time_step=1e-9
    )
    sim.reset([0.0, 0.0, RADIUS, 0.0, 0.0, 0.0, 1.0], [FORWARD, 0.0, -DOWN, 0.0, -spin, 0.0])
    sim.step([])
    return sim.v[[0, 2, 4]] * [1.0, 1.0, -1.0]


def closed_form(spin):
    """Return the same from the equations above."""
    slip = FORWARD + RADIUS * spin
    most = FRICTION * (1.0 + RESTITUTION) * DOWN
    change = -np.clip(0.4 * slip, -most, most)
    return np.array([FORWARD + change, RESTITUTION * DOWN, spin + 1.5 * change / RADIUS])


spins = np.linspace(-25.0, 25.0, 21)
after = np.array([impact(spin) for spin in spins])
expected = np.array([closed_form(spin) for spin in spins])
print(f'largest difference from the closed form: {np.abs(after - expected).max():.1e}')

# %%
# The same ball thrown with and without back spin. ``hybrid`` finds each bounce to rounding.


def path(spin):
    """Return x and height of the lowest point of a ball with back spin ω [m]."""
    sim = Simulator(ball, 'hybrid', friction=FRICTION, restitution=RESTITUTION, gravity=GRAVITY)
    sim.reset([0.0, 0.0, RADIUS + 0.5, 0.0, 0.0, 0.0, 1.0], [FORWARD, 0.0, 0.0, 0.0, -spin, 0.0])
    return np.array([sim.step([]).q[[0, 2]] - [0.0, RADIUS] for _ in range(1400)])


# %%
# Left: between the kinks the ball leaves the floor without slip. Beyond, it slips all the time,
# and more spin does not help. With :math:`\omega > 3 v_x/2 r`, here 5 rad/s, it comes back. Right:
# it does.

line = np.linspace(-25.0, 25.0, 500)
curve = np.array([closed_form(spin) for spin in line])
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout='constrained')
left.plot(line, curve[:, 0], color='0.5', label='closed form')
left.plot(spins, after[:, 0], 'o', color='#D55E00', label='ncp')
left.axhline(0.0, color='0.8', zorder=0)
left.set(xlabel='back spin before ω [rad/s]', ylabel='v_x after [m/s]')
left.set_title(f'One impact, μ = {FRICTION:g}', fontsize='medium')
left.legend()
for spin, colour in ((0.0, '#0072B2'), (10.0, '#009E73'), (20.0, '#D55E00')):
    right.plot(*path(spin).T, color=colour, label=f'{spin:g} rad/s')
right.set(xlabel='x [m]', ylabel='height [m]', xticks=[-1.0, -0.5, 0.0, 0.5, 1.0])
right.set_title('Bounces, by back spin', fontsize='medium')
right.legend()

assert np.abs(after - expected).max() < 1e-6
plt.show()
