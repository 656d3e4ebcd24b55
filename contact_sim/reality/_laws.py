"""The laws under test, with the parameters of each that a fit to measured motions may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields, positive, real_array
from contact_sim.contact_models import CONTACT_MODELS, ContactModel, presets
from contact_sim.errors import InvalidInput, UnknownName, one_line


@checked_fields
@dataclass(frozen=True)
class Free:
    """A parameter that is fitted, with its bounds.

    Raises:
        InvalidInput: bounds that are not finite with low < high; log scale with low <= 0.
    """

    name: str
    unit: str
    low: float
    high: float
    log: bool = False
    """Whether the fit works on its logarithm."""

    def __post_init__(self) -> None:
        if not (-np.inf < self.low < self.high < np.inf) or (self.log and self.low <= 0.0):
            raise InvalidInput(
                f'Free {self.name!r}: bounds {self.low}, {self.high}: expected finite numbers, '
                f'low < high{", low > 0" if self.log else ""}'
            )

    def value(self, share: ArrayLike) -> Array:
        """Return the value at a share in [0, 1] of the way from the lower to the upper bound."""
        x = np.asarray(share, dtype=float)
        if self.log:
            return np.asarray(self.low * (self.high / self.low) ** x)
        return np.asarray(self.low + (self.high - self.low) * x)

    def share(self, value: float) -> float:
        """Return the place of a value between the bounds, the inverse of `value`."""
        if self.log:
            return float(np.log(value / self.low) / np.log(self.high / self.low))
        return float((value - self.low) / (self.high - self.low))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A contact law with values: what is simulated."""

    model: ContactModel
    friction: float
    restitution: float = 0.0


@dataclass(frozen=True)
class Law:
    """A contact law under test."""

    name: str
    """Of the contact model or preset, or of a variant."""
    model: str
    """Name of the contact model."""
    fixed: Mapping[str, float | str]
    """Parameters of the model that are not at their defaults."""
    free: tuple[Free, ...]
    same_as: tuple[str, ...] = ()
    """Presets that are the same law with the same parameters."""

    def candidate(self, values: Sequence[float] | Array) -> Candidate:
        """Return the law with values of its free parameters, in their order.

        Raises:
            InvalidInput: a wrong number of values, or values that the model refuses.
        """
        numbers = real_array('values', values)
        if numbers.shape != (len(self.free),):
            raise InvalidInput(f'values of {self.name}: expected {len(self.free)} numbers')
        chosen = dict(zip((one.name for one in self.free), numbers.tolist(), strict=True))
        friction, restitution = chosen.pop('friction'), chosen.pop('restitution', 0.0)
        model = CONTACT_MODELS[self.model](**{**self.fixed, **chosen})
        return Candidate(model, friction, restitution)

    def default(self, friction: float) -> Candidate:
        """Return the law as its users get it: parameters at their defaults, no restitution."""
        return Candidate(CONTACT_MODELS[self.model](**dict(self.fixed)), friction)

    __repr__ = one_line


VARIANTS = {
    'sap_similar': ('sap', {'approximation': 'similar'}),
    'sap_sap': ('sap', {'approximation': 'sap'}),
    'kelvin_voigt': ('compliant', {'normal_law': 'kelvin_voigt'}),
    'kelvin_voigt_piecewise': (
        'compliant', {'normal_law': 'kelvin_voigt', 'friction_law': 'piecewise'},
    ),
    'hybrid_poisson': ('hybrid', {'impact': 'poisson'}),
}  # fmt: skip
"""Further forms of the models, by name: model and parameters."""
SINKING = (1e-6, 5e-3)
"""Depth [m] to which springs within the bounds give way under the weight on one contact."""


@checked
def laws(weight: float, shortest: float) -> tuple[Law, ...]:
    """Return all contact models, presets and variants, each law once.

    Args:
        weight: of the body [N]; bounds of stiffness follow from it.
        shortest: time constant [s] from which that of soft constraints is sought.

    Raises:
        InvalidInput: values that are not finite and > 0.
    """
    positive('weight', weight, 'N')
    positive('shortest', shortest, 's')
    entries: list[tuple[str, str, Mapping[str, float | str]]] = [
        (name, name, {}) for name in CONTACT_MODELS
    ]
    entries += [(name, preset.model, preset.parameters) for name, preset in presets().items()]
    entries += [(name, model, parameters) for name, (model, parameters) in VARIANTS.items()]
    found: dict[tuple[str, str], Law] = {}
    for name, model, parameters in entries:
        value = CONTACT_MODELS[model](**dict(parameters))
        key = model, repr(value.parameters)
        if key in found:
            first = found[key]
            found[key] = Law(
                first.name, first.model, first.fixed, first.free, (*first.same_as, name)
            )
            continue
        free = free_parameters(model, parameters, weight, shortest)
        found[key] = Law(name, model, dict(parameters), free)
    return tuple(found.values())


def free_parameters(
    model: str, fixed: Mapping[str, float | str], weight: float, shortest: float
) -> tuple[Free, ...]:
    """Return what is fitted of a contact model: friction, and how it gives way or rebounds."""
    friction = Free('friction', '', 0.02, 1.0, log=True)
    stiffness = Free('stiffness', 'N/m', weight / SINKING[1], weight / SINKING[0], log=True)
    if model in ('ncp', 'lcp', 'anitescu', 'hybrid'):
        return friction, Free('restitution', '', 0.0, 0.95)
    if model == 'null_space':  # its impacts are plastic
        return (friction,)
    if model == 'todorov':
        return (
            friction, Free('time_constant', 's', shortest, 25.0 * shortest, log=True),
            Free('damping_ratio', '', 0.05, 2.0, log=True),
        )  # fmt: skip
    if model == 'compliant':
        if fixed.get('normal_law') == 'kelvin_voigt':
            return friction, stiffness, Free('damping_ratio', '', 0.01, 2.0, log=True)
        # hunt_crossley is k x^1.5: the same depths under the same weight
        low, high = (weight / depth**1.5 for depth in reversed(SINKING))
        hertz = Free('stiffness', 'N/m^1.5', low, high, log=True)
        return friction, hertz, Free('dissipation', 's/m', 0.02, 500.0, log=True)
    if model == 'sap':
        if fixed.get('approximation') == 'sap':
            return friction, stiffness, Free('relaxation_time', 's', 1e-4, 0.5, log=True)
        return friction, stiffness, Free('dissipation', 's/m', 0.02, 500.0, log=True)
    raise UnknownName('contact model', model, CONTACT_MODELS)
