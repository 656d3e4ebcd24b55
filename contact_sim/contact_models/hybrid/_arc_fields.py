"""Fields of the event-driven model: state, modes and stages of the current arc.

Laid out as in arrays/_fields.py, in arrays of their own. The state of the arc is the one accepted
last; `stage_q` and all that belongs to a configuration are those evaluated last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from contact_sim.arrays._fields import Shape, Sizes, consecutive, layout_table

STAGES = 4  # evaluations per arc of the Runge-Kutta scheme


def number_shapes(sizes: Sizes) -> dict[str, Shape]:
    """Return the shape of every field of the numbers."""
    nq, nv, nc, rows, nb = sizes.nq, sizes.nv, sizes.nc, sizes.rows, sizes.nb
    guards = 2 * nc + sizes.ns
    return {
        # stiction speed [m/s, rad/s], rate α at which drift is taken out [1/s]
        'settings': (2,),
        # the state at the start of the arc, and the one of the stage evaluated last
        'arc_q': (nq,), 'arc_v': (nv,), 'stage_q': (nq,), 'stage_v': (nv,),
        # axes of free flyers at the start of the step, column by column
        'start_axes': (sizes.n_flyers, 9),
        # contact points there, Jᵀ at the contact points, u = J v, J̇ v, nle,
        # τ − nle − D v − K (q − q₀), and v̇
        'position': (nc, 3), 'frame': (nc, 3, 3), 'gap': (nc,), 'feature': (nc,),
        'no_gap': (nc,), 'jacobian_transposed': (nv, rows), 'u': (rows,), 'drift': (rows,),
        'nonlinear_effects': (nv,), 'free_force': (nv,), 'acceleration': (nv,),
        # stages: displacement since the start of the arc, velocity in its axes, and their rates
        'displacement': (nv,), 'fixed_axes_v': (nv,), 'rates': (STAGES, nv),
        'velocity_rates': (STAGES, nv), 'forces': (STAGES, rows),
        # forces [N]: at the stage evaluated last; near which redundant ones stay; in world axes
        'force': (rows,), 'reference': (rows,), 'mean_force': (rows,),
        # impulses of the step so far [N s], contact frames of the start of the step
        'impulse': (rows,),
        # bilateral rows: Ḣ v + kd ḣ + kp h, forces at the stage evaluated last and at all, their
        # mean, impulses of the step so far, H of its start
        'bilateral_feedback': (nb,), 'bilateral_force': (nb,), 'bilateral_forces': (STAGES, nb),
        'bilateral_mean': (nb,), 'bilateral_impulse': (nb,), 'start_jacobian': (nb, nv),
        # 1 where a contact is held; direction of slip that friction opposes, and that at the start
        'closed': (nc,), 'direction': (nc, 2), 'heading': (nc, 2),
        # bounds of the forces of the interval rows [N, N m] and their gaps; 1 where one takes
        # part, and where it does and does not move
        'lower': (sizes.ns,), 'upper': (sizes.ns,), 'interval_gap': (sizes.ns,),
        'interval_closed': (sizes.ns,), 'interval_held': (sizes.ns,),
        # guards at the stage evaluated last, and by how much each may be missed
        'guard': (guards,), 'slack': (guards,), 'allowance': (guards,),
        # what passes zero in an event, and its rate where that is known, else NaN: at the stage
        # evaluated last and at the start, at the last instant without and the first with a
        # violation, and at the one of these two before
        'level': (guards,), 'level_before': (guards,), 'level_low': (guards,),
        'level_high': (guards,), 'level_third': (guards,),
        'rate': (guards,), 'rate_before': (guards,), 'rate_low': (guards,), 'rate_high': (guards,),
    }  # fmt: skip


def index_shapes(sizes: Sizes) -> dict[str, Shape]:
    """Return the shape of every field of the indices."""
    nc, ns = sizes.nc, sizes.ns
    guards = 2 * nc + ns
    return {
        # OPEN, STICK or SLIP; of intervals 0 held, ±1 direction of motion, AWAY from a limit
        'contact_mode': (nc,), 'interval_mode': (ns,),
        # 1 where `direction` is kept
        'frozen': (nc,),
        # 1 for the guards at their bound; those that are watched, and of these the violated ones
        'at_end': (guards,), 'watched': (guards,), 'fresh': (guards,),
        # turns of each slip within the step
        'turns': (nc,),
    }  # fmt: skip


class ArcArrays:
    """`numbers`, `indices`, `layout` of an event-driven stepper, and views of fields by name."""

    def __init__(self, sizes: Sizes) -> None:
        numbers = consecutive(number_shapes(sizes))
        indices = consecutive(index_shapes(sizes))
        self._places = {**numbers, **indices}
        length, whole = (max(stop for _, stop, _ in p.values()) for p in (numbers, indices))
        self.numbers, self.indices = np.zeros((1, length)), np.zeros((1, whole), dtype=np.int64)
        self.layout = layout_table(self._places)

    def __getattr__(self, name: str) -> Any:
        """Return the view of a field, made at its first use."""
        places = self.__dict__.get('_places', {})
        if name not in places:
            raise AttributeError(f'ArcArrays has no field {name!r}')
        start, stop, shape = places[name]
        array = self.indices if name in INDEX_FIELDS else self.numbers
        view = array[0, start:stop].reshape(shape)
        self.__dict__[name] = view
        return view


_NOTHING = Sizes(0, 0, 0, 0, 0)
INDEX_FIELDS = frozenset(index_shapes(_NOTHING))  # those that live in `indices`
FIELDS = (*number_shapes(_NOTHING), *index_shapes(_NOTHING))
"""Names of all fields in the order of their numbers."""
globals().update({name.upper(): number for number, name in enumerate(FIELDS)})


def __getattr__(name: str) -> int:
    """Tell type checkers that every field has its number here."""
    raise AttributeError(f'contact_sim.contact_models.hybrid._arc_fields has no field {name!r}')
