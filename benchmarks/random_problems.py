"""Random contact problems: does every solver end honestly, and is what it calls converged right?

    python benchmarks/random_problems.py [--problems 100000] [--seed 0] [--solvers ncp,sap]

1 to 16 contacts, friction 0 to 2, condition of G up to 1e8. The table says how often each solver
converged, by itself or by its fallback, how often it gave up, how many of its converged answers
its judge does not accept, and the worst of these against what was allowed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from judges import JUDGES

from contact_sim import Anitescu, Compliant, ContactProblem, Lcp, Ncp, Sap, Todorov
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.step._problem import SolverStatus

MOST_CONTACTS, LARGEST_FRICTION, LARGEST_CONDITION = 16, 2.0, 1e8
TIME_STEP, DEEPEST = 1e-3, 1e-3

SOLVERS: dict[str, TimeSteppingModel] = {
    'ncp': Ncp(),
    'ncp pgs': Ncp(solver='pgs', max_sweeps=500),
    'ncp raisim': Ncp(solver='raisim', max_sweeps=100),
    'ncp staggered': Ncp(solver='staggered', max_sweeps=500),
    'anitescu': Anitescu(),
    'anitescu 8 sides': Anitescu(sides=8),
    'lcp 8 sides': Lcp(),
    'lcp box': Lcp(friction_law='box'),
    'sap': Sap(),
    'sap ahead': Sap(acts_ahead=True, weight='delassus'),
    'sap similar': Sap(approximation='similar'),
    'sap original': Sap(approximation='sap', acts_ahead=True),
    'todorov': Todorov(),
    'todorov elliptic': Todorov(cone='elliptic', diagonal='exact'),
    'todorov 2014': Todorov(form='2014', cone='elliptic'),
    'compliant': Compliant(stiffness=1e6, friction_law='tanh'),
    'compliant bouncing': Compliant(stiffness=1e6, friction_law='tanh', dissipation=1.0),
}


@dataclass
class Row:
    """Outcome of the problems of one solver."""

    statuses: Counter[SolverStatus] = field(default_factory=Counter)
    wrong: list[int] = field(default_factory=list)
    """Seeds of problems whose converged answer the judge does not accept."""
    worst: float = 0.0
    """Largest judged residual of a converged answer over what is allowed."""
    seconds: float = 0.0


def random_problem(seed: int) -> ContactProblem:
    """Return the problem number `seed`: contacts near the ground, approaching and sliding.

    G has a prescribed condition, or comes from a mechanism of fewer or more degrees of freedom
    than rows, whose mass matrix has that condition (then G may be singular).
    """
    rng = np.random.default_rng(seed)
    # small problems are more frequent: every size takes about the same time
    sizes = np.arange(1, MOST_CONTACTS + 1)
    nc = int(rng.choice(sizes, p=(1.0 / sizes) / (1.0 / sizes).sum()))
    n, condition = 3 * nc, LARGEST_CONDITION ** rng.uniform()
    if rng.uniform() < 0.7:
        J, nv = np.linalg.qr(rng.standard_normal((n, n)))[0].T, n
    else:
        nv = int(rng.integers(6, 31))
        J = rng.standard_normal((n, nv))
    spectrum = condition ** rng.uniform(-0.5, 0.5, nv)
    if nv > 1:
        spectrum[:2] = condition**-0.5, condition**0.5
    turn = np.linalg.qr(rng.standard_normal((nv, nv)))[0]
    M = (turn * spectrum) @ turn.T
    M = 0.5 * (M + M.T)
    v, speed = rng.standard_normal(nv), rng.standard_normal(n)
    v_free = v + TIME_STEP * 10.0 * rng.standard_normal(nv)
    if nv == n:  # contact velocities of order 1, whatever the condition
        v = np.linalg.solve(J, speed)
        v_free = v + np.linalg.solve(J, TIME_STEP * 10.0 * rng.standard_normal(n))
    gap = DEEPEST * rng.uniform(-1.0, 1.0, nc) * (rng.uniform(size=nc) < 0.7)
    bias = np.zeros(n)
    bias[2::3] = np.where(gap > 0.0, gap, 0.2 * gap) / TIME_STEP
    mu = rng.uniform(0.0, LARGEST_FRICTION, nc) * (rng.uniform(size=nc) < 0.9)
    return ContactProblem.from_dynamics(M, J, v, v_free, mu, gap, bias, TIME_STEP)


def put_to_the_test(
    solvers: dict[str, TimeSteppingModel], seeds: range, progress: bool
) -> dict[str, Row]:
    """Solve and judge every problem with every solver."""
    rows = {name: Row() for name in solvers}
    begin = time.perf_counter()
    for count, seed in enumerate(seeds, 1):
        problem = random_problem(seed)
        for name, model in solvers.items():
            row, started = rows[name], time.perf_counter()
            solution = model.solve(problem)
            row.seconds += time.perf_counter() - started
            row.statuses[solution.solver.status] += 1
            if not np.isfinite(solution.impulse).all():
                row.wrong.append(seed)
                row.worst = np.inf
            elif solution.solver.converged:
                residual = JUDGES[type(model)](model, problem, solution.impulse)
                row.worst = max(row.worst, residual)
                if not residual <= 1.0:
                    row.wrong.append(seed)
        if progress and (count % 100 == 0 or count == len(seeds)):
            left = (time.perf_counter() - begin) / count * (len(seeds) - count)
            print(f'\r{count} of {len(seeds)}, {left:.0f} s left ', end='', file=sys.stderr)
    if progress:
        print(file=sys.stderr)
    return rows


def table(rows: dict[str, Row]) -> str:
    """Return the outcome as text, one line per solver."""
    lines = [
        f'{"solver":18}{"converged":>10}{"fallback":>10}{"gave up":>9}{"not finite":>11}'
        f'{"wrong":>7}{"worst/allowed":>15}{"µs/problem":>12}'
    ]
    for name, row in rows.items():
        status, total = row.statuses, sum(row.statuses.values())
        gave_up = status[SolverStatus.MAX_ITERATIONS] + status[SolverStatus.RAY_TERMINATION]
        lines.append(
            f'{name:18}{status[SolverStatus.CONVERGED]:10}'
            f'{status[SolverStatus.CONVERGED_BY_FALLBACK]:10}{gave_up:9}'
            f'{status[SolverStatus.NONFINITE]:11}{len(row.wrong):7}{row.worst:15.3g}'
            f'{1e6 * row.seconds / max(total, 1):12.0f}'
        )
        if row.wrong:
            lines.append(f'    not accepted: problems {row.wrong[:10]}')
    return '\n'.join(lines)


def main() -> int:
    """Run, print the table; return 1 if a converged answer was not accepted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--problems', type=int, default=100_000)
    parser.add_argument('--seed', type=int, default=0, help='number of the first problem')
    parser.add_argument('--solvers', default=','.join(SOLVERS), help='names, comma-separated')
    args = parser.parse_args()
    chosen = {name: SOLVERS[name] for name in args.solvers.split(',')}
    put_to_the_test(chosen, range(1), progress=False)  # compiles
    rows = put_to_the_test(chosen, range(args.seed, args.seed + args.problems), progress=True)
    print(table(rows))
    return 1 if any(row.wrong for row in rows.values()) else 0


if __name__ == '__main__':
    sys.exit(main())
