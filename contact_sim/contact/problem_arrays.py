"""A contact problem as a value, in the arrays on which compiled laws work."""

from __future__ import annotations

from contact_sim.arrays.fields import Sizes
from contact_sim.contact.problem import Array, ContactProblem
from contact_sim.contact.workspace import Workspace
from contact_sim.numbers import shaped
from contact_sim.solvers.delassus import EVERYWHERE


class ProblemArrays(Workspace):
    """The arrays of a step that has come to its contact problem; every block is active."""

    def __init__(self, problem: ContactProblem, guess: Array | None = None) -> None:
        nc, ns, n = problem.n_contacts, len(problem.lower), problem.n_rows
        self.sizes = Sizes(0, len(problem.velocity), 0, nc, ns)
        self._allocate()
        self.counts[:2] = nc, n
        self.row_of[:], self.row_leaf[:] = range(n), EVERYWHERE
        self.delassus[:] = problem.delassus.ravel()
        self.row_impulse[:] = 0.0 if guess is None else shaped('guess', guess, n)
        self.row_memory[:] = self.row_memory_next[:] = problem.memory
        for name, value in (
            ('g', problem.g), ('row_free', problem.free_velocity),
            ('row_start', problem.start_velocity), ('row_friction', problem.friction),
            ('row_gap', problem.gap), ('row_lower', problem.lower),
            ('row_upper', problem.upper), ('row_interval_gap', problem.interval_gap),
            ('row_weight', problem.inverse_weight),
        ):  # fmt: skip
            getattr(self, name)[:] = value
        self.data.time_step[0] = problem.time_step
        self.data.inertia[:] = problem.inertia
        self.data.jacobian_transposed[:] = problem.jacobian.T
