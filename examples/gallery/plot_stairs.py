r"""
Stairs: a blind trot goes down
==============================

go1 trots down stairs that it does not know of: its controller sees the state of the robot, never
the ground. Whatever it does there, the ground is exact. The point :math:`p - \phi\,n` under a foot
at :math:`p`, with gap :math:`\phi` and normal :math:`n`, lies at :math:`z = -k s` on tread
:math:`k` of stairs of height :math:`s`, and nothing ever sinks in: :math:`\phi \ge 0`.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot
from contact_sim.control import Trot
from contact_sim.terrain import Terraces
from contact_sim.view import MovingScene

RISE, TREAD, STEPS, SPEED, DURATION = 0.04, 0.3, 5, 0.5, 4.5

# %%
# ``Terraces`` are level cells with vertical walls between them, here in one row along x.

edges = 0.4 + TREAD * np.arange(STEPS)
treads = -RISE * np.arange(STEPS + 1)
stairs = Terraces([-1.0, *edges, edges[-1] + 2.0], [-1.0, 1.0], treads[:, None])

robot = load_robot('go1')
sim = Simulator(robot, 'ncp', stairs.as_mesh())
trot = Trot(robot)
trot.velocity = (SPEED, 0.0, 0.0)
reports = []
while sim.time < DURATION - 1e-9:
    reports.append(sim.step(trot.effort(sim.time, sim.q, sim.v)))

# %%
# On a mesh a foot has up to three contacts at once, in a corner for example. Here are all that
# carried load on level ground; a foot that runs into the wall of a step has others there. The
# small gaps are those of a round foot that rolls, of the second order of the time step.


def all_steps(values):
    """Return the values of the loaded, upright contacts of all steps."""
    return np.concatenate([
        values(contacts)[(contacts.normal_force > 0.0) & (contacts.normal[:, 2] > 0.999)]
        for contacts in (report.contacts for report in reports)
    ])  # fmt: skip


base = np.array([report.q[[0, 2]] for report in reports])
gap = all_steps(lambda contacts: contacts.gap)
footholds = all_steps(lambda contacts: contacts.position - contacts.gap[:, None] * contacts.normal)
error = np.abs(footholds[:, 2, None] - treads).min(axis=1).max()
descent = base[0, 1] - base[-1, 1]
print(f'{len(gap)} loaded contacts, at most {error:.1e} m from the height of a tread')
print(f'gaps from {gap.min():.1e} m to {gap.max():.1e} m')
print(f'the base came down by {descent:.3f} m, the stairs by {-treads[-1]:.3f} m')

# %%
# From the side. The feet find every tread; the body follows with a slope of its own.

figure, axes = plt.subplots(figsize=(8.0, 3.6), layout='constrained')
x = np.repeat([-0.3, *edges, 2.2], 2)[1:-1]
axes.fill_between(x, np.repeat(treads, 2), -0.3, color='0.85', lw=0)
axes.plot(*base.T, color='#0072B2', label='base')
axes.plot(
    footholds[::5, 0], footholds[::5, 2], 'o', ms=3, color='#D55E00', label='loaded contacts'
)
axes.set(xlabel='x [m]', ylabel='z [m]', xlim=(-0.3, 2.2), ylim=(-0.3, 0.35), aspect='equal')
axes.set_title(f'go1 on steps of {100 * RISE:g} cm, commanded to go at {SPEED:g} m/s')
axes.legend(loc='upper right')

assert error < 1e-12
assert gap.min() > -1e-12
assert gap.max() < 5e-5
assert abs(descent + treads[-1]) < 0.03
plt.show()

# %%
# The run, to look at from all sides.

MovingScene(robot, sim.terrain, reports[::33])
