"""Observers of a simulation, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from numpy.typing import ArrayLike


class StepObserver(Protocol):
    """Called by `Simulator.step`; reads the simulator, changes nothing in it."""

    def before_step(self, external_wrenches: Mapping[str, ArrayLike]) -> None:
        """See a step that is about to be taken: its efforts have been checked and applied."""
        ...

    def after_step(self) -> None:
        """See the state after the step; after one that failed, that is the state before it."""
        ...
