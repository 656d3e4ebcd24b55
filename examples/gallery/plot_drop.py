r"""
Drop: a robot lands on its feet
===============================

A quadruped falls from a height :math:`H` and lands on legs that hold their pose. What must be true
whatever the legs do?

* The feet meet the ground after :math:`t = \sqrt{2 H/g}`.
* From rest to rest momentum does not change, so the ground has given back all that gravity has put
  in: :math:`\int F_z\,\mathrm{d}t = m g T`.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot
from contact_sim.robot import holding

GRAVITY, HEIGHT, DURATION = 9.81, 0.2, 1.5

# %%
# The robot stands in the pose of its SRDF, 20 cm above the ground, with joint PD that holds this
# pose. ``follow`` evaluates the PD in every step of 1 ms.

robot = load_robot('go1')
sim = Simulator(robot, 'ncp', gravity=GRAVITY)
q = sim.standing_configuration().copy()
q[2] += HEIGHT
sim.reset(q)
stiffness, damping = np.full(12, 60.0), np.full(12, 3.0)  # [N m/rad], [N m s/rad]
command = holding(robot.joint_positions(q), stiffness, damping)
reports = [sim.follow(command, 1) for _ in range(round(DURATION / sim.time_step))]

# %%
# ``report.contacts`` has a row per foot. A force is an impulse over the time step: that of an
# impact is large and short, so impulses are what to look at.

time = np.array([report.time for report in reports])
height = np.array([report.q[2] for report in reports])
lift = np.array([report.contacts.force[:, 2].sum() for report in reports])
impulse = np.cumsum(lift) * sim.time_step

landing, expected_landing = time[np.argmax(lift > 0.0)], np.sqrt(2.0 * HEIGHT / GRAVITY)
weight = GRAVITY * robot.total_mass
print(f'landing    {1e3 * landing:8.2f} ms    sqrt(2 H/g) {1e3 * expected_landing:8.2f} ms')
print(f'impulse    {impulse[-1]:8.3f} N s   m g T       {weight * DURATION:8.3f} N s')

# %%
# While the robot falls the ground runs into debt, :math:`m g t`. Legs that bend pay it back within
# a tenth of a second; stiffer ones would do so faster and with larger forces, but the sum is the
# same.

debt = weight * expected_landing
figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(7.0, 5.5), layout='constrained')
upper.plot(time, height, color='#0072B2')
upper.set(ylabel='height of the base [m]', title='go1 dropped from 0.2 m')
lower.plot(time, weight * time, '--', color='0.5', label='by gravity, m g t')
lower.plot(time, impulse, color='#D55E00', label='by the ground, ∫ F dt')
lower.annotate(
    f'debt at the landing: m √(2 g H) = {debt:.1f} N s',
    (expected_landing, 0.5 * debt), (0.45, 0.25 * debt), arrowprops={'arrowstyle': '->'},
)  # fmt: skip
for axes in (upper, lower):
    axes.axvline(expected_landing, color='0.8', zorder=0)
lower.set(xlabel='time [s]', ylabel='impulse [N s]')
lower.legend()

assert abs(landing - expected_landing) <= 2.0 * sim.time_step
assert abs(impulse[-1] / (weight * DURATION) - 1.0) < 1e-5
plt.show()
