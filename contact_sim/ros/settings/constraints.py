"""Bilateral constraints from settings; imports no ROS."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from contact_sim.constraints.resolved import constraint_table, where_it_is
from contact_sim.constraints.words import KINDS, from_words
from contact_sim.dynamics.tree import tree_of
from contact_sim.errors import ContactSimError, InvalidInput, UnknownName
from contact_sim.parameters import ParameterField, Parameters, Settings, declared_parameters
from contact_sim.robot.constraints import Constraint
from contact_sim.robot.model import RobotModel
from contact_sim.robot.numbers import as_number
from contact_sim.ros.settings.held import ConstraintNames, ConstraintParameters
from contact_sim.ros.settings.robots import NAME

GROUP = 'constraints'
FEEDBACK = 'alpha', 'kp', 'kd'
NOT_OF_A_KIND = 'kind', 'enabled'
FIELDS: tuple[ParameterField, ...] = declared_parameters(ConstraintParameters)
FORM = "expected name: field=value field=value, such as 'stand: kind=frame_anchor frame=trunk'"


def constraint_groups(names: Iterable[str]) -> dict[str, type[Parameters]]:
    """Return the groups of parameters of constraints.

    Raises:
        InvalidInput: a name that cannot be part of a topic, that is taken or listed twice.
    """
    listed = list(names)
    taken = {field.name for field in declared_parameters(ConstraintNames)}  # type: ignore[arg-type]
    for name in listed:
        where = f'{GROUP}.names: {name!r}'
        if not NAME.fullmatch(name):
            raise InvalidInput(
                f'{where} cannot be part of a topic; expected a letter, then letters, digits and '
                'underscores'
            )
        if name in taken:
            raise InvalidInput(f'{where}: {GROUP}.{name} is this list; choose another name')
        if listed.count(name) > 1:
            raise InvalidInput(f'{where} is listed more than once')
    return {f'{GROUP}.{name}': ConstraintParameters for name in listed}


def described_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """Return all constraints, in force or not, in the order of `constraints.names`.

    Raises:
        InvalidInput: one that says too little, or what its kind does not have.
    """
    return tuple(_described(name, settings) for name in settings[GROUP].names)


def chosen_constraints(settings: Settings) -> tuple[Constraint, ...]:
    """Return the constraints in force.

    Raises:
        InvalidInput: see `described_constraints`.
    """
    return tuple(
        constraint
        for constraint in described_constraints(settings)
        if settings[f'{GROUP}.{constraint.name}'].enabled
    )


def check_constraints(robot: RobotModel, settings: Settings) -> None:
    """Refuse constraints that the robot cannot have, in force or not.

    Raises:
        InvalidInput: a frame or joint that does not exist, a joint of another kind.
    """
    constraints = described_constraints(settings)
    if not constraints:
        return
    tree, q = tree_of(robot.pinocchio_model), robot.reference_configuration()
    for constraint in constraints:
        with _about(constraint.name):
            constraint_table(robot, tree, [where_it_is(robot, constraint, q)])


def constraints_in(text: str) -> dict[str, Any]:
    """Return parameters from a text like 'stand: kind=frame_anchor frame=trunk; lock: ...'.

    Raises:
        InvalidInput: a text of another form, or a value of another type.
        UnknownName: a field that constraints do not have.
    """
    known = {field.name: field for field in FIELDS}
    values: dict[str, Any] = {}
    names = []
    for part in filter(None, map(str.strip, text.split(';'))):
        name, colon, rest = (word.strip() for word in part.partition(':'))
        if not colon or not name or not rest:
            raise InvalidInput(f'{GROUP}: {part!r}: {FORM}')
        names.append(name)
        for word in rest.split():
            field, equals, value = word.partition('=')
            if not equals or not value:
                raise InvalidInput(f'{GROUP}: {part!r}: {word!r}: {FORM}')
            if field not in known:
                raise UnknownName(f'field of {GROUP}.{name}:', field, known)
            with _about(name):
                values[f'{GROUP}.{name}.{field}'] = _value(known[field], value)
    constraint_groups(names)
    return {f'{GROUP}.names': names, **values} if names else {}


def _value(field: ParameterField, text: str) -> Any:
    """Return a value of the declared type from a text."""
    if field.type is str:
        return text
    if field.type is bool:
        if text not in ('true', 'false'):
            raise InvalidInput(f'{field.name} = {text!r}: expected true or false')
        return text == 'true'
    numbers = [as_number(word) for word in text.split(',')]
    if any(number != number for number in numbers) or (field.type is float and len(numbers) > 1):
        what = 'a number' if field.type is float else 'numbers with commas between them'
        raise InvalidInput(f'{field.name} = {text!r}: expected {what}')
    return numbers[0] if field.type is float else numbers


def _described(name: str, settings: Settings) -> Constraint:
    """Return a constraint as its words describe it."""
    said = settings[f'{GROUP}.{name}']
    with _about(name):
        if said.kind not in KINDS:
            raise UnknownName('kind', said.kind, KINDS)
        fields = {field.name: field for field in dataclasses.fields(KINDS[said.kind])}
        takes = {*fields, *FEEDBACK} if 'stabilisation' in fields else set(fields)
        words: dict[str, Any] = {'kind': said.kind, 'name': name}
        for field in FIELDS:
            value = getattr(said, field.name)
            required = field.name in fields and _is_required(fields[field.name])
            if field.name in NOT_OF_A_KIND or (value == field.default and not required):
                continue
            if field.name not in takes:
                has = {one.name for one in FIELDS} & takes
                raise InvalidInput(
                    f'{field.name}: a {said.kind} has none; it has {", ".join(sorted(has))}'
                )
            if value == '':
                raise InvalidInput(f'{field.name} is not set: a {said.kind} needs it')
            words[field.name] = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        if 'stabilisation' in fields:
            feedback = {key: words.pop(key) for key in FEEDBACK if key in words}
            words |= {'stabilisation': feedback} if feedback else {}
        return from_words(words)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Let messages begin with the constraint that they are about."""
    try:
        yield
    except ContactSimError as error:
        raise InvalidInput(f'{GROUP}.{name}: {error}') from error
