"""A time-stepping law bound to the arrays of one simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from contact_sim.arrays.views import arrays_of
from contact_sim.contact.bilateral import ROUNDS
from contact_sim.contact.given_rows import GivenRows, settled
from contact_sim.contact.workspace import Workspace
from contact_sim.contact_models.time_stepping.actuation import NOT_FINITE, READY, actuate
from contact_sim.contact_models.time_stepping.carried_momentum import follow
from contact_sim.contact_models.time_stepping.islands import HAS_MEMORY, NO_RESTITUTION
from contact_sim.contact_models.time_stepping.stages import (
    begin_step,
    contact_rows,
    free_motion,
    place_and_detect,
    take_back,
)
from contact_sim.dynamics.given_terms import GivenTerms
from contact_sim.dynamics.integrators import MOMENTUM
from contact_sim.numbers import is_finite
from contact_sim.solvers.jit import entry


@dataclass(frozen=True)
class LawSettings:
    """Settings of a law that the common stages read."""

    reach: tuple[float, float, float]
    """(T, κ, margin): the law may act where φ + T (u_n − κ μ |u_t|) < 0 or φ ≤ margin."""
    numbers: tuple[float, ...]
    """Parameters, in the order in which the compiled law reads them."""
    has_memory: bool
    restitutes: bool
    damping_inertia: float
    """Damping inertia over the diagonal of M [-], of todorov in its form of 2014."""

    def write(self, workspace: Workspace) -> None:
        """Make these the settings of a workspace."""
        workspace.reach[:] = self.reach
        workspace.law[:] = 0.0
        workspace.damping_inertia[0] = self.damping_inertia
        workspace.law[: len(self.numbers)] = self.numbers
        workspace.options[0] = self.has_memory * HAS_MEMORY
        workspace.options[0] |= (not self.restitutes) * NO_RESTITUTION


class TimeStepping:
    """Steps one workspace with one compiled law.

    Where the tree has joints that the kernels do not know, Pinocchio fills the terms of every
    step: the slow way.
    """

    def __init__(
        self, workspace: Workspace, advance: Callable[..., None], settings: LawSettings
    ) -> None:
        settings.write(workspace)
        if not settings.has_memory:
            workspace.data.memory[:] = 0.0
        self._advance, self._arrays = advance, workspace.arrays
        self._status, self._workspace = workspace.status, workspace
        self._terms = GivenTerms(workspace) if workspace.terms_given[0] else None
        self._rows = GivenRows(workspace) if workspace.table.given else None

    def advance(self, steps: int = 1) -> int:
        """Advance the state by `steps` steps of h; return the status of the world."""
        if self._terms is not None:
            for _ in range(steps):
                self._advance_given(self._terms)
        elif self._rows is not None:
            for _ in range(steps):
                self._advance_with_functions(self._rows)
        else:
            self._advance(*self._arrays, steps)
        return int(self._status[0])

    def _advance_given(self, terms: GivenTerms) -> None:
        work, data = self._workspace, self._workspace.data
        clock = data.clock.copy()
        terms.update_velocity(data.q, data.v)
        self._advance(*self._arrays, 1)
        if self._status[0] == READY:
            data.q[:] = terms.moved(data.q_start, work.displacement)
            if work.integrator[0] == MOMENTUM:
                terms.update_configuration(data.q)
                follow_carried(*self._arrays)
            if not (is_finite(data.q) and is_finite(data.v)):
                self._status[0], data.clock[:] = NOT_FINITE, clock
                forget_step(*self._arrays)
        self.update_contacts()

    def _advance_with_functions(self, rows: GivenRows) -> None:
        """Advance by one step with constraints that only Python knows."""
        with self.as_before_if_raised():
            rows.update(self._workspace.data.q, self._workspace.data.v)
            self._advance(*self._arrays, 1)
            if self._status[0] == READY:
                settle(self._workspace)
                self.update_contacts()

    @contextmanager
    def as_before_if_raised(self) -> Iterator[None]:
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


def settle(work: Workspace) -> None:
    """Project the configuration at the end of a step, and fill h there; H stays that of the step.

    Raises:
        InvalidInput: as `GivenRows.update`.
    """
    data = work.data
    jacobian = data.bilateral_jacobian.copy()
    data.q[:], _ = settled(work, data.q.copy(), ROUNDS)
    data.bilateral_jacobian[:] = jacobian


@entry
def refresh(numbers, indices, layout):
    """Fill what belongs to the configuration, in every world."""
    for world in range(numbers.shape[0]):
        place_and_detect(arrays_of(numbers, indices, layout, world))


@entry
def forget_step(numbers, indices, layout):
    """Return to the state before the step, world 0."""
    take_back(arrays_of(numbers, indices, layout, 0))


@entry
def follow_carried(numbers, indices, layout):
    """Let the bases follow the momentum that they carry, world 0."""
    follow(arrays_of(numbers, indices, layout, 0))


@entry
def apply_commands(numbers, indices, layout):
    """Fill effort and τ from the commands; return the status that a step would have, world 0."""
    return actuate(arrays_of(numbers, indices, layout, 0))


@entry
def begin(numbers, indices, layout):
    """Take a step up to the contact problem, in every world."""
    for world in range(numbers.shape[0]):
        data = arrays_of(numbers, indices, layout, world)
        if begin_step(data):
            free_motion(data)
            contact_rows(data)
