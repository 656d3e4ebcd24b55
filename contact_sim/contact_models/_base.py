"""Interface of contact models, and base classes of time-stepping and cone models.

A model binds to the arrays of a simulation (`Workspace`), which gives a `Stepper`. A time-stepping
model has parameters, the numbers that its compiled law reads, and that law (_stages.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from contact_sim._types import Array
from contact_sim._validation import checked, is_finite
from contact_sim.arrays._views import address_of, arrays_of, places_of_worlds
from contact_sim.contact_models._energy_guard import NO_RESTITUTION
from contact_sim.contact_models._momentum import apply_momentum
from contact_sim.contact_models._stages import (
    HAS_MEMORY,
    NOT_FINITE,
    READY,
    CompiledLaw,
    actuate,
    begin_step,
    contact_rows,
    entry_of,
    free_motion,
    place_and_detect,
    place_at_q,
    revert_step,
)
from contact_sim.dynamics._integration import MOMENTUM
from contact_sim.dynamics._rigid_body import PinocchioTerms
from contact_sim.errors import summary
from contact_sim.parameters import (
    Parameters,
    declared_parameters,
    parameter,
    relative_tolerance,
)
from contact_sim.solvers._jit import entry, kernel
from contact_sim.step._bilateral_rows import (
    MAX_PROJECTION_STEPS,
    PythonConstraints,
    project_configuration,
)
from contact_sim.step._moment_rows import FROZEN_ROLLING
from contact_sim.step._problem import (
    STATUSES,
    ContactProblem,
    ContactSolution,
    ProblemArrays,
    SolverReport,
)
from contact_sim.step._workspace import Workspace


class Stepper(Protocol):
    """A contact model bound to the arrays of one simulation."""

    def advance(self) -> int:
        """Advance the state by h; return the status of the world (contact_models/_stages.py)."""
        ...

    def update_contacts(self) -> None:
        """Update placements, M and contact points for a new configuration."""
        ...


class ContactModel(Protocol):
    """Interface of a contact model.

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
        """Return a stepper for the state in `workspace`."""
        ...


def model_summary(model: ContactModel) -> str:
    """Return a model in one line, with the parameters that are not the defaults."""
    parameters = model.parameters
    changed = {
        field.name: getattr(parameters, field.name)
        for field in declared_parameters(type(parameters))  # type: ignore[arg-type]
        if getattr(parameters, field.name) != field.default
    }
    return summary(model, **changed)


# --- Time-stepping models: one compiled law for whole steps and for single problems.


@dataclass(frozen=True)
class LawSettings:
    """Settings of a law that the common stages read."""

    reach: tuple[float, float, float, float]
    """(T, κ, margin, that of limits): the law may act where φ + T (u_n − κ μ |u_t|) < 0 or
    φ ≤ margin."""
    numbers: tuple[float, ...]
    """Parameters, in the order in which the compiled law reads them."""
    has_memory: bool
    restitutes: bool
    damping_inertia: float
    """Damping inertia over the diagonal of M [-], of todorov in its form of 2014."""
    freezes_rolling: bool
    implicit_springs: bool
    """Whether joint springs act at the end of the step; MuJoCo's act at its start."""

    def write(self, workspace: Workspace) -> None:
        """Write these settings into a workspace."""
        workspace.reach[:] = self.reach
        workspace.law[:] = 0.0
        workspace.damping_inertia[0] = self.damping_inertia
        workspace.implicit_springs[0] = self.implicit_springs
        workspace.law[: len(self.numbers)] = self.numbers
        workspace.options[0] = self.has_memory * HAS_MEMORY
        workspace.options[0] |= (not self.restitutes) * NO_RESTITUTION
        workspace.options[0] |= self.freezes_rolling * FROZEN_ROLLING


