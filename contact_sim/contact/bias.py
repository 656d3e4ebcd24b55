"""The bias b of the rows, the same for every time-stepping model (theory 0).

    φ > 0   b_n = φ/h           no force before closure
    φ ≤ 0   b_n = β φ/h         Baumgarte share β of the penetration is taken out in one step
    impact  b_n = e u_n⁻        (+ β φ/h if φ ≤ 0) asks for u_n⁺ = −e u_n⁻

Restitution acts on a contact that was open (no impulse in the step before), closes in this step,
and approaches faster than a threshold. There the gap term φ/h is left out: with both terms the
law would ask for u_n⁺ = −e u_n⁻ − φ/h, which depends on where the step happens to end.

Interval rows follow the same rules with a gap of their own: contact/limits.py.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def gap_bias(gap, h, baumgarte):
    """Return φ/h before closure, β φ/h after it [m/s]."""
    return gap / h if gap > 0.0 else baumgarte * gap / h


@kernel
def fill_contact_bias(gap, u_start, u_free, impulse, h, restitution, settings, bias, rebound):
    """Fill b without restitution and, apart, the restitution part.

    Args:
        gap: signed distance at the start [m], shape (nc,).
        u_start: contact velocity before the step [m/s], rows (t1, t2, n).
        u_free: contact velocity after the step without contact [m/s], same shape.
        impulse: impulses of the step before [N s], same shape.
        h: time step [s].
        restitution: e of every contact [-], shape (nc,).
        settings: β [-], approach speed below which impacts are plastic [m/s].
        bias: out, b [m/s].
        rebound: out, e u_n⁻ where an impact is due [m/s], shape (nc,).
    """
    for i in range(gap.shape[0]):
        n = 3 * i + 2
        bias[n - 2] = bias[n - 1] = rebound[i] = 0.0
        if restitution[i] > 0.0:
            closes = gap[i] + h * u_free[n] < 0.0
            if closes and impulse[n] == 0.0 and u_start[n] < -settings[1]:
                rebound[i] = restitution[i] * u_start[n]
                bias[n] = min(settings[0] * gap[i] / h, 0.0)
                continue
        bias[n] = gap_bias(gap[i], h, settings[0])
