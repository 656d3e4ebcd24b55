"""Codes of how a solve ended, in the order of `contact.solution.SolverStatus`."""

from __future__ import annotations

(
    FREE, CONVERGED, CONVERGED_BY_FALLBACK, MAX_ITERATIONS, RAY_TERMINATION, NONFINITE, UNSTABLE,
    INCONSISTENT, TOO_MANY_EVENTS, PULLING, OUTSIDE_CONE, SINKING,
) = range(12)  # fmt: skip