class TimeSteppingModel(ABC):
    """Base class of time-stepping models with a compiled law."""

    name: ClassVar[str]
    parameter_class: ClassVar[type[Parameters]]
    compiled: CompiledLaw
    has_memory: bool = False
    """True where the law keeps something of each contact from step to step."""
    margin: float = 0.0
    """Gap within which every contact takes part in the problem [m]."""
    limit_margin: float = 0.0
    """Distance within which every limit of a joint does [rad, m]."""
    damping_inertia: float = 0.0
    """Damping inertia over the diagonal of M [-]."""
    implicit_springs: bool = True
    """Whether joint springs act at the end of the step."""
    restitutes: ClassVar[bool] = True
    """False for a law whose impacts are plastic."""
    freezes_rolling: ClassVar[bool] = False
    """True where the axes of rolling friction are those of the motion before the step."""

    parameters: Any
    """The model's parameters."""

    @abstractmethod
    def reach(self, h: float) -> tuple[float, float]:
        """Return (T, κ): the law may act on contacts with φ + T (u_n − κ μ |u_t|) < 0."""

    @abstractmethod
    def law_numbers(self) -> tuple[float, ...]:
        """Return the parameters that the compiled law reads from the field `law`."""

    def settings(self, h: float) -> LawSettings:
        """Return the settings of the law that the common stages read."""
        return LawSettings(
            (*self.reach(h), self.margin, self.limit_margin), self.law_numbers(),
            self.has_memory, self.restitutes, self.damping_inertia, self.freezes_rolling,
            self.implicit_springs,
        )  # fmt: skip

    def bind(self, workspace: Workspace) -> Stepper:
        """Return the time-stepping with this law."""
        settings = self.settings(float(workspace.data.time_step[0]))
        return TimeStepping(workspace, self.compiled.advance, settings)

    @checked
    def solve(self, problem: ContactProblem, guess: Array | None = None) -> ContactSolution:
        """Return the impulses that solve `problem`, starting from `guess` [N s]."""
        arrays = ProblemArrays(problem, guess)
        numbers = self.law_numbers()
        arrays.law[: len(numbers)] = numbers
        self.compiled.answer(*arrays.arrays)
        code, iterations, residual = arrays.island_solver[0]
        report = SolverReport(STATUSES[int(code)], int(iterations), float(residual))
        return ContactSolution(arrays.row_impulse.copy(), report)

    def __repr__(self) -> str:
        return model_summary(self)


