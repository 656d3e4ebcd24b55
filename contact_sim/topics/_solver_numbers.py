"""Labelled numbers of a step: convergence, residuals, support of the feet, constraint errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from contact_sim.collision._terrain import Terrain
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart
from contact_sim.sensors._robot_view import Report, RobotView
from contact_sim.simulation._report import StepReport
from contact_sim.step._problem import STATUSES, SolverStatus
from contact_sim.support._analysis import Support, analyse_support

AXES = 'xyz'
WARNED = SolverStatus.UNSTABLE, SolverStatus.IMMOVABLE, SolverStatus.INCONSISTENT
"""Statuses that are warned about, besides those with unphysical forces."""
MISSED = 1e-6
"""Drift rate [m/s, rad/s] above which one of contradictory constraints is reported as not met."""


def solver_numbers(
    report: StepReport,
    parts: Iterable[RobotPart],
    terrain: Terrain,
    constraints: Iterable[str],
    real_time_factor: float,
) -> dict[str, float]:
    """Return the number of every label of ~/solver_state.

    First time [s], status (index into the solver statuses), converged, iterations, the residual
    of the solver's own criterion, contacts, the real-time factor and the stiffness ratio (above 2
    explicit springs explode), whether the forces are physical, then the residuals of
    step/_problem.py and the support of the feet, `support_numbers`, with the name of each of
    several robots before it: `a/support_rank`. At the end the errors of the `constraints`:
    `constraints.stand.drift`, |h|, and `constraints.stand.drift_rate`, |ḣ|.
    """
    solver = report.solver
    values = {
        'time': report.time,
        'status': float(STATUSES.index(solver.status)),
        'converged': float(solver.converged),
        'iterations': float(solver.iterations),
        'solver_residual': solver.residual,
        'contacts': float(np.count_nonzero(report.contacts.mode)),
        'real_time_factor': real_time_factor,
        'stiffness_ratio': report.stiffness_ratio,
        'physical': float(solver.physical),
        **report.residuals.as_dict(),
    }
    for part in parts:
        support = support_of(part.robot, terrain, RobotView(report, part))
        values |= {part.qualified_name(name): x for name, x in support_numbers(support).items()}
    values |= drift_numbers(constraints, report)
    return {label: float(value) for label, value in values.items()}


def support_of(robot: RobotModel, terrain: Terrain, report: Report) -> Support:
    """Return the support of the feet that carried a force in a step, at its end.

    Contacts of the rest of the body do not count.
    """
    touching = np.unique(np.flatnonzero(report.contacts.mode) // terrain.features)
    standing = touching[touching < len(robot.contact_points)].tolist()
    return analyse_support(robot, report.q, standing, terrain=terrain)


def support_numbers(support: Support) -> dict[str, float]:
    """Return the support as labelled numbers, the same labels for every set of feet.

    `support_free_*` is the first motion of a floating base that the feet cannot act on: its
    direction, a point of its axis [m], and whether it turns; zeros where there is none, all of
    them in flight. The margin [m] is 0 in flight.
    """
    numbers = {
        'rank': support.rank,
        'base_rank': support.base_rank,
        'internal_constraints': support.internal_constraints,
        'uncontrollable_base_dof': support.uncontrollable_base_dof,
        'base_mobility': support.base_mobility,
        'conditioning': support.conditioning,
        'base_conditioning': support.base_conditioning,
        'margin': support.margin if support.feet else 0.0,
    }
    direction, point, turns = np.zeros(3), np.zeros(3), 0.0
    if support.feet and support.robot.floating_base and support.uncontrollable_base_dof:
        motion = support.uncontrollable_base_directions[0]
        direction, point, turns = motion.direction, motion.point, float(np.isfinite(motion.pitch))
    numbers |= {f'free_direction_{axis}': direction[k] for k, axis in enumerate(AXES)}
    numbers |= {f'free_point_{axis}': point[k] for k, axis in enumerate(AXES)}
    numbers['free_rotation'] = turns
    return {f'support_{name}': float(number) for name, number in numbers.items()}


def drift_numbers(names: Iterable[str], report: StepReport) -> Iterator[tuple[str, float]]:
    """Yield |h| and |ḣ| after a step with their labels; zeros for constraints not in force."""
    for name in names:
        state = report.constraints.get(name)
        yield f'constraints.{name}.drift', state.drift if state else 0.0
        yield f'constraints.{name}.drift_rate', state.drift_rate if state else 0.0


def status_counts(statuses: Sequence[int]) -> dict[str, int]:
    """Return how many steps ended with each status, by the keys of /diagnostics."""
    return {
        f'solver_{outcome.name.lower()}': count
        for outcome, count in zip(STATUSES, statuses, strict=True)
    }


def troubles(before: Sequence[int], now: Sequence[int], last: StepReport) -> list[str]:
    """Return the warnings about the steps between two counts of statuses.

    Args:
        before: number of steps with each status before them, by its code.
        now: the same after them.
        last: report of the last step, for the constraints that are not met.
    """
    new = [status for code, status in enumerate(STATUSES) if now[code] > before[code]]
    warnings = [status.value for status in new if status in WARNED or not status.physical]
    if SolverStatus.INCONSISTENT in new:
        missed = [name for name, state in last.constraints.items() if state.drift_rate > MISSED]
        warnings += [f'constraints not met: {", ".join(missed)}'] if missed else []
    return warnings
