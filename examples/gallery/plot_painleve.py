r"""
Painlevé's rod: friction without a solution
===========================================

A rigid rod leans at :math:`\tan\theta = 2`, and its lower end slides. With
:math:`G = J M^{-1} J^T` of that end the normal acceleration is :math:`a_n = p f_n - g`,

.. math:: p = G_{nn} - \mu\,\hat u\,G_{nt},

and rigid contact asks for :math:`0 \le f_n \perp a_n \ge 0`. For :math:`p < 0` no force does this:
the rigid laws contradict each other. For this rod :math:`p = 0` at :math:`\mu = 4/3`.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, load_robot

CRITICAL, HALF = 4.0 / 3.0, 0.5
rod = load_robot('painleve_rod')  # 1 kg, 1 m
MASS = np.array([1.0, 1.0, HALF**2 / 3.0])  # along x and z [kg], about y [kg m²]

# %%
# The rod's URDF leans already; the middle is :math:`\tfrac12 \sin\theta` above the floor.


def sliding(speed, model, friction, time_step):
    """Return the simulator and its report after a step in which the end slid at `speed` [m/s]."""
    sim = Simulator(rod, model, friction=friction, time_step=time_step)
    middle = HALF * np.sin(np.arctan(2.0))
    sim.reset([0.0, 0.0, middle, 0.0, 0.0, 0.0, 1.0], [speed, 0.0, 0.0, 0.0, 0.0, 0.0])
    return sim, sim.step([])


_, report = sliding(-1.0, 'ncp', 1.0, 1e-6)
delassus = report.problem.delassus  # rows t1, t2, n of the end that touches
normal, coupling = delassus[2, 2], delassus[2, 0]
print(f'G_nn = {normal:g} 1/kg, G_nt = {coupling:g} 1/kg')

# %%
# ``hybrid`` follows the motion between events, with accelerations: it finds the contradiction and
# says so. By bisection it is found from μ = 4/3 on, and only in one direction of sliding.

fine, bad = 1.0, 2.0
while bad - fine > 1e-6:
    middle = 0.5 * (fine + bad)
    status = sliding(-1.0, 'hybrid', middle, 1e-6)[1].solver.status
    fine, bad = (fine, middle) if status.name == 'INCONSISTENT' else (middle, bad)
status = sliding(-1.0, 'hybrid', 2.0, 1e-6)[1].solver.status
print(f'hybrid reports {status.name} from μ = {bad:.6f}')

# %%
# Impulses have an answer where forces have none: the end jams. Its slip stops at once, and so does
# a part of the energy, without a collision. ``ncp`` and ``lcp`` jam without a word.

jams = {model: sliding(-1.0, model, 2.0, 1e-3) for model in ('ncp', 'lcp', 'hybrid')}
for model, (sim, report) in jams.items():
    energy = 0.5 * MASS @ sim.v[[0, 2, 4]] ** 2
    impulse = sim.time_step * report.contacts.force[0, [0, 2]]
    print(
        f'{model:7s} impulse ({impulse[0]:.6f}, {impulse[1]:.6f}) N s, '
        f'energy 0.5 → {energy:.6f} J, slip {report.contacts.slip_speed[0]:.1e} m/s'
    )

friction = np.linspace(0.0, 2.5, 101)
figure, axes = plt.subplots(figsize=(7.0, 4.0), layout='constrained')
axes.axhspan(-2.0, 0.0, color='0.93')
axes.text(0.1, -1.0, 'no force f_n ≥ 0 keeps the end on the floor')
axes.plot(friction, normal + friction * coupling, '--', color='#0072B2', label='sliding one way')
axes.plot(friction, normal - friction * coupling, color='#D55E00', label='sliding the other way')
axes.plot(bad, 0.0, 'ko', label=f'hybrid says INCONSISTENT from μ = {bad:.4f}')
axes.set(xlabel='friction μ [-]', ylabel='p [1/kg]', xlim=(0.0, 2.5), ylim=(-2.0, 5.0))
axes.set_title('Rod at tan θ = 2: p = 0 at μ = 4/3')
axes.legend(loc='upper left')

assert abs(bad - CRITICAL) < 1e-5
for sim, report in jams.values():
    impulse = sim.time_step * report.contacts.force[0, [0, 2]]
    np.testing.assert_allclose(impulse, [0.402943, 0.3083385], atol=2e-6)
    assert report.contacts.slip_speed[0] < 1e-9
plt.show()
