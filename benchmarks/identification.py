"""Recover known parameters from simulated logs: do the intervals hold as often as they promise?

    python benchmarks/identification.py --fits 200 --workers 2

Each fit gets a log with noise of its own and starts from wrong values. The share of intervals of
95 % that contain the true value is the coverage; with 200 fits it scatters by 1.5 %. Most of that
is chance in the noise, which the linearised problem shares: its errors, from the very same noise,
are exactly normal with the standard errors of the intervals, so that 95 % of them are inside in
the long run. What it covers more or less than that is taken off (control variate).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy import stats

from contact_sim import Compliant, RobotModel, Simulator, load_robot, loose_ball, loose_box
from contact_sim.identify import Identification, Setup, identify
from contact_sim.identify._fit import _Data, _Problem
from contact_sim.identify._parameters import parameter_of
from contact_sim.judge import Steps

Array = NDArray[np.float64]

TIME_STEP = 2e-3
CONFIDENCE = 0.95
ARM = """<robot name="arm"><link name="base"/>
<link name="upper"><inertial><origin xyz="0 0 -0.15"/><mass value="1.0"/>
  <inertia ixx="0.008" iyy="0.008" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0 0 -0.12"/><mass value="0.5"/>
  <inertia ixx="0.003" iyy="0.003" izz="0.0005" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/>
  <axis xyz="0 1 0"/><limit lower="-30" upper="30" effort="100" velocity="100"/></joint>
