"""The bias b of the normal rows, the same for every time-stepping model (physics.md 0).

    φ > 0   b_n = φ/h           no force before closure
    φ ≤ 0   b_n = β φ/h         Baumgarte share β of the penetration is taken out in one step
    impact  b_n = e u_n⁻        (+ β φ/h if φ ≤ 0) asks for u_n⁺ = −e u_n⁻

Restitution acts on a contact that was open (no impulse in the step before), closes in this step,
and approaches faster than a threshold. There the gap term φ/h is left out: with both terms the
law would ask for u_n⁺ = −e u_n⁻ − φ/h, which depends on where the step happens to end.
"""

from __future__ import annotations

from contact_sim.solvers.jit import kernel


@kernel
def fill_bias(
    gap, u_start, u_free, impulse, h, baumgarte, restitution, threshold, bias, restitution_bias
):
    """Fill b without restitution and, apart, the restitution part; return its number of contacts.

    Args:
        gap: signed distance at the start [m], shape (nc,).
        u_start: contact velocity before the step [m/s], rows (t1, t2, n).
        u_free: contact velocity after the step without contact [m/s], same shape.
        impulse: impulses of the step before [N s], same shape.
        h: time step [s].
        baumgarte: β [-].
        restitution: e of every contact [-], shape (nc,).
        threshold: approach speed below which impacts are plastic [m/s].
        bias: out, b [m/s].
        restitution_bias: out, e u_n⁻ where an impact is due [m/s], shape (nc,).
    """
    impacts = 0
    bias[:] = 0.0
    restitution_bias[:] = 0.0
    for i in range(gap.shape[0]):
        n = 3 * i + 2
        closes = gap[i] + h * u_free[n] < 0.0
        if restitution[i] > 0.0 and closes and impulse[n] == 0.0 and u_start[n] < -threshold:
            restitution_bias[i] = restitution[i] * u_start[n]
            bias[n] = min(baumgarte * gap[i] / h, 0.0)
            impacts += 1
        else:
            bias[n] = gap[i] / h if gap[i] > 0.0 else baumgarte * gap[i] / h
    return impacts