class TimeStepping:
    """Steps one workspace with one compiled law.

    Where the tree has joints that the kernels do not know, Pinocchio fills the terms of every
    step; rows of constraints that are Python functions are filled before each step. Both are slow.
    """

    def __init__(
        self, workspace: Workspace, advance: Callable[[int, int], int], settings: LawSettings
    ) -> None:
        settings.write(workspace)
        if not settings.has_memory:
            workspace.data.memory[:] = 0.0
        self._arrays, self._places = workspace.arrays, places_of_worlds(*workspace.arrays)
        self._advance, self._address = advance, address_of(self._places)
        self._status, self._workspace = workspace.status, workspace
        self._terms = PinocchioTerms(workspace) if workspace.external_terms[0] else None
        self._rows = PythonConstraints(workspace) if workspace.table.functions else None
        self._compiled = self._terms is None and self._rows is None

    def advance(self, steps: int = 1) -> int:
        """Advance the state by `steps` steps of h; return the status of the world."""
        if self._compiled:
            return self._advance(self._address, steps)
        for _ in range(steps):
            if self._terms is not None:
                self._advance_with_pinocchio(self._terms)
            elif self._rows is not None:
                self._advance_with_python_constraints(self._rows)
        return int(self._status[0])

    def _advance_with_pinocchio(self, terms: PinocchioTerms) -> None:
        """Advance by one step in which Pinocchio knows nle, M and q ⊕ h v⁺."""
        work, data = self._workspace, self._workspace.data
        clock = data.clock.copy()
        terms.update_velocity(data.q, data.v)
        self._advance(self._address, 1)
        if self._status[0] == READY:
            data.q[:] = terms.moved(data.q_start, work.displacement)
            if work.integrator[0] == MOMENTUM:
                terms.update_configuration(data.q)
                apply_carried_momentum(*self._arrays)
            if not (is_finite(data.q) and is_finite(data.v)):
                self._status[0], data.clock[:] = NOT_FINITE, clock
                revert(*self._arrays)
        self.update_contacts()

    def _advance_with_python_constraints(self, rows: PythonConstraints) -> None:
        """Advance by one step whose rows h(q) and H come from Python functions."""
        with self.restored_on_error():
            rows.update(self._workspace.data.q, self._workspace.data.v)
            self._advance(self._address, 1)
            if self._status[0] == READY:
                project_python_constraints(self._workspace)
                self.update_contacts()

    @contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Return to the step data at hand where a function of the user raises inside."""
        data = self._workspace.data
        before = data.buffer.copy()
        try:
            yield
        except BaseException:
            data.buffer[:] = before
            self.update_contacts()
            raise

    def begin(self) -> int:
        """Fill everything that does not depend on the impulses; return the status."""
        if self._rows is not None:
            self._rows.update(self._workspace.data.q, self._workspace.data.v)
        if self._terms is not None:
            self._terms.update_velocity(self._workspace.data.q, self._workspace.data.v)
        begin(*self._arrays)
        return int(self._status[0])

    def update_contacts(self) -> None:
        """Fill placements, M and contact points at the current q."""
        if self._terms is not None:
            self._terms.update_configuration(self._workspace.data.q)
        refresh(*self._arrays)


def project_python_constraints(work: Workspace) -> None:
    """Project the configuration at the end of a step, fill h there; H stays that of the step."""
    data = work.data
    jacobian = data.bilateral_jacobian.copy()
    data.q[:], _ = project_configuration(work, data.q.copy(), MAX_PROJECTION_STEPS)
    data.bilateral_jacobian[:] = jacobian


@entry
def refresh(numbers, indices, layout):
    """Fill placements, M and contact points at q, in every world."""
    for world in range(numbers.shape[0]):
        place_and_detect(arrays_of(numbers, indices, layout, world))


revert, apply_carried_momentum = entry_of(revert_step), entry_of(apply_momentum)
fill_placements = entry_of(place_at_q)
"""Fill placements and M at the present q."""
apply_commands = entry_of(actuate)
"""Fill effort and τ from the commands; return the status that a step would have."""


@entry
def begin(numbers, indices, layout):
    """Run the stages up to the contact problem, in every world."""
    for world in range(numbers.shape[0]):
        data = arrays_of(numbers, indices, layout, world)
        if begin_step(data):
            free_motion(data)
            contact_rows(data)


# --- Models with an exact, circular friction cone.
#
#     K*_μ ∋ w + (1 − κ) Γ(w) ⊥ λ ∈ K_μ,   w = G λ + g,   Γ(w) = (0, 0, μ |w_t|)
#
# κ = 0: Signorini and Coulomb (ncp, theory 2.11); κ = 1: the minimum of ½ λᵀ G λ + gᵀ λ over the
# cones (anitescu, theory 2.12). Interval rows obey w ⊥ [lower, upper] in both. How it is solved:
# solvers/_cone_solver.py.

TOLERANCE, MAX_POINTS, MAX_SWEEPS, MAX_ADMM_ITERATIONS = range(4)
"""Places of the common parameters in the numbers of the law."""
FIRST_OWN = 4  # place of the first number of one model alone


@dataclass(frozen=True)
class ConeParameters(Parameters):
    """Numerics of a model with exact cones; there is no physical parameter besides friction."""

    tolerance: float = relative_tolerance(
        1e-10, 'natural-map residual relative to the largest impulse'
    )
    max_points: int = parameter(
        400, '-', 'proximal points; 0 leaves all to Gauss-Seidel and ADMM', at_least=0,
        at_most=100000, live=True,
    )  # fmt: skip
    max_sweeps: int = parameter(
        50, '-', 'block Gauss-Seidel sweeps where proximal points fail, then ADMM', at_least=1,
        at_most=100000, live=True,
    )  # fmt: skip
    max_admm_iterations: int = parameter(
        1000, '-', 'ADMM iterations; 0 switches the fallback off', at_least=0, at_most=1000000,
        live=True,
    )  # fmt: skip


class ConeModel(TimeSteppingModel):
    """Base of the models with exact cones; a subclass names itself and its κ."""

    associated: ClassVar[float]
    parameters: ConeParameters

    def reach(self, h: float) -> tuple[float, float]:
        """Return (h, κ): the relaxation also acts on contacts that slide above the ground."""
        return h, self.associated

    def law_numbers(self) -> tuple[float, ...]:
        """Return tolerance and limits of the iterations."""
        p = self.parameters
        limits = p.max_points, p.max_sweeps, p.max_admm_iterations
        return p.tolerance, *(float(limit) for limit in limits)


@kernel
def iteration_limits(law):
    """Return the limits of `solve_cones`: proximal points, sweeps, iterations of ADMM."""
    return int(law[MAX_POINTS]), int(law[MAX_SWEEPS]), int(law[MAX_ADMM_ITERATIONS])
