"""Derivatives of many steps: runs, with tangents forwards and gradients backwards, and worlds.

With x = (q, v), tangents of q, and the matrices A_t, B_t, C_t of step t,

    tangent   dx_t+1 = A_t dx_t + B_t du_t + C_t dp
    adjoint   λ_t = g_t + A_tᵀ λ_t+1,   dJ/du_t = B_tᵀ λ_t+1,   dJ/dp = Σ C_tᵀ λ_t+1

for a cost J with the gradients g_t = ∂J/∂x_t. The adjoint never multiplies two matrices: its cost
grows linearly with the horizon.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import checked, checked_fields, finite_array, real_array, shaped
from contact_sim.contact_models._compliant import FRICTION_LAWS
from contact_sim.derivatives._linearisation import Linearisation
from contact_sim.errors import InvalidInput, one_line, shown
from contact_sim.solvers._springs import ANCHORED
from contact_sim.step._workspace import Workspace


@dataclass(frozen=True, eq=False)
class Gradient:
    """Gradient of a cost of a run."""

    start: Array
    """With respect to (q, v) at the start, tangent of q, shape (2 nv,)."""
    effort: Array
    """With respect to the efforts of every step, shape (T, n_joints)."""
    parameters: dict[str, Array]
    """With respect to the parameters of the run, (p,) each."""

    __repr__ = one_line


@checked_fields
@dataclass(frozen=True, eq=False)
class LinearisedRun:
    """T steps from one state, and the derivatives of each."""

    q: Array
    """Configurations, shape (T + 1, nq)."""
    v: Array
    """Velocities, shape (T + 1, nv)."""
    state: Array
    """A of every step, shape (T, 2 nv, 2 nv)."""
    input: Array
    """B of every step, shape (T, 2 nv, n_joints)."""
    parameters: dict[str, Array]
    """C of every step and parameter, shape (T, 2 nv, p) each."""
    kinks: tuple[tuple[int, str], ...]
    """Steps at a kink, and what is there."""

    def __post_init__(self) -> None:
        A, B = np.shape(self.state), np.shape(self.input)
        if len(A) != 3 or len(B) != 3 or A[1] != A[2] or A[:2] != B[:2]:
            raise InvalidInput(
                f'LinearisedRun: state {A}, input {B}: expected (T, 2 nv, 2 nv) and '
                '(T, 2 nv, n_joints)'
            )

    __repr__ = one_line

    def adjoint(self, gradients: ArrayLike) -> Gradient:
        """Return the gradient of a cost with the gradients ∂J/∂(q, v) at all instants.

        Args:
            gradients: tangents of q, then v, shape (T + 1, 2 nv).

        Raises:
            InvalidInput: another shape, values that are not finite.
        """
        steps, rows = self.state.shape[:2]
        g = finite_array('gradients', real_array('gradients', gradients))
        if g.shape != (steps + 1, rows):
            raise InvalidInput(f'gradients: shape {g.shape}, expected ({steps + 1}, {rows})')
        costate, effort = g[-1].copy(), np.zeros((steps, self.input.shape[2]))
        found = {name: np.zeros(C.shape[2]) for name, C in self.parameters.items()}
        for t in range(steps - 1, -1, -1):
            effort[t] = costate @ self.input[t]
            for name, C in self.parameters.items():
                found[name] += costate @ C[t]
            costate = g[t] + costate @ self.state[t]
        return Gradient(costate, effort, found)

    def tangent(self, start: ArrayLike, effort: ArrayLike) -> Array:
        """Return the change of (q, v) at all instants, shape (T + 1, 2 nv).

        Args:
            start: change of (q, v) at the start, shape (2 nv,).
            effort: changes of the efforts, shape (T, n_joints).

        Raises:
            InvalidInput: another shape, values that are not finite.
        """
        steps, rows = self.state.shape[:2]
        change = np.zeros((steps + 1, rows))
        efforts = shaped('effort', finite_array('effort', effort), steps, self.input.shape[2])
        change[0] = shaped('start', finite_array('start', start), rows)
        for t in range(steps):
            change[t + 1] = self.state[t] @ change[t] + self.input[t] @ efforts[t]
        return change


@checked
def linearised_run(sim: Any, efforts: ArrayLike, parameters: Sequence[str] = ()) -> LinearisedRun:
    """Advance a simulation by a step for each row of efforts; return the derivatives of all.

    Args:
        sim: a `Simulator`; it ends behind the last step.
        efforts: joint efforts [N m], shape (T, n_joints).
        parameters: names of `StepDerivatives.with_respect_to`.

    Raises:
        InvalidInput: efforts of another shape, a simulation that remembers more than q and v
            (anchors of compliant, delays and lags of actuators), or has no derivatives.
    """
    if not hasattr(sim, 'derivatives'):
        raise InvalidInput(f'sim = {shown(sim)}: expected a Simulator')
    refuse_memory(sim)
    commands = finite_array('efforts', real_array('efforts', efforts))
    if commands.ndim != 2 or commands.shape[1] != sim.robot.n_joints:
        raise InvalidInput(f'efforts: shape {commands.shape}, expected (T, {sim.robot.n_joints})')
    q, v, A, B = [sim.q], [sim.v], [], []
    C: dict[str, list[Array]] = {name: [] for name in parameters}
    kinks: list[tuple[int, str]] = []
    for t, command in enumerate(commands):
        derivatives = sim.derivatives(command)
        A.append(derivatives.state_matrix)
        B.append(derivatives.input_matrix)
        for name, columns in C.items():
            own = derivatives.with_respect_to(name)
            columns.append(np.vstack([own.configuration, own.velocity]))
        kinks += [(t, f'{kink.name}: {kink.what}, {kink.side}') for kink in derivatives.kinks]
        sim.step(command)
        q.append(sim.q)
        v.append(sim.v)
    rows = 2 * sim.robot.nv
    return LinearisedRun(
        np.array(q), np.array(v), np.array(A).reshape(len(A), rows, rows),
        np.array(B).reshape(len(B), rows, sim.robot.n_joints),
        {name: np.array(columns) for name, columns in C.items()}, tuple(kinks),
    )  # fmt: skip


def refuse_memory(sim: Any) -> None:
    """Raise InvalidInput where a step depends smoothly on more than q and v of the start."""
    if getattr(sim.model.parameters, 'friction_law', '') == FRICTION_LAWS[ANCHORED]:
        raise InvalidInput(
            'linearised_run: the anchors of compliant last from step to step; use friction_law='
            "'tanh', 'stribeck' or 'piecewise'"
        )
    actuators = sim.robot.actuators
    if actuators.delay.any() or actuators.time_constant.any():
        raise InvalidInput('linearised_run: delays and lags of actuators are unsupported')


# --- Steps of many worlds, in threads


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
