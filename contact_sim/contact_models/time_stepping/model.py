"""Base of the time-stepping models: one compiled law for whole steps and for single problems."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from contact_sim.arguments import checked
from contact_sim.contact.problem import Array, ContactProblem
from contact_sim.contact.problem_arrays import ProblemArrays
from contact_sim.contact.solution import STATUSES, ContactSolution, SolverReport
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.protocol import Stepper
from contact_sim.contact_models.time_stepping.stepper import LawSettings, TimeStepping
from contact_sim.parameters import Parameters


@dataclass(frozen=True)
class CompiledLaw:
    """The entries of one law: whole steps, and the answer to one problem."""

    advance: Callable[..., None]
    """(numbers, indices, layout, steps): advance every world by that many steps."""
    answer: Callable[..., None]
    """(numbers, indices, layout): solve the problem in the arrays."""


class TimeSteppingModel(ABC):
    """A time-stepping model: its parameters as numbers, and the compiled law that reads them."""

    name: ClassVar[str]
    parameter_class: ClassVar[type[Parameters]]
    compiled: CompiledLaw
    has_memory: bool = False
    """True where the law keeps something of each contact from step to step."""
    margin: float = 0.0
    """Gap within which every contact takes part in the problem [m]."""
    damping_inertia: float = 0.0
    """Damping inertia over the diagonal of M [-]."""
    restitutes: ClassVar[bool] = True
    """False for a law whose impacts are plastic."""

    parameters: Any
    """The model's parameters."""

    @abstractmethod
    def reach(self, h: float) -> tuple[float, float]:
        """Return (T, κ): the law may act on contacts with φ + T (u_n − κ μ |u_t|) < 0."""

    @abstractmethod
    def law_numbers(self) -> tuple[float, ...]:
        """Return what the compiled law reads from the field `law`."""

    def settings(self, h: float) -> LawSettings:
        """Return the settings of the law that the common stages read."""
        return LawSettings(
            (*self.reach(h), self.margin), self.law_numbers(), self.has_memory, self.restitutes,
            self.damping_inertia,
        )  # fmt: skip

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law."""
        settings = self.settings(float(workspace.data.time_step[0]))
        return TimeStepping(workspace, self.compiled.advance, settings)

    @checked
    def solve(self, problem: ContactProblem, guess: Array | None = None) -> ContactSolution:
        """Return the impulses that answer `problem`, starting from `guess` [N s]."""
        arrays = ProblemArrays(problem, guess)
        numbers = self.law_numbers()
        arrays.law[: len(numbers)] = numbers
        self.compiled.answer(*arrays.arrays)
        code, iterations, residual = arrays.island_solver[0]
        report = SolverReport(STATUSES[int(code)], int(iterations), float(residual))
        return ContactSolution(arrays.row_impulse.copy(), report)
