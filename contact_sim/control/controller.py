"""What counts as a controller: efforts as a function of time and state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.errors import InvalidInput, shown

Array = NDArray[np.float64]
EffortFunction = Callable[[float, Array, Array], ArrayLike]


class Controller(Protocol):
    """Anything with `effort`; a plain function of the same three arguments will do as well."""

    def effort(self, time: float, q: Array, v: Array) -> ArrayLike:
        """Return joint efforts [N m], shape (n_joints,), at time [s], q (nq,) and v (nv,)."""
        ...


def effort_of(controller: Controller | EffortFunction) -> EffortFunction:
    """Return the function of time, q and v that a controller is.

    Raises:
        InvalidInput: an object that is none.
    """
    effort = getattr(controller, 'effort', controller)
    if not callable(effort):
        raise InvalidInput(
            f'controller = {shown(controller)}: expected an object with effort(time, q, v)'
        )
    function: EffortFunction = effort
    return function