<joint name="elbow" type="revolute"><origin xyz="0 0 -0.3"/><parent link="upper"/>
  <child link="lower"/><axis xyz="0 1 0"/>
  <limit lower="-30" upper="30" effort="100" velocity="100"/></joint></robot>"""


@dataclass(frozen=True, eq=False)
class Case:
    """A motion, and what is to be found from it."""

    name: str
    truth: Setup
    start: Setup
    values: dict[str, float]
    """True values by the name of the parameter."""
    q: Array
    v: Array
    effort: Array
    """(n, n_joints) [N m]."""
    noise: tuple[float, float]
    segment: float
    segments: int
    starts: int = 1


def cases() -> dict[str, Case]:
    """Return the cases by name."""
    arm: RobotModel = load_robot(ARM, floating_base=False, feet=())
    t = TIME_STEP * np.arange(200)
    shoulder = 1.5 * np.sin(2 * np.pi * 1.3 * t) + 0.8 * np.sin(2 * np.pi * 3.1 * t)
    elbow = 0.6 * np.sin(2 * np.pi * 1.9 * t + 1.0)
    driven = arm.with_actuators(None, armature=0.02, dry_friction=0.15, viscous_friction=0.05)
    guess = arm.with_actuators(None, armature=0.01, dry_friction=0.05, viscous_friction=0.1)
    constants = dict.fromkeys(arm.joint_names, 0.9)
    ball, box = loose_ball(0.05, 0.3), loose_box((0.2, 0.2, 0.1), 1.0)
    thrown = np.array([0.0, 0.0, 0.15, 0.0, 0.0, 0.0, 1.0])
    flight = np.array([1.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    none = np.zeros((150, 0))
    stiff = Compliant(stiffness=2e5, dissipation=0.4)
    soft = Compliant(stiffness=1e5, dissipation=0.2)
    found = (
        Case(
            'arm', Setup(driven, torque_constant=constants, delay=4.5e-3), Setup(guess),
            {'armature': 0.02, 'joint_friction': 0.15, 'viscous_friction': 0.05,
             'torque_constant': 0.9, 'delay': 4.5e-3},
            np.zeros(2), np.zeros(2), np.column_stack([shoulder, elbow]), (1e-3, 1e-2), 0.1, 4,
        ),
        Case(
            'rigid ball', Setup(ball, friction=0.3, restitution=0.6),
            Setup(ball, friction=0.3, restitution=0.4), {'restitution': 0.6},
            thrown, flight, none, (2e-4, 5e-3), 0.1, 3, 3,
        ),
        Case(
            'soft ball', Setup(ball, stiff, friction=0.3), Setup(ball, soft, friction=0.5),
            {'friction': 0.3, 'stiffness': 2e5, 'dissipation': 0.4},
            thrown, flight, none, (2e-4, 5e-3), 0.1, 3,
        ),
        Case(
            'sliding box', Setup(box, stiff, friction=0.35), Setup(box, stiff, friction=0.5),
            {'friction': 0.35, 'com_x': 0.0, 'com_z': 0.0},
            np.array([0.0, 0.0, 0.0499, 0.0, 0.0, 0.0, 1.0]),
            np.array([1.2, 0.5, 0.0, 0.0, 0.0, 3.0]), none[:100], (2e-4, 5e-3), 0.05, 4,
        ),
    )  # fmt: skip
    return {case.name: case for case in found}


def log_of(case: Case, seed: int) -> Steps:
    """Return the log of a case with the noise of a seed."""
    setup, scale = case.truth, case.truth.effort_scale()
    sim = Simulator(
        setup.robot, setup.law, friction=setup.friction, restitution=setup.restitution,
        time_step=TIME_STEP,
    )  # fmt: skip
    sim.reset(case.q, case.v)
    states = [(np.array(sim.q), np.array(sim.v))]
    delay = setup.delay / TIME_STEP
    for k in range(len(case.effort)):
        # a delayed effort acts for a part of the step, as its mean
        whole, part = int(delay), delay % 1.0
        newer, older = (case.effort[max(k - whole - i, 0)] for i in range(2))
        sim.step(scale * ((1.0 - part) * newer + part * older))
        states.append((np.array(sim.q), np.array(sim.v)))
    model, (q_noise, v_noise) = setup.robot.pinocchio_model, case.noise
    noise = noise_of(case, seed)
    q = [pin.integrate(model, q, q_noise * e) for (q, _), e in zip(states, noise[0], strict=True)]
    v = [v + v_noise * e for (_, v), e in zip(states, noise[1], strict=True)]
    time = np.linspace(0.0, TIME_STEP * len(case.effort), len(states))
    return Steps(time, np.array(q), np.array(v), case.effort)


def noise_of(case: Case, seed: int) -> Array:
    """Return the noise of a seed, in its standard deviations, shape (2, samples, nv)."""
    shape = 2, len(case.effort) + 1, case.truth.robot.nv
    return np.random.default_rng(seed).normal(size=shape)


def linear_map(case: Case) -> Array:
    """Return the errors of the linearised problem per unit of noise, over their standard errors.

    Shape (parameters, 2, samples, nv): at the true values and without noise, the projected
    Jacobian J gives the errors (JᵀJ)⁻¹ Jᵀ e of the parameters for noise e.
    """
    log = log_of(replace(case, noise=(0.0, 0.0)), 0)
    data = _Data.of(case.truth, log, case.segment, case.segments, TIME_STEP)
    fitted = [parameter_of(name, case.truth) for name in case.values]
    problem = _Problem(case.truth, fitted, data, data.noise(*case.noise), 1)
    true = [one.internal(value) for one, value in zip(fitted, case.values.values(), strict=True)]
    jacobian = problem.jacobian(np.array(true))
    covariance = np.linalg.inv(jacobian.T @ jacobian)
    rows = (covariance @ jacobian.T) / np.sqrt(np.diag(covariance))[:, np.newaxis]
    segments, samples, nv = data.v.shape
    parts = rows.reshape(len(fitted), segments, samples, 2, nv)
    result = np.zeros((len(fitted), 2, len(log.q), nv))
    for s, first in enumerate(data.first):
        result[:, :, first : first + samples] += parts[:, s].swapaxes(1, 2)
    return result


def linear_errors(case: Case, seeds: Sequence[int]) -> Array:
    """Return errors of the linearised problem over their standard errors, (seeds, parameters)."""
    ways = linear_map(case)
    return np.array([np.einsum('pksi,ksi->p', ways, noise_of(case, seed)) for seed in seeds])


def fitted(case: Case, seed: int, known: bool = True) -> Identification:
    """Return the fit of one log, with its noise known or estimated."""
    return identify(
        case.start, log_of(case, seed), list(case.values), segment=case.segment,
        segments=case.segments, held_out=0.0, noise=case.noise if known else None,
        starts=case.starts, threads=1,
    )  # fmt: skip


def task(work: tuple[str, int, bool]) -> list[tuple[str, float, float, float, float]]:
    """Return name, true value, estimate and interval of every parameter of a fit."""
    name, seed, known = work
    case = cases()[name]
    found = fitted(case, seed, known)
    return [
        (one, true, found[one].value, found[one].low, found[one].high)
        for one, true in case.values.items()
    ]


@dataclass(frozen=True)
class Coverage:
    """How often the intervals of one parameter contain its true value."""

    inside: int
    fits: int
    bias: float
    """Mean error."""
    spread: float
    """Standard deviation of the estimates."""
    linear: float
    """Share of the linearised problems with the same noise [%]."""
    corrected: float
    """Share without the chance that the linearised problems share [%]."""
    uncertainty: float
    """Standard error of `corrected` [%]."""
    agreement: float
    """Correlation of the errors of both."""

    @property
    def share(self) -> float:
        """Share of the intervals [%]."""
        return 100.0 * self.inside / self.fits


def coverage(rows: Sequence[tuple[str, float, float, float, float]], linear: Array) -> Coverage:
    """Return the coverage of fits, with the errors of linearised problems (fits,)."""
    true, value, low, high = np.array([row[1:] for row in rows]).T
    inside = (low <= true) & (true <= high)
    within = np.abs(linear) < stats.norm.ppf(0.5 + 0.5 * CONFIDENCE)
    more = 100.0 * (inside.astype(float) - within)
    agreement = float(np.corrcoef(value - true, linear)[0, 1])
    return Coverage(
        int(inside.sum()), len(rows), float(np.mean(value - true)), float(np.std(value)),
        100.0 * float(within.mean()), 100.0 * CONFIDENCE + float(more.mean()),
        float(more.std() / np.sqrt(len(rows))), agreement,
    )  # fmt: skip


def main() -> None:
    """Run the campaign, print the table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--fits', type=int, default=200)
    parser.add_argument('--first', type=int, default=0, metavar='SEED', help='default: 0')
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--cases', nargs='+', choices=tuple(cases()), default=list(cases()))
    parser.add_argument('--estimate-noise', action='store_true', help='default: it is known')
    parser.add_argument('--out', type=Path, default=Path('out/identification.json'))
    options = parser.parse_args()
    result, every = {}, cases()
    print(
        f'{"case":12} {"parameter":17} {"true":>9} {"mean error":>11} {"spread":>10}  '
        f'{"coverage":23} {"linear":7} corrected (standard error)  agreement'
    )
    for name in options.cases:
        begin, seeds = time.perf_counter(), range(options.first, options.first + options.fits)
        linear = linear_errors(every[name], seeds)
        with ProcessPoolExecutor(options.workers) as pool:
            tasks = [(name, seed, not options.estimate_noise) for seed in seeds]
            fits = list(pool.map(task, tasks))
        for i, rows in enumerate(zip(*fits, strict=True)):
            found, (parameter, true) = coverage(rows, linear[:, i]), fits[0][i][:2]
            interval = stats.binomtest(found.inside, found.fits).proportion_ci()
            print(
                f'{name:12} {parameter:17} {true:9.4g} {found.bias:11.2e} {found.spread:10.2e}  '
                f'{found.share:5.1f} % ({100 * interval.low:.1f} to {100 * interval.high:.1f})  '
                f'{found.linear:5.1f}   {found.corrected:5.1f} ({found.uncertainty:.1f})  '
                f'{found.agreement:25.3f}', flush=True,
            )  # fmt: skip
            result[f'{name}/{parameter}'] = {**vars(found), 'coverage': found.share}
        print(f'{name}: {time.perf_counter() - begin:.0f} s', flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({'fits': options.fits, 'cases': result}, indent=2))


if __name__ == '__main__':
    main()
