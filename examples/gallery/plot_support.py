r"""
Support: what a set of feet can hold
====================================

With :math:`J` of the feet that stand and :math:`J_b` its columns of the base, a quadruped has

* :math:`6 - \mathrm{rank}\,J_b` motions of the base that no force of these feet can act on,
* :math:`\mathrm{rank}\,J - \mathrm{rank}\,J_b` internal forces, which move nothing.

The table of the quadruped in Hutter's lecture, computed for every set of feet.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np

from contact_sim import analyse_support, load_robot

robot = load_robot('anymal_b')
q = robot.reference_configuration()
feet = [foot.name for foot in robot.contact_points]
LECTURE = {0: (0, 0, 0, 6), 1: (3, 3, 0, 3), 2: (6, 5, 1, 1), 3: (9, 6, 3, 0), 4: (12, 6, 6, 0)}


def numbers(support):
    """Return rank J, rank J_b, internal forces and motions out of reach."""
    return (
        support.rank, support.base_rank, support.internal_constraints,
        support.uncontrollable_base_dof,
    )  # fmt: skip


# %%
# All sixteen sets of feet, by their number: sets of as many feet have the same ranks.

print('feet  rank J  rank J_b  internal  out of reach')
for count, expected in LECTURE.items():
    found = {numbers(analyse_support(robot, q, some)) for some in combinations(feet, count)}
    print('{:4d}  {:6d}  {:8d}  {:8d}  {:12d}'.format(count, *expected))
    assert found == {expected}

# %%
# Two feet leave one motion: the rotation about the line through them. No force at these feet has a
# moment about it, so the robot as a whole falls about this line, whatever its joints do; a trot
# lives with that until the next feet come down.

diagonal = analyse_support(robot, q, ['LF_FOOT', 'RH_FOOT'])
(motion,) = diagonal.uncontrollable_base_directions
print(motion.name)
first, second = diagonal.stance.position
line = (second - first) / np.linalg.norm(second - first)
assert abs(abs(motion.direction @ line) - 1.0) < 1e-9

# %%
# Seen from above: the feet that stand, their support polygon, the centre of mass (cross), and for
# two feet the line about which the robot falls.

everywhere = analyse_support(robot, q, feet).stance.position
sets = [feet[:1], ['LF_FOOT', 'RH_FOOT'], feet[:3], feet]
figure, panels = plt.subplots(1, 4, figsize=(10.0, 4.0), sharey=True, layout='constrained')
for axes, some in zip(panels, sets, strict=True):
    support = analyse_support(robot, q, some)
    axes.plot(*everywhere[:, :2].T, 'o', mfc='white', mec='0.6')
    axes.fill(*support.polygon[:, :2].T, color='#56B4E9', alpha=0.4, lw=0)
    for motion in support.uncontrollable_base_directions if len(some) == 2 else ():
        ends = motion.point + np.array([[-0.6], [0.6]]) * motion.direction
        axes.plot(*ends[:, :2].T, '--', color='#D55E00', label='rotation out of reach')
    axes.plot(*support.stance.position[:, :2].T, 'o', color='#0072B2')
    axes.plot(*support.centre_of_mass[:2], 'kx')
    rank, base, internal, lost = numbers(support)
    axes.set_title(f'internal forces: {internal}\nout of reach: {lost}', fontsize='medium')
    axes.set(xlabel='x [m]', aspect='equal', xlim=(-0.5, 0.5), ylim=(-0.5, 0.35))
panels[0].set_ylabel('y [m]')
panels[1].legend(loc='lower center', fontsize='small')
plt.show()
