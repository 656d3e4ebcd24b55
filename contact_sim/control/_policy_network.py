"""Networks of policies: ONNX with onnxruntime, TorchScript with torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim.control._policy_file import PolicyFile
from contact_sim.errors import InvalidInput, of_type

TORCHSCRIPT = '.pt', '.pth', '.jit', '.ts', '.torchscript'
"""Endings of files that torch reads; all others are ONNX."""
STATE = '_state'
"""Ending of the buffers of a TorchScript that are memory, as unitree_rl_gym exports them."""


class Network(ABC):
    """Observations to actions, with a memory, zero at the start, if it is recurrent."""

    @abstractmethod
    def memory(self, n: int) -> list[list[Array]]:
        """Return the memory of n worlds at the start."""

    @abstractmethod
    def actions(
        self, observations: Array, memory: list[list[Array]], worlds: Sequence[int]
    ) -> Array:
        """Return the actions of the `worlds`, (m, n_joints), of observations (m, size)."""


def network_of(policy: PolicyFile) -> Network:
    """Return the network of a policy.

    Raises:
        InvalidInput: onnxruntime or torch is not installed, a file that they cannot read, inputs
            or outputs of other sizes.
    """
    of_type('policy', policy, PolicyFile)
    of_torch = policy.network.suffix.lower() in TORCHSCRIPT
    return TorchNetwork(policy) if of_torch else OnnxNetwork(policy)


def place_of(policy: PolicyFile) -> str:
    """Return the name of a network in messages."""
    return f'{policy.path.name}: network {policy.network.name}'


def check_actions(policy: PolicyFile, what: str, actions: int) -> None:
    """Check that a network has one action for each joint."""
    if actions != len(policy.joints):
        raise InvalidInput(
            f'{place_of(policy)}: {what} {actions} actions, expected one for each of the '
            f'{len(policy.joints)} joints'
        )


class TorchNetwork(Network):
    """A network that torch.jit.save has written. Its buffers called *_state are memory."""

    def __init__(self, policy: PolicyFile) -> None:
        place = place_of(policy)
        try:
            import torch
        except ImportError as error:
            raise InvalidInput(
                f"{place}: needs torch: pip install 'contact_sim[torch]'"
            ) from error
        self._torch = torch
        try:
            with _reading.reading(place):
                self._network = torch.jit.load(str(policy.network), map_location='cpu').eval()
        except Exception as error:  # of torch, which has classes of its own
            reason = (str(error).strip().splitlines() or [''])[0]
            raise InvalidInput(
                f'{place}: cannot be loaded: {reason}; expected a file of torch.jit.save'
            ) from error
        numbers = [*self._network.parameters()]
        self._number = numbers[0].dtype if numbers else torch.float32
        self._buffers = [b for name, b in self._network.named_buffers() if name.endswith(STATE)]
        size = policy.observation_size
        try:
            trial = self.actions(np.zeros((1, size)), self.memory(1), [0])
        except Exception as error:
            reason = str(error).strip().splitlines()[-1]
            raise InvalidInput(
                f'{place}: does not take the observation, {size} numbers: {policy.sizes}: {reason}'
            ) from error
        check_actions(policy, 'it has', trial.shape[1])

    def memory(self, n: int) -> list[list[Array]]:
        """Return the memory of n worlds at the start."""
        return [[np.zeros(tuple(buffer.shape)) for buffer in self._buffers] for _ in range(n)]

    def actions(
        self, observations: Array, memory: list[list[Array]], worlds: Sequence[int]
    ) -> Array:
        """Return the actions of the `worlds`, (m, n_joints), of observations (m, size)."""
        torch = self._torch
        rows = torch.as_tensor(observations, dtype=self._number)
        with torch.inference_mode():
            if not self._buffers:
                return np.asarray(self._network(rows).numpy(), dtype=float)
            found = []
            for world, row in zip(worlds, rows, strict=True):
                for buffer, value in zip(self._buffers, memory[world], strict=True):
                    buffer.copy_(torch.as_tensor(value))
                found.append(np.ravel(self._network(row[None]).numpy()))
                memory[world] = [buffer.numpy().astype(float) for buffer in self._buffers]
        return np.array(found, dtype=float)


class OnnxNetwork(Network):
    """A network in an ONNX file. An input `x_in` with an output `x_out` is memory."""

    def __init__(self, policy: PolicyFile) -> None:
        place = place_of(policy)
        try:
            import onnxruntime
        except ImportError as error:
            raise InvalidInput(
                f"{place}: needs onnxruntime: pip install 'contact_sim[policy]'"
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            with _reading.reading(place):
                self._session = onnxruntime.InferenceSession(
                    str(policy.network), options, providers=['CPUExecutionProvider']
                )
        except Exception as error:  # of onnxruntime, which has classes of its own
            raise InvalidInput(f'{place}: cannot be loaded: {error}') from error
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        by_name = {output.name: output for output in outputs}
        memory = {
            entry.name: entry
            for entry in inputs
            if entry.name.endswith('_in') and f'{entry.name[:-3]}_out' in by_name
        }
        self._memory_inputs = tuple(memory)
        self._memory_outputs = tuple(f'{name[:-3]}_out' for name in memory)
        seen = [entry for entry in inputs if entry.name not in memory]
        given = [entry for entry in outputs if entry.name not in self._memory_outputs]
        if len(seen) != 1 or not given:
            names = ', '.join(f'{entry.name} {entry.shape}' for entry in inputs)
            raise InvalidInput(
                f'{place}: inputs {names}: expected one, besides pairs x_in and x_out of memory'
            )
        self._input, self._output = seen[0].name, given[0].name
        self._number = np.float64 if 'double' in seen[0].type else np.float32
        size, actions = _last(seen[0].shape), _last(given[0].shape)
        if size is not None and size != policy.observation_size:
            raise InvalidInput(
                f'{place}: its input {self._input!r} takes {size} numbers, the observation has '
                f'{policy.observation_size}: {policy.sizes}'
            )
        self._memory_shapes = [
            tuple(length if isinstance(length, int) else 1 for length in entry.shape)
            for entry in memory.values()
        ]
        fixed = isinstance(seen[0].shape[0], int) if len(seen[0].shape) > 1 else True
        self._one_by_one = fixed or bool(memory)
        self._flat = len(seen[0].shape) == 1
        if actions is None:  # only a call tells
            trial = self.actions(np.zeros((1, policy.observation_size)), self.memory(1), [0])
            actions = trial.shape[1]
        check_actions(policy, f'its output {self._output!r} has', actions)

    def memory(self, n: int) -> list[list[Array]]:
        """Return the memory of n worlds at the start."""
        return [[np.zeros(shape, self._number) for shape in self._memory_shapes] for _ in range(n)]

    def actions(
        self, observations: Array, memory: list[list[Array]], worlds: Sequence[int]
    ) -> Array:
        """Return the actions of the `worlds`, (m, n_joints), of observations (m, size)."""
        rows = observations.astype(self._number)
        if not self._one_by_one:
            (answer,) = self._session.run([self._output], {self._input: rows})
            return np.asarray(answer, dtype=float)
        found = []
        for world, row in zip(worlds, rows, strict=True):
            feeds = dict(zip(self._memory_inputs, memory[world], strict=True))
            feeds[self._input] = row if self._flat else row[None]
            answer, *memory[world] = self._session.run(
                [self._output, *self._memory_outputs], feeds
            )
            found.append(np.ravel(answer))
        return np.array(found, dtype=float)


def _last(shape: Sequence[Any]) -> int | None:
    """Return the last length of a shape, None where it is open."""
    return shape[-1] if shape and isinstance(shape[-1], int) else None
