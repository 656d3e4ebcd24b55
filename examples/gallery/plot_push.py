r"""
Push recovery: who takes the momentum
=====================================

A robot that trots in place is pushed to the side with an impulse :math:`J`. Momentum can only go
where it came from, into the ground:

.. math:: m\,v_y(t) = \int_0^t (F_{\mathrm{push}} + F_{\mathrm{ground}})\,\mathrm{d}t,

whatever the controller does. What it can do is to step where the robot will come to rest, near the
capture point :math:`\xi = y + v_y \sqrt{z/g}`.
"""

import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin

from contact_sim import Simulator, load_robot
from contact_sim.control import Trot

GRAVITY, DURATION, BEGIN, END, PUSH = 9.81, 3.0, 1.0, 1.1, 120.0

# %%
# The integrator ``momentum`` keeps linear and angular momentum of the whole robot to rounding; the
# default to the first order of the time step. Wrenches act on a frame: force [N] and torque [N m],
# world axes.

robot = load_robot('go1')
sim = Simulator(robot, 'ncp', integrator='momentum', gravity=GRAVITY)
trot = Trot(robot)
model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
rows, feet = [], []
while sim.time < DURATION - 1e-9:
    pushed = BEGIN <= sim.time + 1e-9 < END
    wrench = {'trunk': [0.0, PUSH, 0.0, 0.0, 0.0, 0.0]} if pushed else {}
    report = sim.step(trot.effort(sim.time, sim.q, sim.v), wrench)
    centre = pin.centerOfMass(model, data, report.q, report.v)
    ground = report.contacts.force[:, 1].sum()
    rows.append([report.time, centre[1], centre[2], data.vcom[0][1], PUSH * pushed, ground])
    down = report.contacts.normal_force > 0.0
    feet.append(np.where(down, report.contacts.position[:, 1], np.nan))
time, y, z, speed, push, ground = np.array(rows).T

# %%
# Both sides of the equation, at every step.

given, taken = np.cumsum([push, ground], axis=1) * sim.time_step
momentum = robot.total_mass * speed
error = np.abs(momentum - given - taken).max()
print(f'pushed with {given[-1]:.3f} N s, the ground took {-taken[-1]:.3f} N s')
print(f'largest error of the balance: {error:.1e} N s')

# %%
# The robot is moved by a quarter of a metre, and the first steps after the push land on its far
# side, where the capture point is.

capture = y + speed * np.sqrt(z / GRAVITY)
figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8.0, 6.0), layout='constrained')
upper.axvspan(BEGIN, END, color='0.9', lw=0)
upper.plot(time, given, color='#0072B2', label='∫ push')
upper.plot(time, taken, color='#D55E00', label='∫ ground')
upper.plot(time, momentum, color='0.3', label='m v_y')
upper.set(ylabel='momentum to the side [N s]', title=f'{PUSH * (END - BEGIN):g} N s to the side')
upper.legend()
lower.axvspan(BEGIN, END, color='0.9', lw=0)
lower.plot(time, feet, color='0.6', lw=3, label=['feet on the ground', *3 * ['_']])
lower.plot(time, y, color='#0072B2', label='centre of mass')
lower.plot(time, capture, '--', color='#D55E00', label='capture point ξ')
lower.set(xlabel='time [s]', ylabel='y [m]')
lower.legend()

assert error < 1e-9
assert abs(speed[-1]) < 0.05
assert sim.q[2] > 0.9 * robot.reference_configuration()[2]
plt.show()
