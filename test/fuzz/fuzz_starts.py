"""Odd parameters at the start of a node: it starts, or says in our words why not."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import rclpy
from fuzz_values import NUMBERS, TEXTS, shown
from rclpy.exceptions import (
    InvalidParameterTypeException,
    InvalidParameterValueException,
    ParameterException,
)
from rclpy.parameter import Parameter

from contact_sim.parameters import declared_parameters
from contact_sim.ros._parameters import PARAMETER_GROUPS
from contact_sim.ros._processes import isolated_environment
from contact_sim.ros.simulation_node import SimulationNode

OURS = {'robot': 'quadruped', 'record': ''}
"""What stays as it is: other robots take long to load, and files are tried elsewhere."""
REFUSALS = (
    InvalidParameterTypeException, InvalidParameterValueException, ParameterException,
)  # fmt: skip
"""How rclpy refuses a parameter of another type; the executable says so in one line."""


class Starts:
    """Inputs of the kind `starts`."""

    def __init__(self, folder: Path) -> None:
        self.said: str | Callable[[], str] = ''
        os.environ.update(isolated_environment() | {'ROS_LOG_DIR': str(folder)})
        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context)
        self.fields = {
            f'{prefix}.{field.name}' if prefix else field.name: field
            for prefix, cls in PARAMETER_GROUPS.items()
            for field in declared_parameters(cls)  # type: ignore[arg-type]
        }
        for name in OURS:
            del self.fields[name]

    def value(self, name: str, chance: random.Random) -> Any:
        """Return a value for a parameter, mostly of its type."""
        info, kind = self.fields[name].info, str(self.fields[name].type)
        if info.choices and chance.random() < 0.7:
            return chance.choice(info.choices)
        texts = [text for text in TEXTS if '\0' not in text and '\ud800' not in text]
        numbers = [x for x in NUMBERS if isinstance(x, float)]
        bounds = [
            x for x in (info.above, info.at_least, info.below, info.at_most) if x is not None
        ]
        wholes = [0, 1, -1, 3, 1000, 2**31, *(int(x) for x in bounds)]
        makes: dict[str, Callable[[], Any]] = {
            'bool': lambda: chance.random() < 0.5,
            'int': lambda: chance.choice(wholes),
            'float': lambda: float(chance.choice([*numbers, *bounds])),
            'str': lambda: chance.choice(texts),
            'tuple[str': lambda: [chance.choice(texts) for _ in range(chance.randrange(1, 4))],
            'tuple[float': lambda: [chance.choice(numbers) for _ in range(chance.choice((3, 4)))],
        }
        right = next((word for word in makes if word in kind), 'str')
        return makes[right if chance.random() < 0.85 else chance.choice(sorted(makes))]()

    def run(self, chance: random.Random) -> None:
        """Start one node, take three steps and end it."""
        names = chance.sample(sorted(self.fields), chance.choice((1, 1, 2, 4)))
        values = OURS | {name: self.value(name, chance) for name in names}
        self.said = partial(shown, values, 800)
        overrides = [Parameter(name, value=value) for name, value in values.items()]
        try:
            node = SimulationNode(context=self.context, parameter_overrides=overrides)
        except REFUSALS:
            return
        try:
            left = iter(range(3))
            node.run(lambda: next(left, None) is not None)
        finally:
            node.destroy_node()
