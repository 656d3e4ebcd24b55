r"""
Trot: two feet at a time
========================

``contact_sim.control.Trot`` places the feet of go1 where the body will need them (Raibert) and
holds height and attitude by inverse dynamics. Over a whole number of periods the state repeats, so
momentum does not change, and the mean force of the ground is the weight:

.. math:: \frac{1}{n T} \int F_z\,\mathrm{d}t = m g.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot
from contact_sim.control import Trot
from contact_sim.view import MovingScene

SPEED, DURATION, GRAVITY = 0.5, 4.0, 9.81

robot = load_robot('go1')
sim = Simulator(robot, 'ncp', gravity=GRAVITY)
trot = Trot(robot)
trot.velocity = (SPEED, 0.0, 0.0)  # forwards [m/s], sideways [m/s], turn [rad/s]
reports = []
while sim.time < DURATION - 1e-9:
    reports.append(sim.step(trot.effort(sim.time, sim.q, sim.v)))

time = np.array([report.time for report in reports])
load = np.array([report.contacts.normal_force for report in reports])
place = np.array([report.q[0] for report in reports])

# %%
# Means over the last four periods, far from the start.

count = round(4.0 * trot.gait.period / sim.time_step)
weight = GRAVITY * robot.total_mass
lift = load[-count:].sum(axis=1).mean()
speed = (place[-1] - place[-1 - count]) / (count * sim.time_step)
duty = (load[-count:] > 0.0).mean()
print(f'mean force of the ground {lift:7.3f} N     weight    {weight:7.3f} N')
print(f'mean speed               {speed:7.4f} m/s   commanded {SPEED:7.4f} m/s')
print(f'share of time on the ground {duty:.3f}      duty {trot.gait.duty:.3f}')

# %%
# A bar is a foot on the ground. Diagonal pairs take turns, and between them all four feet stand
# for a moment.

names = ['front left', 'front right', 'rear left', 'rear right']
figure, (feet, force) = plt.subplots(
    2, 1, sharex=True, figsize=(8.0, 5.0), layout='constrained', height_ratios=(1, 1.4)
)
shown = slice(-count, None)
for k, colour in enumerate(('#0072B2', '#D55E00', '#D55E00', '#0072B2')):
    down = load[shown, k] > 0.0
    feet.fill_between(time[shown], k - 0.35, k + 0.35, where=down, color=colour, lw=0)
feet.set(yticks=range(4), yticklabels=names, ylabel='on the ground', title='go1 trots at 0.5 m/s')
feet.invert_yaxis()
force.plot(time[shown], load[shown].sum(axis=1) / weight, color='0.3', lw=0.8, label='all feet')
force.axhline(1.0, color='#009E73', ls='--', label='weight')
force.set(xlabel='time [s]', ylabel='force of the ground / m g [-]', ylim=(0.0, 3.0))
force.legend(loc='upper right')

assert abs(lift / weight - 1.0) < 1e-3
assert abs(speed / SPEED - 1.0) < 0.05
assert (load[-count:] > 0.0).sum(axis=1).min() >= 2
plt.show()

# %%
# The run, to look at from all sides (in a notebook as well; it needs ``contact_sim[view]``).
# Arrows are the forces of the ground, the line or polygon between the feet is what carries the
# robot.

MovingScene(robot, sim.terrain, reports[1000::33])
