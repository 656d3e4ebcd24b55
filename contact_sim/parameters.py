"""Parameters with type, default, unit, bounds and description.

Three readers share the declaration: validation when the dataclass is built, the declaration of
ROS parameters, and the generated files in config/ and docs/.
"""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, TypeVar

from contact_sim._validation import (
    Check,
    Rules,
    check_of,
    flag,
    real_array,
    real_number,
    refused,
    text,
    whole,
)
from contact_sim.errors import (
    InvalidInput,
    UnknownKeyword,
    UnknownName,
    folded,
    shown,
    suggestion,
)

ROUNDING = 1e-16
"""Relative error of one operation in float64: no equation is solved more closely."""


@dataclass(frozen=True)
class ParameterInfo:
    """Unit, meaning and allowed values of one parameter."""

    unit: str
    meaning: str
    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] | None = None
    live: bool = False
    """True where a running simulation accepts a new value."""

    def allowed(self) -> str:
        """Return the allowed values in words, e.g. 'a value in (0, inf)'."""
        if self.choices is not None:
            return 'one of ' + ', '.join(self.choices)
        low = '(-inf' if self.at_least is None else f'[{self.at_least:g}'
        low = low if self.above is None else f'({self.above:g}'
        high = 'inf)' if self.at_most is None else f'{self.at_most:g}]'
        high = high if self.below is None else f'{self.below:g})'
        return f'a finite value in {low}, {high}'

    def refusal(self, value: Any) -> str | None:
        """Return why `value` is not allowed, or None. Tests are positive, so NaN is refused."""
        if value is None:  # of the declared type, so it may be
            return None
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if isinstance(number, str):
                if self.choices is not None and number not in self.choices:
                    return f'expected {self.allowed()}{suggestion(number, self.choices)}'
            elif type(number) in (int, float) and not (
                math.isfinite(number)
                and (self.above is None or number > self.above)
                and (self.at_least is None or number >= self.at_least)
                and (self.below is None or number < self.below)
                and (self.at_most is None or number <= self.at_most)
            ):
                return f'expected {self.allowed()}'
        return None

    def as_listed(self, value: Any) -> Any:
        """Return the choices that a text or texts stand for, in upper or lower case."""
        if self.choices is None:
            return value
        if isinstance(value, tuple):
            return tuple(map(self.as_listed, value))
        listed = {folded(choice): choice for choice in self.choices}
        if isinstance(value, str) and value not in self.choices:
            return listed.get(folded(value), value)
        return value


def parameter(default: Any, unit: str, meaning: str, **bounds: Any) -> Any:
    """Return a dataclass field that carries its `ParameterInfo` (bounds: see that class)."""
    info = ParameterInfo(unit, meaning, **bounds)
    return dataclasses.field(default=default, metadata={'parameter': info})


def required(unit: str, meaning: str, **bounds: Any) -> Any:
    """Return a parameter without a default."""
    return parameter(dataclasses.MISSING, unit, meaning, **bounds)


def relative_tolerance(default: float, meaning: str) -> Any:
    """Return the parameter that says how closely an equation is solved, at best to rounding."""
    return parameter(default, '-', meaning, at_least=ROUNDING, below=1.0, live=True)


@dataclass(frozen=True)
class ParameterField:
    """One declared parameter, as the readers see it."""

    name: str
    type: Any
    default: Any
    info: ParameterInfo


@dataclass(frozen=True)
class Parameters:
    """Base of every parameter class: values are checked when the object is built.

    Raises:
        InvalidInput: a value of the wrong type or outside its bounds; the message names the
            class, the parameter, the value, the unit and what is allowed.
        UnknownKeyword: a parameter that does not exist; the message names the nearest.
    """

    def __new__(cls, *args: Any, **values: Any) -> Self:
        """Return an object before its values are set; refuse names of no parameter."""
        if values:
            known = [field.name for field in declared_parameters(cls)]  # type: ignore[arg-type]
            for name in values:
                if name not in known:
                    raise UnknownKeyword(f'parameter of {cls.__name__}', name, known)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in declared_parameters(type(self)):  # type: ignore[arg-type]
            value = checked_value(type(self).__name__, field, getattr(self, field.name))
            object.__setattr__(self, field.name, value)


Settings = dict[str, Any]
"""Checked parameters by dotted prefix, each an instance of the class that declares them."""
Declared = TypeVar('Declared', bound=Parameters)


@cache
def declared_parameters(cls: type[Parameters]) -> tuple[ParameterField, ...]:
    """Return the parameters that `cls` declares, in order."""
    hints = typing.get_type_hints(cls)
    return tuple(
        ParameterField(field.name, hints[field.name], field.default, field.metadata['parameter'])
        for field in dataclasses.fields(cls)
    )


def checked_value(owner: str, field: ParameterField, value: Any) -> Any:
    """Return `value` in the declared type, or raise InvalidInput."""
    try:
        typed = field.info.as_listed(_check_of(field.type)(field.name, value))
        reason = field.info.refusal(typed)
    except InvalidInput as error:
        reason = error.reason
    if reason is not None:
        unit = '' if field.info.unit in ('', '-') else f' {field.info.unit}'
        raise InvalidInput(
            f'{owner}.{field.name} = {shown(value)}{unit}: {reason} ({field.info.meaning})'
        )
    return typed


def _exactly(kind: type, check: Check) -> Check:
    """Return a check whose error names the type, as ROS and Python do; no bool is a number."""

    def check_type(name: str, value: Any) -> Any:
        try:
            if kind is bool or not isinstance(value, bool):
                return check(name, value)
        except InvalidInput:
            pass
        raise refused(name, value, f'expected {kind.__name__}, got {type(value).__name__}')

    return check_type


RULES = Rules(
    of_array=real_array, of_float=_exactly(float, real_number), of_int=_exactly(int, whole),
    of_bool=_exactly(bool, flag), of_str=_exactly(str, text),
)  # fmt: skip


@cache
def _check_of(hint: Any) -> Check:
    """Return the check of a declared type: of one value, of a tuple, or of T | None."""
    check = check_of(hint, RULES)
    if check is not None:
        return check
    assert isinstance(hint, type), hint  # such as dict, which is taken as it is

    def check_instance(name: str, value: Any) -> Any:
        if not isinstance(value, hint):
            raise refused(name, value, f'expected {hint.__name__}, got {type(value).__name__}')
        return hint(value)

    return check_instance


def from_mapping(cls: type[Declared], values: Mapping[str, Any]) -> Declared:
    """Return an object of a parameter class from plain values by name.

    Raises:
        UnknownName: a name that `cls` does not declare; the message names the nearest.
        InvalidInput: a value that is missing or not allowed.
    """
    declared = {field.name: field for field in declared_parameters(cls)}  # type: ignore[arg-type]
    for name in values:
        if name not in declared:
            raise UnknownName(f'parameter of {cls.__name__}', name, declared)
    for name, field in declared.items():
        if field.default is dataclasses.MISSING and name not in values:
            unit = '' if field.info.unit in ('', '-') else f' [{field.info.unit}]'
            raise InvalidInput(f'{cls.__name__}.{name}{unit} is missing: {field.info.meaning}')
    return cls(**values)
