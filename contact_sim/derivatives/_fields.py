"""Names and shapes of the arrays of one linearised step, laid out as those of a step.

A row is one equation of the solved problem: three of each contact that carries an impulse, one of
each interval row that takes part, one of each bilateral row. An input is a column: the tangent of
q, then v, then the efforts of the joints.

Every field has a constant of its name in capitals, its number, as in arrays/_fields.py.
"""

from __future__ import annotations

from contact_sim.arrays._fields import Shape, Sizes, consecutive, layout_table


def number_shapes(sizes: Sizes) -> dict[str, Shape]:
    """Shape of every field of numbers; R rows at most, m inputs."""
    nv, nb, nj = sizes.nv, sizes.n_bodies, sizes.n_joints
    R, m, all_rows = sizes.rows + sizes.nb, 2 * sizes.nv + sizes.n_joints, sizes.rows
    return {
        # results for all inputs; what every result keeps
        'velocity': (nv, m), 'configuration': (nv, m), 'scales': (2,),
        'margin': (sizes.nc + sizes.ns,),
        # one equation per row: A dλ + B du⁺ + C du⁻ + gap dφ + mu dμ + weight dw + ... = 0
        'on_impulse': (R, 3), 'on_velocity': (R, 3), 'on_start': (R, 3), 'on_gap': (R,),
        'on_friction': (R,), 'on_time': (R,), 'on_restitution': (R,), 'on_bound': (R,),
        'on_weight': (R, 2),
        # dλ of the solved rows for all inputs, ∂(Fᵀ)/∂q λ of the contacts
        'impulse': (R * m,), 'force_slope': (R, nv),
        # kinematics at the start of the step
        'origin': (3,), 'pose': (nb, 12), 'columns': (nv, 6), 'inertia': (nb, 10),
        'twist': (nb, 6), 'twist_next': (nb, 6), 'rate': (nb, 6), 'axes': (nv, 18),
        'wrench': (nb, 6), 'couple': (nb, 12), 'dq': (nv, nv), 'dv': (nv, nv),
        'effort_slope': (2, nj), 'v_law': (nv,), 'law_velocity': (R,),
        'dq_undamped': (nv, nv), 'dv_undamped': (nv, nv), 'undamped': (nv * (m + R),),
        # h ∂τ/∂q of external wrenches, filled before
        'pushed': (nv, nv),
        # filled before, where a step has more than contacts of spheres: −∂r/∂q, and of all rows
        # ∂(J v⁺)/∂q, ∂(J v)/∂q, ∂φ/∂q; of bilateral rows to q and v
        'given_force': (nv, nv), 'given_next': (all_rows, nv), 'given_start': (all_rows, nv),
        'given_gap': (all_rows, nv),
        'given_turn': (all_rows, nv), 'given_bilateral': (sizes.nb, 2 * nv),
        'weight_slope': (R, 2 * nv),
        # ∂(J v⁺)/∂q, ∂(J v)/∂q, ∂φ/∂q of the rows
        'rows_jacobian': (R, nv), 'motion_next': (R, nv), 'motion_start': (R, nv),
        'gap_slope': (R, nv),
        # M̂⁻¹ [∂, Jᵀ], J of it, the system and its solution
        'right': (nv * (m + R),), 'response': (R * (m + R),), 'system': (R * R,),
        'free': (nv, m), 'own': (nv, m),
    }  # fmt: skip


def index_shapes(sizes: Sizes) -> dict[str, Shape]:
    """Shape of every field of indices."""
    R = sizes.rows + sizes.nb
    return {
        'counts': (10,), 'row_of': (R,), 'solved': (R,), 'modes': (sizes.nc + sizes.ns,),
        'dof_first': (sizes.nv,), 'dof_body': (sizes.nv,), 'surface': (sizes.nc,),
    }  # fmt: skip


(
    CONTACTS, ROWS, BILATERAL, SINGULAR, GIVEN, UNSUPPORTED, UNDAMPED, NEEDS_GIVEN, PUSHED, SOLVED,
) = range(10)  # fmt: skip
"""Places of the field `counts`: contacts that carry, rows, bilateral rows, whether the system is
singular, whether the fields `given_...` are filled, a reason why there is no derivative, whether
the law sees the damping of the start, whether a contact has no formula and needs `given_...`,
whether external wrenches act, rows that are solved for."""
NO_REASON, GUARDED = 0, 1
"""Reasons: none; the energy guard has cut restitution."""
OPEN, STICK, SLIDE = 0, 1, 2
"""Modes of contacts; of interval rows OPEN is at a bound, STICK inside."""


def places_of(sizes: Sizes) -> dict[str, tuple[int, int, Shape]]:
    """Return first and last place, and shape, of every field."""
    return {**consecutive(number_shapes(sizes)), **consecutive(index_shapes(sizes))}


_EMPTY = Sizes(0, 0, 0, 0, 0)
FIELDS = tuple(places_of(_EMPTY))
INDEX_FIELDS = frozenset(index_shapes(_EMPTY))
_NUMBERS = {f'D_{name.upper()}': number for number, name in enumerate(FIELDS)}
globals().update(_NUMBERS)
derivative_layout = layout_table


def __getattr__(name: str) -> int:
    """Tell type checkers that every field has its number here."""
    raise AttributeError(f'contact_sim.derivatives._fields has no field {name!r}')
