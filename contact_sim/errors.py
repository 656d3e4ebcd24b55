"""Errors raised at the edge of contact_sim.

Bad input raises one of these; a solver that does not converge is a status, never an exception
(step/_problem.py).
"""

from __future__ import annotations

import dataclasses
import difflib
import reprlib
from collections.abc import Iterable
from typing import Any, TypeVar

LONGEST = 2000
"""Characters of a message that may quote what somebody has sent."""
LONGEST_SUMMARY = 400
"""Characters of the `repr` of an object."""
LONGEST_PART = 80
"""Characters of one quantity in it."""
SHORT_ARRAY = 4
"""Numbers of an array up to which a summary has them all."""


def shortened(text: object, longest: int = LONGEST) -> str:
    """Return a text of at most `longest` characters: beginning and end, where it has more."""
    whole = str(text)
    if len(whole) <= longest:
        return whole
    gap = f' [... {len(whole)} characters ...] '
    kept = max(longest - len(gap), 0)
    return whole[: kept - kept // 2] + gap + whole[len(whole) - kept // 2 :]


class ContactSimError(Exception):
    """Root of every exception raised by contact_sim; its message is bounded."""

    def __str__(self) -> str:
        return shortened(self.args[0]) if self.args else ''


class InvalidInput(ContactSimError, ValueError):
    """Invalid input; the message names the value, its place and the allowed values."""

    reason = ''
    """What is wrong with the value, without its name; empty where only the message says it."""


class UnknownName(ContactSimError, KeyError):
    """Unknown name; the message lists the valid names and the nearest one."""

    def __init__(self, kind: str, name: object, known: Iterable[object]) -> None:
        choices = [str(choice) for choice in known]
        if isinstance(known, set | frozenset):
            choices.sort()
        super().__init__(
            f'unknown {kind} {shown(name)}; known: {", ".join(choices) or "none"}'
            f'{suggestion(name, choices)}'
        )


class UnknownKeyword(UnknownName, TypeError):
    """Unknown keyword argument of a call."""


class UnknownAttribute(UnknownName, AttributeError):
    """Attribute that an object does not have, and that somebody wants to set."""


class ReadOnlyAttribute(InvalidInput, AttributeError):
    """Attribute that cannot be assigned; the message names the call that changes it."""


def folded(name: str) -> str:
    """Return a name as it is compared: lower case, with _ in place of spaces and hyphens."""
    return name.strip().lower().replace('-', '_').replace(' ', '_')


def suggestion(name: object, known: Iterable[str]) -> str:
    """Return '; did you mean ...?' with the known name nearest to `name`, or ''."""
    if not isinstance(name, str):
        return ''
    choices = {folded(choice): choice for choice in known}
    near = difflib.get_close_matches(folded(shortened(name, 100)), choices, n=1)
    return f'; did you mean {choices[near[0]]!r}?' if near else ''


def known_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return the one of `known` that `name` stands for, in upper or lower case.

    Raises:
        UnknownName: none of them; the message lists them and the nearest one.
    """
    choices = tuple(known)
    if isinstance(name, str):
        if name in choices:
            return name
        same = [choice for choice in choices if folded(choice) == folded(name)]
        if len(same) == 1:
            return same[0]
    raise UnknownName(kind, name, choices)


class RobotDescriptionError(ContactSimError, ValueError):
    """A URDF, xacro or SRDF that is missing, malformed or physically impossible."""


class MissingMesh(RobotDescriptionError):
    """A mesh of a robot that is not on this machine."""


class NonFiniteState(ContactSimError, ArithmeticError):
    """The state is not finite; the message names the step. Reset to continue."""


class SingularLegs(ContactSimError, ArithmeticError):
    """Legs that cannot move their feet in all directions, or whose state is not finite."""


Kind = TypeVar('Kind')


def of_type(name: str, value: object, kind: type[Kind]) -> Kind:
    """Return `value` if it is of this type, or raise InvalidInput."""
    if not isinstance(value, kind):
        raise InvalidInput(f'{name} = {shown(value)}: expected {kind.__name__}')
    return value


class _Bounded(reprlib.Repr):
    """Of lists in lists a few entries only: a small file with aliases unfolds without end."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 12
        self.maxstring = self.maxlong = self.maxother = 10 * LONGEST

    def repr_instance(self, x: object, level: int) -> str:
        try:
            return repr(x)
        except Exception:  # an object whose repr fails is as wrong as any other
            return self.unprintable(x)

    def unprintable(self, x: object) -> str:
        return f'an object of type {type(x).__name__}'


_BOUNDED = _Bounded()


def shown(value: object) -> str:
    """Return a value for a message, in at most 200 characters."""
    try:
        return shortened(_BOUNDED.repr(value), 200)
    except Exception:  # such as an integer of 10 000 digits
        return _BOUNDED.unprintable(value)


def summary(value: object, **quantities: object) -> str:
    """Return one line that says what an object is: its class, and quantities by name."""
    parts = ', '.join(f'{name}={_brief(part)}' for name, part in quantities.items())
    return shortened(f'{type(value).__name__}({parts})', LONGEST_SUMMARY)


def one_line(value: Any) -> str:
    """Return a dataclass in one line, arrays by their shapes: a `__repr__`."""
    fields = (field.name for field in dataclasses.fields(value) if field.repr)
    return summary(value, **{name: getattr(value, name, '?') for name in fields})


def _brief(value: Any) -> str:
    shape = getattr(value, 'shape', None)
    if isinstance(shape, tuple) and hasattr(value, 'tolist'):
        if len(shape) == 0 or (len(shape) == 1 and shape[0] <= SHORT_ARRAY):
            return str(value.tolist())
        return f'array {shape}'
    return shortened(' '.join(shown(value).split()), LONGEST_PART)
