"""Derivatives of the steps of many worlds, in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim.derivatives._linearisation import Linearisation
from contact_sim.errors import InvalidInput, one_line
from contact_sim.step._workspace import Workspace


@dataclass(frozen=True, eq=False)
class WorldDerivatives:
    """Derivatives of one step of n worlds."""

    state: Array
    """A = ∂(q⁺, v⁺)/∂(q, v), tangents of q, shape (n, 2 nv, 2 nv)."""
    input: Array
    """B = ∂(q⁺, v⁺)/∂effort, shape (n, 2 nv, n_joints)."""
    redundant: NDArray[np.bool_]
    """Whether the impulses of a world are not unique, shape (n,)."""

    __repr__ = one_line


class BatchLinearisation:
    """Linearises the steps of worlds whose arrays have one layout; one copy per thread.

    Args:
        template: a workspace of that layout.
        model: a contact model of the class of all worlds.
        threads: number of threads.
    """

    def __init__(self, template: Workspace, model: Any, threads: int) -> None:
        self._copies = [Linearisation(template, model) for _ in range(threads)]

    def of_step(
        self, numbers: Array, indices: Any, commands: Array, executor: ThreadPoolExecutor
    ) -> WorldDerivatives:
        """Return the derivatives of the steps that worlds would take under commands (n, nj)."""
        sizes, n = self._copies[0].sizes, len(numbers)
        rows = 2 * sizes.nv
        state, inputs = np.empty((n, rows, rows)), np.empty((n, rows, sizes.n_joints))
        redundant = np.zeros(n, dtype=bool)

        def run(thread: int) -> None:
            own = self._copies[thread]
            for world in range(thread, n, len(self._copies)):
                redundant[world] = own.of_world(numbers[world], indices[world], commands[world])
                results = np.vstack([own.view('configuration'), own.view('velocity')])
                state[world], inputs[world] = results[:, :rows], results[:, rows:]

        for done in [executor.submit(run, k) for k in range(len(self._copies))]:
            done.result()
        return WorldDerivatives(state, inputs, redundant)


def refuse_pushes(wrench_bodies: Any) -> None:
    """Raise InvalidInput where worlds are pushed: a push moves with its body."""
    if (np.asarray(wrench_bodies) >= 0).any():
        raise InvalidInput('derivatives: worlds that are pushed are unsupported; end the push')
