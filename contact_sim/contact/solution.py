"""Answer to a contact problem: impulses and status of the solver.

Non-convergence is a status; bad input is an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from contact_sim.solvers.status import (
    CONVERGED,
    CONVERGED_BY_FALLBACK,
    FREE,
    IMMOVABLE,
    INCONSISTENT,
    MAX_ITERATIONS,
    NONFINITE,
    OUTSIDE_CONE,
    PULLING,
    RAY_TERMINATION,
    SINKING,
    TOO_MANY_EVENTS,
    UNSTABLE,
)

__all__ = [
    'CONVERGED', 'CONVERGED_BY_FALLBACK', 'FREE', 'IMMOVABLE', 'INCONSISTENT', 'MAX_ITERATIONS',
    'NONFINITE', 'OUTSIDE_CONE', 'PULLING', 'RAY_TERMINATION', 'SINKING', 'STATUSES',
    'TOO_MANY_EVENTS', 'UNSTABLE', 'ContactSolution', 'SolverReport', 'SolverStatus',
]  # fmt: skip

Array = NDArray[np.float64]


class SolverStatus(Enum):
    """Status of a solve; the value is the sentence shown to people."""

    FREE = 'nothing to solve: no contact was active'
    CONVERGED = 'the solver met its tolerance'
    CONVERGED_BY_FALLBACK = 'the first method stalled; another one met the tolerance'
    MAX_ITERATIONS = 'the solver ran out of iterations; the best impulses found were used'
    RAY_TERMINATION = 'complementary pivoting found no answer; the circular cone was used'
    NONFINITE = 'not-a-number met in the solver; look at the effort and the mass matrix first'
    UNSTABLE = (
        'the explicit springs are too stiff for the time step (h ω > 2) and will explode; lower '
        'the stiffness or the time step, or integrate implicitly'
    )
    INCONSISTENT = (
        'no contact force obeys the laws here: rigid friction jams (Painlevé; hybrid takes one '
        'time-stepping step), or rows contradict each other'
    )
    TOO_MANY_EVENTS = (
        'contact events too many to follow one by one; a time-stepping step met the tolerance'
    )
    PULLING = 'the stance is held, but the ground would have to pull on a foot'
    OUTSIDE_CONE = 'the stance is held, but a foot needs more friction than there is'
    SINKING = 'the stance is held, but a foot outside the given support sinks into the ground'
    IMMOVABLE = (
        'solved without contacts that no motion of the robot can open, whose force is not '
        'determined; `immovable` of the report tells which'
    )

    @property
    def converged(self) -> bool:
        """True where the impulses satisfy the law to the solver's tolerance."""
        solved = (
            self.FREE, self.CONVERGED, self.CONVERGED_BY_FALLBACK, self.TOO_MANY_EVENTS,
            self.IMMOVABLE,
        )  # fmt: skip
        return self in solved or not self.physical

    @property
    def physical(self) -> bool:
        """False where a law without cones (null_space) was solved, with forces no ground has."""
        return self not in (self.PULLING, self.OUTSIDE_CONE, self.SINKING)


STATUSES = tuple(SolverStatus)
"""By the codes of solvers/status.py."""


@dataclass(frozen=True)
class SolverReport:
    """Outcome of one solve."""

    status: SolverStatus
    iterations: int
    """Sweeps and iterations, summed over the solvers that took part."""
    residual: float
    """Value of the solver's own stopping criterion at the end [N s]."""

    @property
    def converged(self) -> bool:
        """True where the solver met its tolerance."""
        return self.status.converged

    @property
    def physical(self) -> bool:
        """False where the law was solved with forces that no ground can give."""
        return self.status.physical

    @property
    def message(self) -> str:
        """The status as a sentence."""
        return self.status.value


@dataclass(frozen=True)
class ContactSolution:
    """Impulses that answer a ContactProblem, and how they were found."""

    impulse: Array
    """On the robot [N s], rows (t1, t2, n) per contact, then the scalar rows, shape (n,)."""
    solver: SolverReport
