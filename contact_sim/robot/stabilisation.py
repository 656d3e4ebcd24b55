"""How a constraint on positions keeps its error h small (theory 4.6).

Projection     ḣ⁺ = 0 in every step, then q is moved back onto h(q) = 0
Baumgarte      ḧ = −kd ḣ − kp h, with kd = 2 α and kp = α² for critical damping
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contact_sim.errors import InvalidInput
from contact_sim.numbers import number_within


@dataclass(frozen=True)
class Projection:
    """Velocities satisfy the constraint, and positions are projected after each step."""


@dataclass(frozen=True, init=False)
class Baumgarte:
    """Feedback of the error at the level of accelerations [Baumgarte 1972].

    Args:
        alpha: α [1/s], for kd = 2 α and kp = α²; 0 leaves the drift of the integration.
        kp: feedback of h [1/s²]; with kd instead of alpha.
        kd: feedback of ḣ [1/s].

    Raises:
        InvalidInput: neither alpha nor both others, numbers below 0 or not finite.
    """

    kp: float
    kd: float

    def __init__(
        self, alpha: float | None = None, *, kp: float | None = None, kd: float | None = None
    ) -> None:
        if (alpha is None) == (kp is None) or (kp is None) != (kd is None):
            raise InvalidInput(
                f'Baumgarte: alpha = {alpha}, kp = {kp}, kd = {kd}: expected alpha, or kp and kd'
            )
        if alpha is not None:
            alpha = number_within('Baumgarte: alpha', alpha, np.inf)
            kp, kd = alpha * alpha, 2.0 * alpha
        for name, value in (('kp', kp), ('kd', kd)):
            object.__setattr__(self, name, number_within(f'Baumgarte: {name}', value, np.inf))


Stabilisation = Projection | Baumgarte
