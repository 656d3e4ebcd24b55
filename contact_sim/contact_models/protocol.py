"""Interface of a contact model."""

from __future__ import annotations

from typing import ClassVar, Protocol

from contact_sim.contact.workspace import Workspace
from contact_sim.parameters import Parameters


class Stepper(Protocol):
    """A contact model bound to the arrays of one simulation."""

    def advance(self) -> int:
        """Advance the state by h; return the status of the world (time_stepping/stages.py)."""
        ...

    def update_contacts(self) -> None:
        """Bring placements, M and contact points in line with a new configuration."""
        ...


class ContactModel(Protocol):
    """One way to answer contact.

    A model is immutable: what lasts from step to step lives in the workspace, so that snapshots
    and live switches lose nothing.
    """

    name: ClassVar[str]
    parameter_class: ClassVar[type[Parameters]]

    @property
    def parameters(self) -> Parameters:
        """The model's parameters."""
        ...

    def bind(self, workspace: Workspace) -> Stepper:
        """Return what advances the state held in `workspace`."""
        ...
