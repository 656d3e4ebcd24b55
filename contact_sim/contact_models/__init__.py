"""The contact models, and the presets that reproduce other engines, by name."""

from __future__ import annotations

from contact_sim.contact_models._anitescu import Anitescu, AnitescuParameters
from contact_sim.contact_models._base import ContactModel, LawSettings, Stepper, TimeSteppingModel
from contact_sim.contact_models._compliant import Compliant, CompliantParameters
from contact_sim.contact_models._lcp import Lcp, LcpParameters
from contact_sim.contact_models._ncp import Ncp, NcpParameters
from contact_sim.contact_models._null_space import NullSpace, NullSpaceParameters
from contact_sim.contact_models._presets import PRESETS, Preset
from contact_sim.contact_models._sap import Sap, SapParameters
from contact_sim.contact_models._todorov import Todorov, TodorovParameters
from contact_sim.contact_models.hybrid._hybrid import Hybrid, HybridParameters
from contact_sim.errors import InvalidInput, known_name, shown

__all__ = [
    'CONTACT_MODELS',
    'Anitescu',
    'AnitescuParameters',
    'Compliant',
    'CompliantParameters',
    'ContactModel',
    'Hybrid',
    'HybridParameters',
    'LawSettings',
    'Lcp',
    'LcpParameters',
    'Ncp',
    'NcpParameters',
    'NullSpace',
    'NullSpaceParameters',
    'Preset',
    'Sap',
    'SapParameters',
    'Stepper',
    'TimeSteppingModel',
    'Todorov',
    'TodorovParameters',
    'as_contact_model',
    'contact_models',
    'model_names',
    'presets',
]

CONTACT_MODELS: dict[str, type[ContactModel]] = {
    'null_space': NullSpace,
    'compliant': Compliant,
    'hybrid': Hybrid,
    'lcp': Lcp,
    'anitescu': Anitescu,
    'todorov': Todorov,
    'sap': Sap,
    'ncp': Ncp,
}
"""Name of each contact model: its class."""


def contact_models() -> tuple[str, ...]:
    """Return the names of the contact models."""
    return tuple(CONTACT_MODELS)


def presets() -> dict[str, Preset]:
    """Return the presets by name: contact models with the parameters of an engine."""
    return dict(PRESETS)


def model_names() -> tuple[str, ...]:
    """Return every name that stands for a contact model: the models, then the presets."""
    return (*CONTACT_MODELS, *PRESETS)


def as_contact_model(model: str | ContactModel) -> ContactModel:
    """Return a model from its name (with default parameters), that of a preset, or an instance.

    Raises:
        UnknownName: a name that is neither in CONTACT_MODELS nor in `presets`.
        InvalidInput: an object that is not a contact model.
    """
    if isinstance(model, str):
        name = known_name('contact model', model, model_names())
        if name in CONTACT_MODELS:
            return CONTACT_MODELS[name]()
        chosen = PRESETS[name]
        return CONTACT_MODELS[chosen.model](**chosen.parameters)
    if isinstance(model, type) or not hasattr(model, 'bind'):
        raise InvalidInput(
            f"contact_model = {shown(model)}: expected a name or an instance, such as 'ncp' or "
            'contact_sim.Sap(stiffness=1e5)'
        )
    return model
