"""What the simulation asks of a contact model."""

from __future__ import annotations

from typing import ClassVar, Protocol

from contact_sim.contact.problem import ContactProblem
from contact_sim.contact.solution import ContactSolution
from contact_sim.contact.workspace import ContactRows, Workspace
from contact_sim.parameters import Parameters


class Stepper(Protocol):
    """A contact model bound to the arrays of one simulation."""

    def advance(self) -> bool:
        """Advance the state by h; return False where the result would not be finite."""
        ...

    def update_contacts(self) -> None:
        """Bring contact points and position terms in line with a new configuration."""
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


class ContactLaw(Protocol):
    """The answer of a time-stepping model: all of them build the same problem."""

    @property
    def remembers(self) -> bool:
        """True where the law keeps something of each contact in `rows.memory_next`."""
        ...

    @property
    def margin(self) -> float:
        """Gap within which every contact takes part in the problem [m]."""
        ...

    def reach(self, h: float) -> tuple[float, float]:
        """Return (T, κ): the law may act on contacts with φ + T (u_n − κ μ |u_t|) < 0."""
        ...

    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""
        ...

    def solve(self, problem: ContactProblem) -> ContactSolution:
        """Return the impulses that answer `problem`; the same numbers as `solve_rows`."""
        ...
