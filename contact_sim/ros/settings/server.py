"""Declared parameters as ROS parameters: typed, bounded, described, checked as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args, get_origin

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    ParameterType,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from contact_sim.errors import ContactSimError
from contact_sim.parameters import ParameterField, Parameters, declared_parameters
from contact_sim.ros.settings.declarations import Settings


def full_name(prefix: str, name: str) -> str:
    """Return the dotted name of a parameter."""
    return f'{prefix}.{name}' if prefix else name


class ParameterServer:
    """Declares parameter groups on a node and keeps their values as checked dataclasses.

    Args:
        node: the node that owns the parameters.
        check: called with the settings that a request asks for; raises ContactSimError to refuse.
        apply: called with these settings and the prefixes that changed; may refuse likewise.

    Raises:
        InvalidInput: a start value that is not allowed.
    """

    def __init__(
        self,
        node: Node,
        check: Callable[[Settings], None],
        apply: Callable[[Settings, set[str]], None],
    ) -> None:
        self._node, self._check, self._apply = node, check, apply
        self.settings: Settings = {}

    def declare(self, groups: Mapping[str, type[Parameters]]) -> None:
        """Declare groups by prefix; start values come from the command line and YAML files."""
        for prefix, cls in groups.items():
            values = {
                field.name: self._declare_one(prefix, field)
                for field in declared_parameters(cls)  # type: ignore[arg-type]
            }
            self.settings[prefix] = cls(**values)

    def accept_changes(self) -> None:
        """Take requests from now on."""
        self._check(self.settings)
        self._node.add_on_set_parameters_callback(self._on_set)

    def _declare_one(self, prefix: str, field: ParameterField) -> Any:
        name, default = full_name(prefix, field.name), field.default
        descriptor = parameter_descriptor(field)
        start = list(default) if is_list(field) else default
        if default == ():  # no type in ROS, so it is declared by type instead of by value
            start = Parameter.Type.STRING_ARRAY
        value = self._node.declare_parameter(name, start, descriptor).value
        if is_list(field):
            return tuple(without_blanks(value or default))
        return value

    def _on_set(self, requested: list[Parameter]) -> SetParametersResult:
        """Accept all of a request or nothing of it."""
        changed = dict(self.settings)
        changes: dict[str, dict[str, Any]] = {}
        try:
            for parameter in requested:
                prefix, _, name = parameter.name.rpartition('.')
                if prefix in changed and hasattr(changed[prefix], name):
                    changes.setdefault(prefix, {})[name] = without_blanks(parameter.value)
            for prefix, values in changes.items():
                changed[prefix] = replace(changed[prefix], **values)
            self._check(changed)
            if changes:
                self._apply(changed, set(changes))
        except (ContactSimError, TypeError) as error:
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # an answer is due, whatever went wrong
            self._node.get_logger().error(f'parameters refused: {error!r}')
            return SetParametersResult(successful=False, reason=repr(error))
        self.settings = changed
        return SetParametersResult(successful=True)


def is_list(field: ParameterField, of: type | None = None) -> bool:
    """Return whether a parameter is a list, of items of a type where one is given."""
    return get_origin(field.type) is tuple and of in (None, get_args(field.type)[0])


def without_blanks(value: Any) -> Any:
    """Return a list without empty texts, other values as they are: [''] is how ROS says []."""
    return [item for item in value if item != ''] if isinstance(value, list | tuple) else value


def parameter_descriptor(field: ParameterField) -> ParameterDescriptor:
    """Return description, range and whether the value may change."""
    info = field.info
    unit = f'[{info.unit}] ' if info.unit else ''
    descriptor = ParameterDescriptor(description=f'{unit}{info.meaning}', read_only=not info.live)
    if info.choices is not None:
        descriptor.additional_constraints = 'one of ' + ', '.join(info.choices)
    low = info.above if info.above is not None else info.at_least
    high = info.below if info.below is not None else info.at_most
    if field.type is float:
        # our own check takes 1 for 1.0 and names what is wrong; ROS would only say 'wrong type'
        descriptor.dynamic_typing = True
        descriptor.type = ParameterType.PARAMETER_DOUBLE
    elif is_list(field, of=float):
        descriptor.dynamic_typing = True
        descriptor.type = ParameterType.PARAMETER_DOUBLE_ARRAY
    if info.choices is None and (low is not None or high is not None):
        descriptor.additional_constraints = info.allowed()
    if low is None or high is None:
        return descriptor  # ROS has no ranges that are open on one side; our own check has
    if field.type is int:
        bounds = IntegerRange(from_value=math.ceil(low), to_value=math.floor(high))
        descriptor.integer_range = [bounds]
    elif field.type is float:
        descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return descriptor
