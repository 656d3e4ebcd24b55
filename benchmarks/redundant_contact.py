"""Feet that touch at several points: steps without a solution, how far off, how slow.

    python benchmarks/redundant_contact.py [--models ncp] [--points 1 2 3 4] [--steps 1500]

go1 whose feet touch at 1 to 4 points 2 cm around their centres, with the URDF's dry joint friction
and without, in five motions under joint PD. `worst` is the largest natural map of the exact law
relative to the impulses of its step, `ratio` the 99th percentile of the times over their median.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from motions import Stand
from numpy.typing import NDArray

import contact_sim
from contact_sim.simulation._report import StepReport

Array = NDArray[np.float64]
REACH = 0.02
"""Distance of the contact points from the centre of a foot, along an axis of a square [m]."""
DROP = 0.1
"""Height of the fall [m]."""
PUSH = 60.0
"""Largest force of the pushes [N]."""
TRIANGLE = 2.0 * np.pi / 3.0 * np.arange(3)
PLACES: dict[int, Array] = {
    1: np.zeros((1, 2)),
    2: np.array([[REACH, 0.0], [-REACH, 0.0]]),
    3: REACH * np.column_stack([np.cos(TRIANGLE), np.sin(TRIANGLE)]),
    4: REACH * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]),
}
"""Contact points of a foot in its sole [m], by their number."""
MOTIONS = ('standing', 'dropped', 'sliding', 'pushed', 'landing')


def go1_with(points: int, dry: bool) -> contact_sim.RobotModel:
    """Return go1 whose soles are level in the reference pose; `dry`: with friction in joints."""
    robot = contact_sim.load_robot('go1')
    model = pin.Model(robot.pinocchio_model)
    data = model.createData()
    pin.forwardKinematics(model, data, robot.reference_configuration())
    contacts = []
    for foot in robot.contact_points:
        turn = data.oMi[model.getJointId(foot.joint)].rotation
        for k, place in enumerate(PLACES[points]):
            offset = foot.offset + turn.T @ np.append(place, 0.0)
            contacts.append(replace(foot, name=f'{foot.name}_{k}', offset=offset, radius=0.0))
    if not dry:
        for name in ('friction', 'upperDryFrictionLimit', 'lowerDryFrictionLimit'):
            if hasattr(model, name):  # the first: before Pinocchio 4
                setattr(model, name, np.zeros(model.nv))
    return replace(robot, pinocchio_model=model, contact_points=tuple(contacts))


def simulator(
    points: int, dry: bool, motion: str, model: str | contact_sim.Ncp = 'ncp'
) -> contact_sim.Simulator:
    """Return the simulator at the start of a motion; only one that slides has little friction."""
    friction = 0.3 if motion == 'sliding' else 0.8
    sim = contact_sim.Simulator(go1_with(points, dry), model, friction=friction)
    q, v = sim.standing_configuration(), np.zeros(sim.robot.nv)
    if motion == 'dropped':
        q[2] += DROP
    elif motion == 'sliding':
        v[:2], v[5] = (1.0, 0.4), 1.0
    elif motion == 'landing':
        q[2] += 0.5 * DROP
        q[3:7] = pin.Quaternion(pin.rpy.rpyToMatrix(0.2, 0.15, 0.3)).coeffs()
    sim.reset(q, v)
    return sim


def push(motion: str, t: float) -> dict[str, Array]:
    """Return the wrench on the trunk, which varies slowly."""
    if motion != 'pushed':
        return {}
    force = PUSH * np.array([np.sin(3.1 * t), np.sin(2.3 * t + 1.0), 0.5 * np.sin(1.7 * t)])
    return {'trunk': np.concatenate([force, 0.1 * force[[1, 2, 0]]])}


def worst_error(report: StepReport, worst: float = 0.0) -> float:
    """Return the natural map of the exact law over the size of the impulses [-], or `worst`.

    The larger of both: where the impulses alone show which, the problem is not built.
    """
    residual = report.residuals.ncp
    largest = np.abs(report.record.impulse).max(initial=0.0)
    if residual <= worst * largest:
        return worst
    problem = report.problem
    if problem.n_rows == 0:
        return worst
    alone = np.abs(problem.g / np.diag(problem.delassus)).max()
    return max(worst, float(residual / max(largest, alone, 1e-300)))


@dataclass(frozen=True)
class Outcome:
    """What a motion came to."""

    unsolved: int
    """Steps whose solver did not converge."""
    fallback: int
    """Steps that the last resort solved."""
    worst: float
    """Largest relative natural map of the exact law [-]."""
    iterations: NDArray[np.int64]
    """Of the solver in every step, shape (steps,)."""
    microseconds: Array
    """Of every step, shape (steps,)."""


def run(sim: contact_sim.Simulator, motion: str, steps: int) -> Outcome:
    """Return the outcome of `steps` steps."""
    stand, times, iterations = Stand(sim.robot), np.zeros(steps), np.zeros(steps, np.int64)
    unsolved = fallback = 0
    worst = 0.0
    for k in range(steps):
        effort, wrench = stand.effort(sim.time, sim.q, sim.v), push(motion, sim.time)
        begin = time.perf_counter()
        report = sim.step(effort, wrench)
        times[k] = 1e6 * (time.perf_counter() - begin)
        iterations[k] = report.solver.iterations
        unsolved += not report.solver.converged
        fallback += report.solver.status.name == 'CONVERGED_BY_FALLBACK'
        worst = worst_error(report, worst)
    return Outcome(unsolved, fallback, worst, iterations, times)


def main() -> None:
    """Print a line per motion."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--models', nargs='+', default=['ncp'], metavar='NAME')
    parser.add_argument('--points', nargs='+', type=int, default=[*PLACES], choices=[*PLACES])
    parser.add_argument('--motions', nargs='+', default=MOTIONS, choices=MOTIONS)
    parser.add_argument('--steps', type=int, default=1500)
    args = parser.parse_args()
    print('model     points dry motion  unsolved fallback   worst   median     p99  max µs  ratio')
    for model in args.models:
        for points in args.points:
            for dry in (True, False):
                for motion in args.motions:
                    done = run(simulator(points, dry, motion, model), motion, args.steps)
                    median, p99, most = np.percentile(done.microseconds, [50, 99, 100])
                    print(
                        f'{model:12s}{points:4d} {"yes" if dry else "no ":3s} {motion:10s}'
                        f'{done.unsolved:6d}{done.fallback:9d}{done.worst:8.0e}'
                        f'{median:9.1f}{p99:8.1f}{most:8.0f}{p99 / median:7.1f}',
                        flush=True,
                    )


if __name__ == '__main__':
    main()
