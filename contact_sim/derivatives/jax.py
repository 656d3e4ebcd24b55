"""Runs as functions of JAX arrays, with gradients through contact; the extra `jax`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from contact_sim.derivatives._autodiff import StateGradients, checked_arguments, linearised_from

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError(f"{__name__} needs jax: pip install 'contact_sim[jax]'") from error

__all__ = ['rollout']


def rollout(
    sim: Any,
    q: jax.Array,
    v: jax.Array,
    efforts: jax.Array,
    parameters: Mapping[str, jax.Array] | None = None,
) -> tuple[jax.Array, jax.Array]:
    """Return the configurations (T + 1, nq) and velocities (T + 1, nv) of a run.

    `jax.grad` and `jax.jit` work through it: the simulation is a callback on the CPU in double
    precision, and afterwards as before. The gradient of q is along unit quaternions. Results have
    the type of q; `jax.config.update('jax_enable_x64', True)` keeps double precision.

    Args:
        sim: a `Simulator`, whose model, ground and settings hold.
        q: configuration at the start, shape (nq,).
        v: velocity at the start, shape (nv,).
        efforts: joint efforts of T steps [N m], shape (T, n_joints).
        parameters: friction and restitution (a number, or one per contact), and the time step [s];
            left out: those of `sim`.

    Raises:
        InvalidInput: wrong shapes. Values that are not finite and a simulation without derivatives
            are the reason of JAX's own error.
        UnknownName: another parameter.
    """
    names, arrays = checked_arguments(sim, (q, v, efforts), parameters, jnp.asarray)
    configurations, velocities = _run(sim, names, *arrays)
    return configurations, velocities


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _run(sim: Any, names: tuple[str, ...], *arrays: jax.Array) -> Any:
    return _called(lambda run, _: (run.q, run.v), _states(sim, arrays), sim, names, arrays)


def _forward(sim: Any, names: tuple[str, ...], *arrays: jax.Array) -> Any:
    return _run(sim, names, *arrays), arrays


def _backward(sim: Any, names: tuple[str, ...], arrays: Any, gradients: Any) -> Any:
    n = len(arrays)

    def of(run: Any, values: Any) -> Any:
        given = dict(zip(names, values[3:n], strict=True))
        pulled = StateGradients(sim, run, given).of(*values[n:])
        return *pulled[:3], *(pulled[3][name] for name in names)

    shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
    return tuple(_called(of, shapes, sim, names, (*arrays, *gradients)))


_run.defvjp(_forward, _backward)


def _called(of: Any, shapes: Any, sim: Any, names: tuple[str, ...], arrays: Any) -> Any:
    """Return what `of` makes of the run and the arrays, as results of these shapes."""

    def compute(*values: Any) -> Any:
        numbers = [np.asarray(value, dtype=float) for value in values]
        q, v, efforts, *more = numbers
        parameters = dict(zip(names, more, strict=False))
        found = of(linearised_from(sim, q, v, efforts, parameters), numbers)
        return tuple(np.asarray(f, s.dtype) for f, s in zip(found, shapes, strict=True))

    return jax.pure_callback(compute, tuple(shapes), *arrays, vmap_method='sequential')


def _states(sim: Any, arrays: Any) -> list[Any]:
    robot, steps, kind = sim.robot, len(arrays[2]) + 1, arrays[0].dtype
    return [jax.ShapeDtypeStruct((steps, n), kind) for n in (robot.nq, robot.nv)]
