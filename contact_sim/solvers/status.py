"""Codes of how a solve ended, in the order of `contact.solution.SolverStatus`."""

from __future__ import annotations

from contact_sim.solvers.jit import kernel

(
    FREE, CONVERGED, CONVERGED_BY_FALLBACK, MAX_ITERATIONS, RAY_TERMINATION, NONFINITE, UNSTABLE,
    INCONSISTENT, TOO_MANY_EVENTS, PULLING, OUTSIDE_CONE, SINKING, IMMOVABLE,
) = range(13)  # fmt: skip


@kernel
def worse(first, second):
    """Return the worse of two codes: one of a failed solve before one that judges a stance."""
    failed = MAX_ITERATIONS <= first < PULLING, MAX_ITERATIONS <= second < PULLING
    if failed[0] != failed[1]:
        return first if failed[0] else second
    return max(first, second)
