"""What all time-stepping laws have in common: the two faces of one solve."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from contact_sim.contact.problem import Array, ContactProblem
from contact_sim.contact.solution import STATUSES, ContactSolution, SolverReport
from contact_sim.contact.workspace import ContactRows, Workspace
from contact_sim.contact_models.protocol import Stepper
from contact_sim.contact_models.time_stepping import TimeStepping


class Law(ABC):
    """A time-stepping model; a subclass states its reach and solves rows."""

    name: ClassVar[str]

    @property
    def remembers(self) -> bool:
        """True where the law keeps something of each contact in `rows.memory_next`."""
        return False

    @property
    def margin(self) -> float:
        """Gap within which every contact takes part in the problem [m]."""
        return 0.0

    @abstractmethod
    def reach(self, h: float) -> tuple[float, float]:
        """Return (T, κ): the law may act on contacts with φ + T (u_n − κ μ |u_t|) < 0."""

    @abstractmethod
    def solve_rows(self, rows: ContactRows) -> tuple[int, int, float]:
        """Improve `rows.impulse` in place; return (status code, iterations, residual)."""

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law."""
        return TimeStepping(workspace, self)

    def solve(self, problem: ContactProblem, guess: Array | None = None) -> ContactSolution:
        """Return the impulses that answer `problem`, starting from `guess` [N s]."""
        rows = ContactRows.of(problem, guess)
        code, iterations, residual = self.solve_rows(rows)
        return ContactSolution(rows.impulse, SolverReport(STATUSES[code], iterations, residual))
