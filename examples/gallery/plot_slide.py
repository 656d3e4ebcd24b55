r"""
Slide: one brick under eight contact models
===========================================

A cube is launched along the floor at :math:`v_0 = 1` m/s with friction :math:`\mu = 0.4`.
Coulomb's law stops it after

.. math:: d = \frac{v_0^2}{2 \mu g} = 127.42\ \mathrm{mm},

and nothing in it lifts the cube. What do the eight models of contact_sim say?
"""

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import Simulator, contact_models, load_robot

GRAVITY, FRICTION, SPEED, SIDE = 9.81, 0.4, 1.0, 0.2
DURATION = 0.4
EXPECTED = SPEED**2 / (2.0 * FRICTION * GRAVITY)

# %%
# A model is a name. Everything else (robot, ground, rows of the contact problem, integration) is
# the same for all.

box = load_robot('box_on_slope')  # 1 kg, corners touch the ground


def slide(model):
    """Return the way of the cube and the largest height of its lower face above the floor [m]."""
    sim = Simulator(box, model, friction=FRICTION, gravity=GRAVITY)
    sim.reset([0.0, 0.0, 0.5 * SIDE, 0.0, 0.0, 0.0, 1.0], [SPEED, 0.0, 0.0, 0.0, 0.0, 0.0])
    places = []
    for _ in range(round(DURATION / sim.time_step)):
        places.append(sim.step([]).q[:3])
    return places[-1][0], max(place[2] for place in places) - 0.5 * SIDE


way, rise = np.array([slide(model) for model in contact_models()]).T
for name, x, z in zip(contact_models(), way, rise, strict=True):
    print(f'{name:10s}  {1e3 * x:8.3f} mm ({x / EXPECTED - 1.0:+7.2%})   rises {1e3 * z:6.3f} mm')

# %%
# ``null_space`` holds the corners whatever force that takes: it is the model of a stance and knows
# no sliding. ``anitescu``, a convex problem, is right about the distance but lets what slides take
# off with :math:`u_n = \mu |u_t|`. By energy it rises by no more than :math:`(\mu v_0)^2/2 g =
# 8.15` mm. Time stepping sums to :math:`v_0 h/2` less than the integral, and soft models give way.

rows = np.arange(len(way))
figure, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(8.0, 4.0), layout='constrained')
left.axvline(1e3 * EXPECTED, color='0.6', linestyle='--', zorder=0)
left.plot(1e3 * way, rows, 'o', color='#0072B2')
left.annotate(
    'does not slide: 0 mm', (125.6, 0), (126.1, 0), va='center', arrowprops={'arrowstyle': '->'}
)
left.set(yticks=rows, yticklabels=contact_models(), xlabel='stopping distance [mm]')
left.set(xlim=(125.5, 129.0), xticks=[126, 127, 128, 129])
left.set_title(f'closed form {1e3 * EXPECTED:.2f} mm (dashed)', fontsize='medium')
left.invert_yaxis()
right.plot(1e3 * rise, rows, 'o', color='#D55E00')
right.set(xlabel='largest rise [mm]')
right.set_title('closed form 0 mm', fontsize='medium')
for axes in (left, right):
    axes.grid(axis='y', color='0.9')

result = dict(zip(contact_models(), zip(way, rise, strict=True), strict=True))
# semi-implicit steps sum to v0 h/2 less than the integral
for name in ('ncp', 'lcp'):
    assert abs(result[name][0] - (EXPECTED - 0.5e-3 * SPEED)) < 2e-6
assert abs(result['hybrid'][0] - EXPECTED) < 1e-6
assert abs(result['null_space'][0]) < 1e-9
assert 6e-3 < result['anitescu'][1] <= (FRICTION * SPEED) ** 2 / (2.0 * GRAVITY)
assert max(result[name][1] for name in ('ncp', 'lcp', 'hybrid')) < 1e-9
for name in ('compliant', 'todorov', 'sap'):
    assert abs(result[name][0] / EXPECTED - 1.0) < 0.01
plt.show()
