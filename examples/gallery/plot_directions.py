r"""
Directions: how round is a friction cone?
=========================================

Coulomb's friction is as strong in all directions. Engines that solve linear complementarity
problems replace its cone: by a pyramid of :math:`k` edges inside it, or by a box with a bound for
each of two axes. Seen along the slip, at an angle :math:`\theta` from the first axis, and in units
of :math:`\mu N`, friction is

* :math:`1` for the cone,
* :math:`\cos(\theta - \theta_e)` for a pyramid with its nearest edge at :math:`\theta_e`,
* :math:`|\cos\theta| + |\sin\theta|` for a box.
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Lcp, Ncp, Simulator, load_robot

GRAVITY, FRICTION, SIDE = 9.81, 0.4, 0.2


def pyramid(sides):
    """Return the closed form of a pyramid with so many edges, a function of the angle."""
    edge = 2.0 * np.pi / sides
    return lambda angle: np.cos(angle - edge * np.round(angle / edge))


models = {
    'cone (ncp)': (Ncp(), np.ones_like, '0.3'),
    'pyramid, 4 edges': (Lcp(sides=4), pyramid(4), '#D55E00'),
    'pyramid, 8 edges': (Lcp(sides=8), pyramid(8), '#0072B2'),
    'box': (Lcp(friction_law='box'), lambda a: abs(np.cos(a)) + abs(np.sin(a)), '#009E73'),
}

# %%
# One step of a cube that slides at 1 m/s, in 48 directions. The force is that of all four corners.

box = load_robot('box_on_slope')
angles = np.linspace(0.0, 2.0 * np.pi, 49)[:-1] + 0.01


def strength(model):
    """Return the friction along the slip, over μ N, in each direction."""
    sim, found = Simulator(box, model, friction=FRICTION, gravity=GRAVITY), []
    for angle in angles:
        along = np.array([np.cos(angle), np.sin(angle), 0.0])
        sim.reset([0.0, 0.0, 0.5 * SIDE, 0.0, 0.0, 0.0, 1.0], [*along, 0.0, 0.0, 0.0])
        force = sim.step([]).contacts.force.sum(axis=0)
        found.append(-force @ along / (FRICTION * force[2]))
    return np.array(found)


measured = {name: strength(model) for name, (model, _, _) in models.items()}
for name, (_, closed_form, _) in models.items():
    values, error = measured[name], np.abs(measured[name] - closed_form(angles)).max()
    print(f'{name:17s} from {values.min():.4f} to {values.max():.4f}   closed form to {error:.0e}')
    assert error < 1e-6

# %%
# Lines are the closed forms, dots are measured. Between its edges a pyramid lets everything slide
# up to :math:`1/\cos(\pi/k)` times as far; on the diagonal a box holds :math:`\sqrt 2` times as
# much.

figure, axes = plt.subplots(
    figsize=(8.0, 5.0), subplot_kw={'projection': 'polar'}, layout='constrained'
)
line = np.linspace(0.0, 2.0 * np.pi, 721)
for name, (_, closed_form, colour) in models.items():
    axes.plot(line, closed_form(line), color=colour, lw=1)
    axes.plot(angles, measured[name], 'o', ms=4, color=colour, label=name)
axes.set(xlabel='direction of the slip', ylim=(0.0, 1.5), yticks=[0.5, 1.0, 1.5])
axes.set_title('Friction along the slip, in units of μ N')
axes.legend(loc='center left', bbox_to_anchor=(1.1, 0.5))
plt.show()
