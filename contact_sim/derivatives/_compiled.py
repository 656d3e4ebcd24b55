"""The compiled linearisation of a step that was taken, for each law.

choose_modes       which contacts carry, stick or slide; the distance from the next kink
fill_dynamics      ∂/∂q and ∂/∂v of the momentum equation
linearise_law      the equations of the law, row by row
contact_motion     ∂/∂q of J, gaps and frames
weight_slopes      ∂/∂q of the effective masses of soft laws
fill_system, ...   the solution for all inputs, and the results of the step
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contact_sim.arrays import _fields as f
from contact_sim.arrays._views import arrays_of, integers, vector
from contact_sim.contact_models._stages import specialised
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._contact_motion import fill_contact_motion
from contact_sim.derivatives._polyhedral_laws import (
    choose_anitescu_modes,
    choose_lcp_modes,
    linearise_lcp,
    linearise_polyhedral_anitescu,
)
from contact_sim.derivatives._rigid_laws import (
    choose_held,
    choose_rigid_modes,
    linearise_ncp,
    linearise_null_space,
)
from contact_sim.derivatives._soft_laws import (
    choose_soft_modes,
    choose_todorov_modes,
    linearise_compliant,
    linearise_sap,
    linearise_todorov,
    linearise_todorov_2014,
)
from contact_sim.derivatives._step_map import map_columns
from contact_sim.derivatives._system import (
    fill_dynamics,
    fill_response,
    fill_results,
    fill_system,
    list_solved,
    solve_redundant,
    solve_rows,
)
from contact_sim.derivatives._weight_motion import (
    fill_delassus_weight_slopes,
    fill_diagonal_weight_slopes,
)
from contact_sim.solvers._dense import assign
from contact_sim.solvers._jit import entry, kernel


@dataclass(frozen=True)
class CompiledLinearisation:
    """The entry of one law, (numbers, indices, layout) of the steps, then of linearisations."""

    linearise: Callable[..., None]


@kernel
def no_law(data, linear):
    """Do nothing: stands for the kernels of a law."""


choose_modes = linearise_law = fill_weight_slopes = no_law


def linearise(
    numbers: Any, indices: Any, layout: Any, linear: Any, linear_indices: Any, linear_layout: Any
) -> None:
    """Linearise the step that every world has taken."""
    for world in range(linear.shape[0]):
        data = arrays_of(numbers, indices, layout, world)
        own = arrays_of(linear, linear_indices, linear_layout, world)
        choose_modes(data, own)
        fill_dynamics(data, own)
        linearise_law(data, own)
        fill_contact_motion(data, own)
        list_solved(own)
        fill_response(data, own)
        fill_weight_slopes(data, own)
        fill_system(data, own)
        solve_rows(own)
        if integers(own, d.D_COUNTS)[d.SINGULAR] != 0:
            fill_system(data, own)
            solve_redundant(own)
        fill_results(data, own)


def compiled_linearisation(
    name: str, modes: Any, law: Any, **stages: Any
) -> CompiledLinearisation:
    """Return the entry of a law, with its kernels in place of those of the template."""
    own = {'choose_modes': modes, 'linearise_law': law, '__name__': __name__, **stages}
    return CompiledLinearisation(specialised(linearise, f'linearise_{name}', own))


COMPILED = {
    'ncp': compiled_linearisation('ncp', choose_rigid_modes, linearise_ncp),
    'anitescu': compiled_linearisation(
        'anitescu', choose_anitescu_modes, linearise_polyhedral_anitescu
    ),
    'lcp': compiled_linearisation('lcp', choose_lcp_modes, linearise_lcp),
    'todorov': compiled_linearisation('todorov', choose_todorov_modes, linearise_todorov),
    'todorov 2014': compiled_linearisation(
        'todorov_2014', choose_soft_modes, linearise_todorov_2014
    ),
    'sap': compiled_linearisation(
        'sap', choose_soft_modes, linearise_sap, fill_weight_slopes=fill_diagonal_weight_slopes
    ),
    'compliant': compiled_linearisation(
        'compliant',
        choose_soft_modes,
        linearise_compliant,
        fill_weight_slopes=fill_delassus_weight_slopes,
    ),
    'null_space': compiled_linearisation('null_space', choose_held, linearise_null_space),
}
"""Entries by the name of a law."""


@entry
def copy_parts(source, source_indices, numbers, indices, parts):
    """Copy parts of the numbers of one step, from and to (any, 2), and all of its indices."""
    for p in range(parts.shape[0]):
        begin, end = parts[p, 0], parts[p, 1]
        assign(numbers[0, begin:end], source[0, begin:end])
    assign(indices[0], source_indices[0])


@entry
def map_result(numbers, indices, layout, change, own, velocity, configuration):
    """Fill the results of dv⁺ (nv, p) for inputs that are no states, see `map_columns`."""
    data = arrays_of(numbers, indices, layout, 0)
    h = vector(data, f.TIME_STEP)[0]
    map_columns(data, h, change, own, 0, velocity, configuration)
