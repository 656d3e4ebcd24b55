"""Shadow solves: the same step under other contact models.

Every shadow has arrays of its own; the start of a step is copied in, the shadow advances, and
nothing is written back. So any model can be a shadow, and the simulation keeps every bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import as_tuple
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel
from contact_sim.contact_models._stages import READY
from contact_sim.errors import InvalidInput
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._running import announced
from contact_sim.step._workspace import Workspace


@dataclass(frozen=True, eq=False)
class StepStart:
    """The arrays from which a step starts, with commands and external wrenches."""

    model: str
    """Name of the contact model that takes the step."""
    buffer: Array
    friction: Array
    restitution: Array
    stabilisation: Array
    external: Array

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays, in the order of the fields."""
        return (
            self.buffer, self.friction, self.restitution, self.stabilisation, self.external,
        )  # fmt: skip

    @classmethod
    def of(cls, model: str, numbers: Array, workspace: Workspace) -> StepStart:
        """Return the start whose arrays lie one behind the other in `numbers`.

        Args:
            model: name of the contact model that takes the step.
            numbers: all arrays, and perhaps more behind them.
            workspace: one of the same sizes.
        """
        like = _start_in(workspace, model).arrays
        ends = np.cumsum([array.size for array in like])
        parts = np.split(numbers[: ends[-1]], ends[:-1])
        return cls(model, *(part.reshape(a.shape) for part, a in zip(parts, like, strict=True)))


@dataclass(frozen=True, eq=False)
class ShadowReport:
    """One step as another contact model would have taken it, beside the step that was taken.

    Where the other model found no finite answer, `finite` is False and every number is NaN.
    """

    step: StepReport
    """The step under the other model, with all that a report has; the simulation is not in it."""
    taken: StepReport
    """The step that was taken."""
    finite: bool
    """Whether the other model found a finite answer."""

    @cached_property
    def force(self) -> Array:
        """Forces on the robot under the other model [N], world, shape (nc, 3)."""
        return self._checked(self.step.contacts.force)

    @cached_property
    def velocity(self) -> Array:
        """v⁺ under the other model in the axes of the start of the step, shape (nv,).

        Both models start from there, so velocities can be subtracted: `report.record.v_next`.
        """
        return self._checked(self.step.record.v_next)

    @property
    def force_difference(self) -> Array:
        """Force under the other model minus force in the step taken [N], world, shape (nc, 3)."""
        return self.force - self.taken.contacts.force

    @property
    def velocity_difference(self) -> Array:
        """v⁺ under the other model minus v⁺ of the step taken [m/s, rad/s], shape (nv,)."""
        return self.velocity - self.taken.record.v_next

    def _checked(self, values: Array) -> Array:
        return values if self.finite else np.full(values.shape, np.nan)


class Shadow:
    """A contact model with arrays of its own."""

    def __init__(self, original: Workspace, model: ContactModel) -> None:
        self.model = model
        self._workspace = work = original.copy()
        work.data.springs[:] = 0.0
        self._stepper = model.bind(work)
        self._springs = work.data.springs.copy()

    def advance(self, start: StepStart) -> tuple[Array, bool]:
        """Return the step data of the step from `start`, and whether it is finite.

        A model other than the one of the simulation starts as after a live switch: without memory.
        """
        work, data = self._workspace, self._workspace.data
        data.buffer[:] = start.buffer
        data.springs[:] = self._springs
        if start.model != self.model.name:
            data.memory[:] = 0.0
        work.default_friction[:] = start.friction
        work.default_restitution[:] = start.restitution
        work.stabilisation[:] = start.stabilisation
        work.external[:] = start.external
        work.status[0] = READY
        self._stepper.update_contacts()
        status = self._stepper.advance()
        return data.buffer.copy(), status == READY


class Shadows:
    """The shadows of one simulation; they solve a step when their reports are read.

    Args:
        workspace: the arrays of the simulation; read only.
        context: what reports of this simulation need.
        models: names or instances of contact models.
    """

    def __init__(
        self,
        workspace: Workspace,
        context: StepContext,
        models: Iterable[str | ContactModel],
    ) -> None:
        models = as_tuple('shadow', models, 'a list of contact models')
        self.models = chosen = [as_contact_model(model) for model in models]
        self.names = tuple(model.name for model in chosen)
        if len(set(self.names)) < len(self.names):
            raise InvalidInput(f'shadow = {self.names}: every contact model only once')
        self._original, self._context = workspace, context
        self._shadows = [Shadow(workspace, model) for model in chosen]
        start = _start_in(workspace, '')
        with announced(*chosen):
            for shadow in self._shadows:
                shadow.advance(start)  # compiles: the first real step costs what all others do

    def begin(self, model: str) -> ShadowSolve:
        """Return the solver of the step that `model` is about to take; costs two copies."""
        return ShadowSolve(self, _start_in(self._original, model))

    def solved(self, start: StepStart, taken: StepReport) -> dict[str, ShadowReport]:
        """Return the step from `start` under all models, beside the one that was taken."""
        reports = {}
        for shadow in self._shadows:
            buffer, finite = shadow.advance(start)
            step = StepReport(buffer, self._context)
            reports[shadow.model.name] = ShadowReport(step, taken, finite)
        return reports


@dataclass(frozen=True, eq=False)
class ShadowSolve:
    """Solves one step under other models, when it is called with its report."""

    shadows: Shadows
    start: StepStart

    def __call__(self, taken: StepReport) -> dict[str, ShadowReport]:
        """Return the answers by model."""
        return self.shadows.solved(self.start, taken)


def _start_in(work: Workspace, model: str) -> StepStart:
    """Return copies of what the next step in a workspace starts from."""
    return StepStart(
        model, work.data.buffer.copy(), work.default_friction.copy(),
        work.default_restitution.copy(), work.stabilisation.copy(),
        work.external.copy(),
    )  # fmt: skip
