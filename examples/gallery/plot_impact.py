r"""
Impact: bounces, and where a time step puts them
================================================

A ball falls from :math:`H = 1` m with restitution :math:`e = 0.8`. Newton's law
:math:`u_n^+ = -e\,u_n^-` gives heights :math:`e^{2k} H` and bounces at

.. math:: t_k = \sqrt{\frac{2H}{g}}\,\Bigl(1 + 2\sum_{j=1}^{k-1} e^j\Bigr),

infinitely many before :math:`\sqrt{2H/g}\,(1 + e)/(1 - e) = 4.064` s.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot

GRAVITY, HEIGHT, RESTITUTION, RADIUS = 9.81, 1.0, 0.8, 0.3
FALL = np.sqrt(2.0 * HEIGHT / GRAVITY)
bounces = FALL * (1.0 + 2.0 * np.cumsum([0.0, *RESTITUTION ** np.arange(1, 4)]))
apexes = RESTITUTION ** (2 * np.arange(1, 4)) * HEIGHT
ball = load_robot('bouncing_ball')


def dropped(model, time_step=1e-3):
    """Return the ball at rest, its lowest point at H."""
    sim = Simulator(ball, model, restitution=RESTITUTION, gravity=GRAVITY, time_step=time_step)
    sim.reset([0.0, 0.0, RADIUS + HEIGHT, 0.0, 0.0, 0.0, 1.0])
    return sim


def flight(model, seconds, time_step=1e-3):
    """Return rows of time [s], height [m] and speed upwards [m/s]."""
    sim, rows = dropped(model, time_step), []
    while sim.time < seconds:
        sim.step([])
        rows.append([sim.time, sim.q[2] - RADIUS, sim.v[2]])
    return np.array(rows)


def first_apex(model, time_step):
    """Return the height after the first bounce [m], from the motion at 0.7 s."""
    _, height, speed = flight(model, 0.7, time_step)[-1]
    return height + speed**2 / (2.0 * GRAVITY)


# %%
# ``hybrid`` integrates to the instant of each bounce. The highest point after it follows from any
# state of the arc: :math:`z + \dot z^2/2g`.

rows = flight('hybrid', 2.4)
for k, apex in enumerate(apexes):
    arc = rows[np.searchsorted(rows[:, 0], 0.5 * (bounces[k] + bounces[k + 1]))]
    found = arc[1] + arc[2] ** 2 / (2.0 * GRAVITY)
    print(f'bounce {k + 1}: height {found:.9f} m, closed form {apex:.9f} m')
    assert abs(found - apex) < 1e-8

# %%
# A time-stepping model meets the floor at the end of a step. How far it errs depends on where in
# the step the bounce should have been, but hardly more than the way of one step at the speed of
# the impact, :math:`h \sqrt{2 g H}`.

time_steps = np.geomspace(4e-3, 2.5e-4, 13)
errors = np.array([abs(first_apex('ncp', h) - apexes[0]) for h in time_steps])
for h, error in zip(time_steps[::4], errors[::4], strict=True):
    print(f'h = {1e3 * h:5.2f} ms: error of the first height {1e3 * error:7.4f} mm')

figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.0), layout='constrained')
left.plot(rows[:, 0], rows[:, 1], color='#0072B2', label='hybrid')
middles = 0.5 * (bounces[:-1] + bounces[1:])
left.plot(middles, apexes, 'o', color='#D55E00', label='e²ᵏ H')
left.plot(bounces, np.zeros(4), '^', color='0.3', label='t_k')
left.set(xlabel='time [s]', ylabel='height [m]', title=f'e = {RESTITUTION:g}')
left.legend()
right.loglog(1e3 * time_steps, 1e3 * errors, 'o', color='#D55E00', label='ncp')
bound = np.sqrt(2.0 * GRAVITY * HEIGHT) * time_steps
right.loglog(1e3 * time_steps, 1e3 * bound, '--', color='0.5', label='h √(2 g H)')
right.set(xlabel='time step h [ms]', ylabel='error of the first height [mm]')
right.set_xticks([0.25, 0.5, 1.0, 2.0, 4.0], ['0.25', '0.5', '1', '2', '4'], minor=False)
right.tick_params(axis='x', which='minor', bottom=False, labelbottom=False)
right.legend()

assert (errors < bound).all()
plt.show()
