"""Declared parameters as ROS parameters: typed, bounded, described, checked as a whole."""

from __future__ import annotations

import difflib
import math
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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

from contact_sim.errors import ContactSimError, InvalidInput, shortened
from contact_sim.parameters import ParameterField, Parameters, Settings, declared_parameters

SCALARS = {
    bool: Parameter.Type.BOOL,
    int: Parameter.Type.INTEGER,
    float: Parameter.Type.DOUBLE,
    str: Parameter.Type.STRING,
}
LISTS = {float: Parameter.Type.DOUBLE_ARRAY, str: Parameter.Type.STRING_ARRAY}
"""Types of ROS by declared type, and by that of the items of a list."""
NUMBER = re.compile(r'[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?')


def full_name(prefix: str, name: str) -> str:
    """Return the dotted name of a parameter."""
    return f'{prefix}.{name}' if prefix else name


class ParameterServer:
    """Declares parameter groups on a node and keeps their values as checked dataclasses.

    `check` is called with the settings of a request and raises ContactSimError to refuse, `apply`
    with these settings and the prefixes that changed; it may refuse likewise.
    """

    def __init__(
        self,
        node: Node,
        check: Callable[[Settings], None] = lambda settings: None,
        apply: Callable[[Settings, set[str]], None] = lambda settings, changed: None,
    ) -> None:
        self._node, self._check, self._apply = node, check, apply
        self._fields: dict[str, ParameterField] = {}  # by full name
        self._restoring = False
        self.settings: Settings = {}

    def declare(self, groups: Mapping[str, type[Parameters]]) -> None:
        """Declare groups by prefix; start values come from the command line and YAML files.

        What is declared already stays as it is.
        """
        with self.declaring():
            for prefix, cls in groups.items():
                if prefix not in self.settings:
                    self._declare_group(prefix, cls)

    @contextmanager
    def declaring(self) -> Iterator[None]:
        """Let parameters be declared: none of them alone is a request to be checked."""
        before, self._restoring = self._restoring, True
        try:
            yield
        finally:
            self._restoring = before

    def _declare_group(self, prefix: str, cls: type[Parameters]) -> None:
        values = {
            field.name: self._declare_one(full_name(prefix, field.name), field)
            for field in declared_parameters(cls)  # type: ignore[arg-type]
        }
        try:
            self.settings[prefix] = cls(**values)
        except InvalidInput as error:
            raise InvalidInput(f'{prefix}: {error}' if prefix else error) from error

    def accept_changes(self) -> Settings:
        """Take requests from now on; return the settings to begin with."""
        self._check(self.settings)
        self._node.add_pre_set_parameters_callback(self._as_declared)
        self._node.add_on_set_parameters_callback(self._on_set)
        return self.settings

    def unknown(self) -> Iterator[str]:
        """Yield a line about each parameter of a file or command line that is not declared."""
        for name in getattr(self._node, '_parameter_overrides', {}):
            if not self._node.has_parameter(name):
                near = difflib.get_close_matches(shortened(name, 100), self._fields, n=1)
                guess = f'; did you mean {near[0]}?' if near else ''
                yield f'there is no parameter {shortened(name, 100)!r}, it is ignored{guess}'

    def change(self, values: Mapping[str, Any]) -> None:
        """Change parameters by name, all of them or none; raise InvalidInput to refuse."""
        new = [ros_parameter(name, self._fields[name], value) for name, value in values.items()]
        result = self._node.set_parameters_atomically(new)
        if not result.successful:
            raise InvalidInput(result.reason)

    def restore(self, settings: Settings) -> None:
        """Return to settings from before changes that were accepted, and could not be applied."""
        changed = {
            full_name(prefix, name): value
            for prefix, group in settings.items()
            for name, value in vars(group).items()
            if value != getattr(self.settings[prefix], name)
        }
        self.settings, self._restoring = settings, True
        try:
            self.change(changed)
        finally:
            self._restoring = False

    def _declare_one(self, name: str, field: ParameterField) -> Any:
        self._fields[name] = field
        if field.default != ():
            start = list(field.default) if is_list(field) else field.default
            value = self._node.declare_parameter(name, start, parameter_descriptor(field)).value
            return tuple(without_blanks(value)) if is_list(field) else value
        # a list that is empty by default: first its type, which [] does not determine
        if is_list(field, of=float):  # whole numbers, and one alone, are of other types
            any_type = ParameterDescriptor(dynamic_typing=True)
            value = self._node.declare_parameter(name, [], any_type).value
            value = ros_parameter(name, field, value).value
        else:
            value = self._node.declare_parameter(name, LISTS[get_args(field.type)[0]]).value
        items = value if isinstance(value, str | bool) else tuple(without_blanks(value or ()))
        self._node.set_parameters([ros_parameter(name, field, items)])
        self._node.set_descriptor(name, parameter_descriptor(field))
        return items

    def _as_declared(self, requested: list[Parameter]) -> list[Parameter]:
        """Return the requested values in the declared types, where that is possible."""
        return [
            ros_parameter(parameter.name, self._fields[parameter.name], parameter.value)
            if parameter.name in self._fields
            else parameter
            for parameter in requested
        ]

    def _on_set(self, requested: list[Parameter]) -> SetParametersResult:
        if self._restoring:
            return SetParametersResult(successful=True)
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
        except Exception as error:  # a request is always answered
            reason = shortened(repr(error))
            self._node.get_logger().error(f'parameters refused: {reason}')
            return SetParametersResult(successful=False, reason=reason)
        self.settings = changed
        return SetParametersResult(successful=True)


def is_list(field: ParameterField, of: type | None = None) -> bool:
    """Return whether a parameter is a list, of items of a type where one is given."""
    return get_origin(field.type) is tuple and of in (None, get_args(field.type)[0])


def without_blanks(value: Any) -> Any:
    """Return a list without empty texts, other values as they are: in ROS [''] stands for []."""
    return [item for item in value if item != ''] if isinstance(value, list | tuple) else value


def ros_parameter(name: str, field: ParameterField, value: Any) -> Parameter:
    """Return a value as the ROS parameter of the declared type, or of its own where it has none.

    ros2cli sends 1e-10 as a text, and [] as a list of bool. A number alone is a list of one.
    """
    if isinstance(value, array):
        value = value.tolist()
    if is_list(field, of=float) and isinstance(_as_number(float, value), float):
        value = [value]
    if is_list(field) and isinstance(value, list | tuple):
        of = get_args(field.type)[0]
        items = [_as_number(of, item) for item in without_blanks(value)]
        if all(type(item) is of for item in items):
            return Parameter(name, LISTS[of], items)
    elif not is_list(field):
        value = _as_number(field.type, value)
        if type(value) is field.type:
            return Parameter(name, SCALARS[field.type], value)
    return Parameter(name, value=value)


def _as_number(declared: type, value: Any) -> Any:
    """Return whole numbers and texts of numbers as float, where one is declared."""
    written = isinstance(value, str) and NUMBER.fullmatch(value)
    return float(value) if declared is float and (type(value) is int or written) else value


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
    elif is_list(field):
        descriptor.dynamic_typing = is_list(field, of=float)
        descriptor.type = LISTS[get_args(field.type)[0]].value
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
