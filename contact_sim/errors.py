"""Errors raised at the edge of contact_sim.

Bad input raises one of these; a solver that does not converge is a status, never an exception
(step/_problem.py).
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable
from typing import TypeVar

LONGEST = 2000
"""Characters of a message that may quote what somebody has sent."""


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
        choices = sorted(str(choice) for choice in known)
        text = shortened(name, 100) if isinstance(name, str) else ''
        near = difflib.get_close_matches(text, choices, n=1)
        guess = f'; did you mean {near[0]!r}?' if near else ''
        super().__init__(
            f'unknown {kind} {shown(name)}; known: {", ".join(choices) or "none"}{guess}'
        )


class RobotDescriptionError(ContactSimError, ValueError):
    """A URDF, xacro or SRDF that is missing, malformed or physically impossible."""


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
