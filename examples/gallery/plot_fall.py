r"""
Replay of a fall: when did it begin?
====================================

A robot is pushed and falls. The run was recorded: replay repeats it to the bit, so the state of
every step is at hand, and from each one can ask *what if the push had ended here?* Bisection finds
the step after which nothing would have helped.

Mechanics has an opinion as well. An inverted pendulum comes to rest over its foot as long as the
capture point

.. math:: \xi = y + \dot y \sqrt{z/g}

of its centre of mass :math:`(y, z)` has not left the foot. Here the foot is the line of the two
left feet.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin

from contact_sim import Simulator, load_robot
from contact_sim.replay import Recorder, Recording, repeat
from contact_sim.robot import holding
from contact_sim.view import MovingScene

GRAVITY, PUSH, BEGIN, END, STEPS = 9.81, [0.0, 60.0, 0.0, 0.0, 0.0, 0.0], 300, 600, 1200
robot = load_robot('go1')  # its trunk and legs touch the ground, too
sim = Simulator(robot, 'ncp', gravity=GRAVITY)
pose = holding(robot.joint_positions(sim.q), np.full(12, 60.0), np.full(12, 3.0))

# %%
# The run: legs that hold their pose, and 60 N to the left from 0.3 s to 0.6 s.

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / 'fall.npz'
with Recorder(sim, path):
    for k in range(STEPS):
        effort = pose.effort_at(robot.joint_positions(sim.q), robot.joint_velocities(sim.v))
        sim.step(effort, {'trunk': PUSH} if BEGIN <= k < END else {})

# %%
# The replay needs the file alone: robot, ground, model and commands are in it.

reports = []
outcome = repeat(Recording(path), lambda step: reports.append(step.report))
assert outcome.equal
assert reports[-1].q.tobytes() == sim.q.tobytes()
print(f'{outcome.steps} steps repeated to the bit, hash {outcome.digest}')
folder.cleanup()

# %%
# *What if* is a reset to a state of the replay and a second and a half without a push.


def falls_from(k):
    """Return whether the robot falls if the push ends before step k."""
    sim.reset(reports[k].q, reports[k].v)
    roll = 2.0 * np.arcsin(sim.follow(pose, 1500).q[3])
    return abs(roll) > 0.5


saved, lost = BEGIN, STEPS - 1
while lost - saved > 1:
    middle = (saved + lost) // 2
    saved, lost = (saved, middle) if falls_from(middle) else (middle, lost)

# %%
# And the capture point.

model, data = robot.pinocchio_model, robot.pinocchio_model.createData()
motion = []
for report in reports:
    centre = pin.centerOfMass(model, data, report.q, report.v)
    motion.append([centre[1], centre[1] + data.vcom[0][1] * np.sqrt(centre[2] / GRAVITY)])
place, capture = np.array(motion).T
left = np.array([report.contacts.position[[0, 2], 1].mean() for report in reports])
crossing = int(np.argmax(capture > left))
print(f'from step {lost} on it falls whatever happens to the push')
print(f'from step {crossing} on the capture point is beyond the left feet')
print(f'the centre of mass gets there only at step {int(np.argmax(place > left))}')

time = np.array([report.time for report in reports])
figure, axes = plt.subplots(figsize=(8.0, 4.0), layout='constrained')
axes.axvspan(1e-3 * BEGIN, 1e-3 * END, color='0.92', lw=0)
axes.text(0.45, 0.37, 'push', ha='center')
axes.plot(time, left, color='0.4', label='left feet')
axes.plot(time, place, color='#0072B2', label='centre of mass')
axes.plot(time, capture, '--', color='#D55E00', label='capture point ξ')
axes.axvline(time[lost], color='k', lw=1)
axes.text(time[lost] - 0.01, 0.28, 'the fall begins,\nby bisection', ha='right')
axes.set(xlabel='time [s]', ylabel='y [m]', xlim=(0.2, 1.0), ylim=(-0.02, 0.4))
axes.set_title('go1 pushed with 60 N to the left')
axes.legend(loc='lower right')

assert abs(lost - crossing) < 20
plt.show()

# %%
# The fall at a third of its speed, to look at from all sides. The red line goes down from the
# centre of mass.

MovingScene(robot, sim.terrain, reports[200::11])
