"""Runs as functions of arrays, for libraries that differentiate automatically.

Such libraries know q as nq numbers, `LinearisedRun` its tangents. With E = ∂(q ⊕ δ)/∂δ at δ = 0,

    tangents from gradients    g_δ = Eᵀ g_q
    gradients from tangents    g_q = E (Eᵀ E)⁻¹ g_δ

the latter along unit quaternions, which is where a state can move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import finite_array, real_array, shaped
from contact_sim.derivatives._runs import LinearisedRun, linearised_run
from contact_sim.errors import InvalidInput, known_name, shown

PARAMETERS = ('friction', 'restitution', 'time_step')
"""Attributes of a `Simulator` that are parameters of a run."""


def checked_arguments(
    sim: Any, state: tuple[Any, Any, Any], parameters: Any, convert: Callable[[Any], Any]
) -> tuple[tuple[str, ...], list[Any]]:
    """Return the names of parameters, and q, v, efforts and their values as arrays.

    Args:
        sim: a `Simulator`.
        state: q, v and efforts.
        parameters: by name; None for none.
        convert: makes an array of the library.

    Raises:
        InvalidInput: no simulation, what is no array, other shapes.
        UnknownName: a parameter that is not one of PARAMETERS.
    """
    if not hasattr(sim, 'derivatives'):
        raise InvalidInput(f'sim = {shown(sim)}: expected a Simulator')
    given = {} if parameters is None else parameters
    if not isinstance(given, Mapping):
        raise InvalidInput(f'parameters = {shown(parameters)}: expected values by name')
    for name in given:
        known_name('parameter', name, PARAMETERS)
    arrays = []
    for name, value in zip(('q', 'v', 'efforts', *given), (*state, *given.values()), strict=True):
        try:
            arrays.append(convert(value))
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidInput(f'{name} = {shown(value)}: expected an array of numbers') from error
    robot, shapes = sim.robot, [tuple(array.shape) for array in arrays]
    for name, shape, n in zip('qv', shapes, (robot.nq, robot.nv), strict=False):
        if shape != (n,):
            raise InvalidInput(f'{name}: shape {shape}, expected ({n},)')
    if len(shapes[2]) != 2 or shapes[2][1] != robot.n_joints:
        raise InvalidInput(f'efforts: shape {shapes[2]}, expected (T, {robot.n_joints})')
    for name, shape in zip(given, shapes[3:], strict=True):
        if len(shape) > (0 if name == 'time_step' else 1):
            raise InvalidInput(f'{name}: shape {shape}, expected one number')
    return tuple(given), arrays


def linearised_from(
    sim: Any, q: ArrayLike, v: ArrayLike, efforts: ArrayLike, parameters: Mapping[str, ArrayLike]
) -> LinearisedRun:
    """Return the run from q (nq,) and v (nv,) under efforts (T, n_joints), and its derivatives.

    The simulation is afterwards as before.

    Raises:
        InvalidInput: `linearised_run` refuses it; a value that `sim` refuses.
    """
    before = sim.snapshot()
    try:
        for name, value in parameters.items():
            numbers = finite_array(name, real_array(name, value))
            setattr(sim, name, float(numbers) if numbers.ndim == 0 else numbers)
        sim.reset(q, v)
        return linearised_run(sim, efforts, tuple(parameters))
    finally:
        sim.restore(before)


class StateGradients:
    """Turns gradients of a run with respect to (q, v) into those of what it started from.

    Args:
        sim: a `Simulator`.
        run: what `linearised_from` returned.
        parameters: what it was given.
    """

    def __init__(self, sim: Any, run: LinearisedRun, parameters: Mapping[str, ArrayLike]) -> None:
        self._model, self._sizes, self._run = sim.robot.pinocchio_model, sim.sizes, run
        self._values = {name: np.asarray(value) for name, value in parameters.items()}

    def of(self, of_q: Array, of_v: Array) -> tuple[Array, Array, Array, dict[str, Array]]:
        """Return the gradients of a cost with respect to q, v, efforts and parameters.

        Args:
            of_q: ∂J/∂q at all instants, shape (T + 1, nq).
            of_v: ∂J/∂v, shape (T + 1, nv).
        """
        run, nv = self._run, self._model.nv
        of_q = shaped('of_q', of_q, *run.q.shape)
        of_v = shaped('of_v', of_v, *run.v.shape)
        rows = np.zeros((len(run.q), 2 * nv))
        rows[:, nv:] = of_v
        for t in np.flatnonzero(of_q.any(axis=1)):
            rows[t, :nv] = of_q[t] @ tangent_map(self._model, run.q[t])
        found = run.adjoint(rows)
        E = tangent_map(self._model, run.q[0])
        start = E @ np.linalg.solve(E.T @ E, found.start[:nv])
        parameters = {
            name: self._as_given(self._values[name], gradient)
            for name, gradient in found.parameters.items()
        }
        return start, found.start[nv:], found.effort, parameters

    def _as_given(self, value: Array, gradient: Array) -> Array:
        """Return a gradient per contact (nc,) as one of the numbers that were given."""
        if value.ndim == 0:
            return np.asarray(gradient.sum())
        if len(value) == len(gradient):
            return gradient
        # one per contact point, or contact with the ground; bodies have the largest of them
        with_ground, between = np.split(gradient, [self._sizes.n_ground])
        found = np.array(with_ground.reshape(len(value), -1).sum(axis=1))
        found[value.argmax()] += between.sum()
        return found


def tangent_map(model: pin.Model, q: Array) -> Array:
    """Return E = ∂(q ⊕ δ)/∂δ at δ = 0, shape (nq, nv).

    Raises:
        InvalidInput: a joint of a kind that the derivatives do not know.
    """
    E = np.zeros((model.nq, model.nv))
    for joint in model.joints[1:]:
        rows = slice(joint.idx_q, joint.idx_q + joint.nq)
        columns = slice(joint.idx_v, joint.idx_v + joint.nv)
        E[rows, columns] = _of_joint(joint.shortname(), q[rows])
    return E


def _of_joint(kind: str, q: Array) -> Array:
    if kind == 'JointModelFreeFlyer':
        own = np.zeros((7, 6))
        own[:3, :3], own[3:, 3:] = pin.Quaternion(*q[[6, 3, 4, 5]]).matrix(), _turning(q[3:])
        return own
    if kind == 'JointModelSpherical':
        return _turning(q)
    if kind == 'JointModelPlanar':
        c, s = q[2:]
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, -s], [0.0, 0.0, c]])
    if kind.startswith('JointModelRUB') or kind == 'JointModelRevoluteUnboundedUnaligned':
        return np.array([[-q[1]], [q[0]]])
    if len(q) == 1 or kind == 'JointModelTranslation':
        return np.eye(len(q))
    raise InvalidInput(f'gradients: joints of the kind {kind} are unsupported')


def _turning(quaternion: Array) -> Array:
    """Return ∂(x, y, z, w)/∂ω of a rotation that goes on with ω in its own axes, (4, 3)."""
    x, y, z, w = quaternion
    return 0.5 * np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])
