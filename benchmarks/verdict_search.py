"""Searches of the smallest disturbance that fails: CMA-ES alone, and behind slopes.

    python benchmarks/verdict_search.py [--cases 'stance stand ncp 1.5' ...]

Every search begins from the limits of the single factors, found by bisection. The slopes are those
of `contact_sim.verdict._slope`, over a part of the reach, and exact ones: tangents of the run in
closed loop from `Simulator.derivatives`. A controller is a black box: for each factor a copy of
it, with a memory of its own, sees the state x + ε dx in every step, and du is the change of its
answer over ε in

    dx⁺ = A dx + B du + C dp.

Exact slopes to the delay, which comes in whole steps, and to the ground, of which a step has no
derivative, are left out. Sizes are lengths of disturbances, 1 at the reach of one factor.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim.campaign import Trial, run_trial, scenario_of
from contact_sim.campaign._trial import Prepared, robot_of
from contact_sim.verdict import _search as search
from contact_sim.verdict._plan import Factor, factors_of
from contact_sim.verdict._rates import margin_of
from contact_sim.verdict._slope import WIDTHS, smaller_failure
from contact_sim.verdict.variants import copied

CASES = ('stance stand ncp 1.5', 'trot trot ncp 2', 'stance stand todorov 1.5', 'trot trot sap 2')
"""Controller, scenario, law and seconds."""
EPSILON = 1e-7
"""Change of the disturbance that the copies of the controller see [-]."""
SMOOTH = ('push', 'friction', 'mass_scale', 'start')
Array = Any


class Counted:
    """Runs points and counts them."""

    def __init__(self, nominal: Trial, factors: Sequence[Factor]) -> None:
        self.nominal, self.factors = nominal, factors
        self.runs, self._begin = 0, time.process_time()

    def evaluate(self, trials: Sequence[Trial]) -> list[dict[str, Any]]:
        """Return the rows of trials."""
        self.runs += len(trials)
        return [run_trial(trial) for trial in trials]

    def found(self, best: Array) -> str:
        """Return runs, CPU time and size."""
        spent = time.process_time() - self._begin
        return f'{self.runs:4} runs {spent:6.1f} s  size {np.linalg.norm(best):.4f}'


# --- Exact slopes


def start_change(run: Counted, point: Array, k: int) -> Array:
    """Return d(q, v)/d(factor k) at the start, by a difference of starts, (2 nv,)."""
    near = point + 1e-3 * np.eye(len(point))[k]
    one, other = (Prepared(search.disturbed(run.nominal, run.factors, at)) for at in (point, near))
    model = one.robot.pinocchio_model
    _ = one.controller, other.controller  # they may choose the pose of the start
    return np.concatenate([pin.difference(model, one.q, other.q), other.v - one.v]) / 1e-3


def parameter_change(derivatives: Any, prepared: Prepared, factor: Factor, push: Array) -> Array:
    """Return ∂(q⁺, v⁺)/∂(factor) of a step with the state and the efforts fixed, (2 nv,)."""
    model, rate = prepared.robot.pinocchio_model, factor.reach - factor.nominal
    step, nv = derivatives.step, model.nv
    if factor.name == 'friction':
        own = derivatives.with_respect_to('friction')
        return rate * np.concatenate([own.configuration.sum(axis=1), own.velocity.sum(axis=1)])
    if factor.name == 'mass_scale':
        own = derivatives.with_respect_to('inertial')
        numbers = np.concatenate([body.toDynamicParameters() for body in list(model.inertias)[1:]])
        numbers *= rate / prepared.trial.mass_scale
        return np.concatenate([own.configuration @ numbers, own.velocity @ numbers])
    if factor.name != 'push' or not push.any() or not prepared.trial.push:
        return np.zeros(2 * nv)
    data = model.createData()
    pin.computeJointJacobians(model, data, step.q_start)
    frame = model.getFrameId(prepared.nominal.base_frame)
    J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
    impulse = prepared.trial.time_step * J[:3].T @ push * rate / prepared.trial.push
    # an impulse is a change of the velocity before the step, to O(h)
    return derivatives.state_matrix[:, nv:] @ np.linalg.solve(derivatives.inertia, impulse)


def tangents(run: Counted, point: Array) -> tuple[Array, Array, Prepared, bool]:
    """Return q of all steps up to a fall, dx at the end (2 nv, n), the trial, whether it fell."""
    prepared = Prepared(search.disturbed(run.nominal, run.factors, point))
    controller, sim = prepared.controller, prepared.simulator()
    controller.command(prepared.scenario.speed)
    controller.reset(sim)
    model, disturbances = prepared.robot.pinocchio_model, prepared.disturbances
    nv = model.nv
    known = [k for k, factor in enumerate(run.factors) if factor.name in SMOOTH]
    X = np.zeros((2 * nv, len(run.factors)))
    shadows = {k: copied(controller, prepared.nominal, sim) for k in known}
    late = {k: copied(disturbances, prepared.nominal) for k in known}
    for k in known:
        if run.factors[k].name == 'start':
            X[:, k] = start_change(run, point, k)
    places = [sim.q.copy()]
    for step in range(prepared.steps):
        q, v = sim.q.copy(), sim.v.copy()
        effort = prepared.effort(disturbances.acting(controller.effort(sim.time, q, v)), q, v)
        push = disturbances.wrench if step in disturbances.pushed else np.zeros(6)
        wrenches = {prepared.nominal.base_frame: push} if push.any() else None
        derivatives = sim.derivatives(effort, wrenches)
        A, B = derivatives.state_matrix, derivatives.input_matrix
        after = A @ X
        for k in known:
            q_near = pin.integrate(model, q, EPSILON * X[:nv, k])
            v_near = v + EPSILON * X[nv:, k]
            answer = late[k].acting(shadows[k].effort(sim.time, q_near, v_near))
            after[:, k] += B @ (prepared.effort(answer, q_near, v_near) - effort) / EPSILON
            after[:, k] += parameter_change(derivatives, prepared, run.factors[k], push[:3])
        X = after
        sim.step(effort, wrenches)
        places.append(sim.q.copy())
        if min(bands_left(prepared, sim.q)) < 0.0:
            return np.array(places), X, prepared, True
    return np.array(places), X, prepared, False


def bands_left(prepared: Prepared, q: Array) -> tuple[float, float]:
    """Return the shares that are left of the bands of height and tilt at q."""
    scenario, R = prepared.scenario, pin.Quaternion(q[3:7]).matrix()
    standing = prepared.nominal.reference_configuration()[2]
    height = float(prepared.ground.signed_distance(q[None, :3])[0])
    tilt = math.acos(min(max(float(scenario.up @ R[:, 2]), -1.0), 1.0))
    return height / (scenario.height_band * standing) - 1.0, 1.0 - tilt / scenario.tilt_band


def exact_slopes(run: Counted, margins: Any, point: Array, width: float) -> Array:
    """Return the slope of what is left of the band or goal that failed, when it failed, (n,)."""
    if width != WIDTHS[0]:  # they have no width: a second one says the same
        return np.full(len(point), np.nan)
    places, X, prepared, fell = tangents(run, point)
    run.runs += 1
    scenario, model, nv = prepared.scenario, prepared.robot.pinocchio_model, len(X) // 2
    middle = places[1:][(len(places) - 1) // 2]

    def left(q: Array) -> float:
        if fell:
            return min(bands_left(prepared, q))
        if scenario.least_speed > 0.0:  # the middle of the run taken as fixed
            return float(q[0] - middle[0]) / scenario.least_speed
        return -float(np.linalg.norm(q[:2] - places[0][:2])) / scenario.largest_drift

    size = np.maximum(np.linalg.norm(X[:nv], axis=0), 1e-12)
    return np.array([
        (left(pin.integrate(model, places[-1], 1e-6 * X[:nv, k] / size[k])) - left(places[-1]))
        * size[k] / 1e-6
        for k in range(len(point))
    ])  # fmt: skip


# --- The searches


def limits_of(run: Counted) -> dict[str, float]:
    """Return the distance at which each factor alone makes it fail, where it does."""
    ends = search.limit_along(run.evaluate, run.nominal, run.factors)
    limits: dict[str, float] = {}
    for factor in run.factors:
        if values := ends[factor.name]:
            law = run.nominal.contact_model
            fails = margin_of(factor, law, [(factor.nominal, True), *values]).fails
            limits |= {} if math.isnan(fails) else {factor.name: factor.distance(fails)}
    return limits


def failures(run: Counted, limits: dict[str, float]) -> search._Failures:
    """Return a search that knows the limits of the single factors."""
    known = search._Failures(run.evaluate, run.nominal, run.factors)
    for k, factor in enumerate(run.factors):
        if factor.name in limits:
            known.note(limits[factor.name] * np.eye(len(run.factors))[k])
    return known


def evolve(known: search._Failures, start: Array) -> None:
    """Let CMA-ES search, as `smallest_failure` does."""
    import cma

    options = {'bounds': [0.0, 1.0], 'seed': 1, 'popsize': search.GENERATION, 'verbose': -9}
    known.search(cma.CMAEvolutionStrategy(start, search.SPREAD, options))


def compare(case: str) -> None:
    """Run the searches of one case and print what they found."""
    controller, scenario, law, seconds = case.split()
    nominal = Trial(controller, scenario=scenario, contact_model=law, seconds=float(seconds))
    robot, friction = robot_of(nominal.robot), scenario_of(scenario).friction
    factors = [
        factor for factor in factors_of(nominal, robot.total_mass, friction)
        if factor.name in search.DISTURBANCES
    ]  # fmt: skip
    run_trial(nominal)  # compiles
    limits = limits_of(run := Counted(nominal, factors))
    known = failures(run, limits)
    if known.best is None:
        print(f'{case}: no factor alone makes it fail')
        return
    print(f'{case}\n  limits of single factors   {run.found(known.best)}')
    known = failures(run := Counted(nominal, factors), limits)
    evolve(known, np.array([0.5 * limits.get(factor.name, 0.5) for factor in factors]))
    known.shrink()
    print(f'  CMA-ES alone               {run.found(known.best)}')
    run = Counted(nominal, factors)
    known = failures(run, limits)
    assert known.best is not None
    best = smaller_failure(known.margins, known.best, partial(exact_slopes, run))
    print(f'  exact slopes               {run.found(best)}')
    known = failures(run := Counted(nominal, factors), limits)
    known.descend()
    print(f'  slopes over 2 and 6 %      {run.found(known.best)}')
    evolve(known, known.best)
    known.shrink()
    print(f'  and CMA-ES behind them     {run.found(known.best)}', flush=True)


def main() -> None:
    """Compare all cases."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--cases', nargs='+', default=CASES)
    for case in parser.parse_args().cases:
        compare(case)


if __name__ == '__main__':
    main()
