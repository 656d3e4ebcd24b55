"""How a time-stepping model moves a robot with a free-flying base (theory 2.0), by name."""

from __future__ import annotations

from contact_sim.errors import UnknownName

SEMI_IMPLICIT, MOMENTUM = range(2)
INTEGRATORS = ('semi_implicit', 'momentum')


def integrator_code(name: str) -> int:
    """Return the code of an integrator in the arrays.

    Raises:
        UnknownName: a name that is not in INTEGRATORS.
    """
    if not isinstance(name, str) or name not in INTEGRATORS:
        raise UnknownName('integrator', name, INTEGRATORS)
    return INTEGRATORS.index(name)
