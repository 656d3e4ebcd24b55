"""Sine and cosine of joint angles, together: the joints of a robot turn in every step.

Arithmetic alone, so that the same angle has the same bits on every machine; libraries of the
operating system differ in the last one.
"""

from __future__ import annotations

import math

import numpy as np

from contact_sim.solvers.jit import kernel

S3, S5, S7, S9, S11, S13, S15 = ((-1.0) ** k / math.factorial(2 * k + 1)
                                 for k in range(1, 8))  # fmt: skip
C4, C6, C8, C10, C12, C14, C16 = ((-1.0) ** k / math.factorial(2 * k)
                                  for k in range(2, 9))  # fmt: skip
"""Coefficients of the Taylor series; at π/4 what they leave out is below rounding."""
HIGH, MIDDLE, LOW = (
    float.fromhex(part)
    for part in ('0x1.921fb544p+0', '0x1.0b4611a6p-34', '0x1.3198a2e037073p-69')
)
"""π/2 in parts: the product of the first two, of 33 bits each, with a quarter turn is exact."""
MOST = 1e5
"""Largest angle [rad] for which that holds with much to spare."""


@kernel
def sine_cosine(angle):
    """Return (sin, cos) of an angle [rad], each to 2 units in the last place."""
    if not abs(angle) < MOST:
        return np.sin(angle), np.cos(angle)
    quarters = np.rint(angle * (2.0 / np.pi))
    r = ((angle - quarters * HIGH) - quarters * MIDDLE) - quarters * LOW
    z = r * r
    sine = r + r * z * (
        S3 + z * (S5 + z * (S7 + z * (S9 + z * (S11 + z * (S13 + z * S15)))))
    )  # fmt: skip
    cosine = 1.0 - (0.5 * z - z * z * (
        C4 + z * (C6 + z * (C8 + z * (C10 + z * (C12 + z * (C14 + z * C16)))))
    ))  # fmt: skip
    turn = int(quarters) & 3
    if turn & 1:
        sine, cosine = cosine, -sine
    if turn & 2:
        sine, cosine = -sine, -cosine
    return sine, cosine
