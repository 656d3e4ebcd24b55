"""Runs as functions of PyTorch tensors, with gradients through contact; the extra `torch`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from contact_sim.derivatives._autodiff import StateGradients, checked_arguments, linearised_from

try:
    import torch
except ImportError as error:
    raise ImportError(f"{__name__} needs torch: pip install 'contact_sim[torch]'") from error

__all__ = ['rollout']


def rollout(
    sim: Any,
    q: torch.Tensor,
    v: torch.Tensor,
    efforts: torch.Tensor,
    parameters: Mapping[str, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the configurations (T + 1, nq) and velocities (T + 1, nv) of a run.

    Gradients go back to all tensors; that of q is along unit quaternions. The simulation computes
    in double precision on the CPU and is afterwards as before.

    Args:
        sim: a `Simulator`, whose model, ground and settings hold.
        q: configuration at the start, shape (nq,).
        v: velocity at the start, shape (nv,).
        efforts: joint efforts of T steps [N m], shape (T, n_joints).
        parameters: friction and restitution (a number, or one per contact), and the time step [s];
            left out: those of `sim`.

    Raises:
        InvalidInput: wrong shapes, values that are not finite, a simulation without derivatives.
        UnknownName: another parameter.
    """
    names, tensors = checked_arguments(sim, (q, v, efforts), parameters, torch.as_tensor)
    configurations, velocities = _Run.apply(sim, names, *tensors)
    return configurations, velocities


class _Run(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, sim: Any, names: tuple[str, ...], *tensors: torch.Tensor) -> Any:
        arrays = [tensor.detach().cpu().double().numpy() for tensor in tensors]
        q, v, efforts, *more = arrays
        values = dict(zip(names, more, strict=True))
        run = linearised_from(sim, q, v, efforts, values)
        ctx.gradients = StateGradients(sim, run, values)
        ctx.names = names
        ctx.kinds = [(tensor.dtype, tensor.device) for tensor in tensors]
        return tuple(_as_tensor(part, *ctx.kinds[0]) for part in (run.q, run.v))

    @staticmethod
    def backward(ctx: Any, of_q: torch.Tensor, of_v: torch.Tensor) -> Any:
        numbers = (tensor.detach().cpu().double().numpy() for tensor in (of_q, of_v))
        q, v, efforts, parameters = ctx.gradients.of(*numbers)
        found = q, v, efforts, *(parameters[name] for name in ctx.names)
        return None, None, *map(_as_tensor, found, *zip(*ctx.kinds, strict=True))


def _as_tensor(array: Any, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return torch.as_tensor(np.ascontiguousarray(array)).to(device, dtype)
