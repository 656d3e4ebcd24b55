"""Laws of contact that each model may violate, with the reason.

Keys are fields of `step.Residuals`; the tests run over this table in both directions:
what is not listed stays zero, and what is listed does show.
"""

from __future__ import annotations

LAWS: dict[str, str] = {
    'penetration': (
        'bodies do not overlap, to second order in h: a turn takes a contact point off its '
        'tangent by up to d = h² |ω|² r / 2 in a step, which tumbling adds up to d/β [m]'
    ),
    'signorini': 'a normal force acts only where the gap closes exactly [J]',
    'force_at_distance': 'no normal force while the gap is open after the step [N s]',
    'cone': 'the friction force stays inside the circular cone [N s]',
    'dissipation': 'friction opposes the slip as strongly as it may [J]',
    'ncp': 'natural map: Signorini, Coulomb and maximum dissipation at once [N s]',
    'slip': 'a loaded contact inside its cone does not move along the ground [m/s]',
    'momentum': 'the change of momentum equals the impulses [N s]',
}
"""Name of a residual: the law that it measures, in words."""

_COMPLIANT = 'the ground yields: load needs depth'
_REGULARISED = 'friction is regularised: load along the ground needs speed (creep)'

MAY_BREAK: dict[str, dict[str, str]] = {
    'null_space': {
        'cone': 'feet are held by whatever force it takes: no limit of friction, no sign',
        'ncp': 'as above; the status of the step says so',
    },
    'compliant': {
        'penetration': _COMPLIANT,
        'signorini': _COMPLIANT,
        'dissipation': 'an anchor that is loaded, or lets go, yields at less than the bound',
        'ncp': f'{_COMPLIANT}, along the ground as well',
        'slip': 'an anchor is a spring: a foot moves while its load changes (and then no more)',
    },
    'hybrid': {
        'dissipation': 'the force is the mean over a step in which the slip turns: O(h²)',
        'ncp': 'as above; the judge freezes J, M and the slip over the step, the model does not',
    },
    'lcp': {
        'dissipation': 'the direction of friction snaps to the edges of the pyramid',
        'ncp': 'the pyramid lies inside the circular cone',
    },
    'anitescu': {
        'signorini': 'a sliding contact lifts off with u_n = μ |u_t| and keeps its force',
        'force_at_distance': 'a sliding contact hovers up to h μ |u_t| over the ground',
        'ncp': 'as above: the law minimises energy over the cones, nothing more',
    },
    'todorov': {
        'penetration': _COMPLIANT,
        'signorini': _COMPLIANT,
        'force_at_distance': 'the force ends one step after the contact has opened',
        'dissipation': 'the minimum weighs slip against compliance, on the edges of a pyramid',
        'ncp': f'{_COMPLIANT}; {_REGULARISED}; the pyramid lies inside the circular cone',
        'slip': _REGULARISED,
    },
    'sap': {
        'penetration': _COMPLIANT,
        'signorini': _COMPLIANT,
        'cone': 'friction is bounded by the normal force of the start of the step (lagged)',
        'dissipation': 'as above, and below the stiction tolerance it is weaker than Coulomb',
        'ncp': f'{_COMPLIANT}; {_REGULARISED}',
        'slip': _REGULARISED,
    },
    'ncp': {},
}
"""Name of a contact model: the laws that it may break at its defaults, and why."""

_GLIDES = 'the minimum weighs friction against the normal force: u_n grows with μ |u_t|'

LIFTS_OFF: dict[str, dict[str, str]] = {
    'anitescu': {'': 'a sliding contact leaves the ground with u_n = μ |u_t|'},
    'todorov': {'': _GLIDES},
    'sap': {'approximation: similar': _GLIDES, 'approximation: sap': _GLIDES},
}
"""Model to {option, or nothing for all: why a contact that slides leaves the ground under it}."""

_SPRINGS = 'contacts are springs: they give back energy that they stored in the steps before'

MAY_GAIN_ENERGY: dict[str, str] = {
    'null_space': 'feet are held by whatever force it takes: a pull over a gap does work',
    'compliant': _SPRINGS,
    'sap': _SPRINGS,
    'todorov': _SPRINGS,
    'hybrid': (
        'impacts are inside the step, so λᵀ b of its mean force is no bound; on planes it gains '
        'the error of Runge-Kutta (below 1e-9 J/kg), elsewhere also what its steps of ncp gain'
    ),
}
"""Model: why the energy may rise in a step without efforts, with e = 0, on ground at rest.

Under every other model ΔT + ΔU ≤ −λᵀ b + ε in each step, up to rounding (theory 2.15): the work of
pushing out what is too deep, and the error of explicit velocity products, which is
½ h² |ω × I ω|² in the norm of I⁻¹ for a free body."""
