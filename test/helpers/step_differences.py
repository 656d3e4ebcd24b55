"""Central differences of whole steps, to which derivatives are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin

import contact_sim
from contact_sim._types import Array
from contact_sim.derivatives import StepDerivatives

STEPS = {'q': 1e-5, 'v': 1e-3, 'effort': 1e-1}
"""Largest step of the differences to each input, in its unit; smaller ones follow."""
SIZES = (1.0, 0.1, 0.01, 1e-3)
"""Shares of the largest step that are tried: two that agree tell how good the difference is."""
RESULTS = ('configuration', 'velocity', 'impulse', 'force')


def outcome(
    sim: contact_sim.Simulator, snapshot: Any, effort: Array, change: dict[str, Array]
) -> dict[str, Array]:
    """Return the result of a step from a snapshot with a change of its inputs."""
    sim.restore(snapshot)
    data, model = sim._data, sim.robot.pinocchio_model
    if 'q' in change:
        data.q[:] = pin.integrate(model, data.q.copy(), change['q'])
        sim._resume()
    data.v[:] += change.get('v', 0.0)
    report = sim.step(effort + change.get('effort', 0.0))
    return {
        'configuration': sim.q, 'velocity': sim.v, 'impulse': sim._data.impulse.copy(),
        'force': report.contacts.force.ravel() if sim.sizes.n_pair_slots == 0
        else sim._data.contact_force.ravel().copy(),
    }  # fmt: skip


def subtract(
    model: Any, base: Array, a: dict[str, Array], b: dict[str, Array]
) -> dict[str, Array]:
    """Return a − b, configurations in the tangent of `base`."""
    found = {name: a[name] - b[name] for name in a}
    found['configuration'] = pin.difference(model, base, a['configuration']) - pin.difference(
        model, base, b['configuration']
    )
    return found


def fourth_order(
    run: Callable[[float], dict[str, Array]], size: float, model: Any, base: Array
) -> dict[str, Array]:
    """Return the derivative of the result of `run` at 0, of fourth order in `size`."""
    near = subtract(model, base, run(size), run(-size))
    far = subtract(model, base, run(2.0 * size), run(-2.0 * size))
    return {name: (8.0 * near[name] - far[name]) / (12.0 * size) for name in near}


def central(
    sim: contact_sim.Simulator, effort: Array, name: str, k: int, results: tuple[str, ...]
) -> list[dict[str, Array]]:
    """Return derivatives of a step to number k of an input, one of every size of differences."""
    snapshot, length = sim.snapshot(), {'effort': sim.robot.n_joints}.get(name, sim.robot.nv)
    unit, model = np.eye(length)[k], sim.robot.pinocchio_model
    base = outcome(sim, snapshot, effort, {})['configuration']
    found = [
        fourth_order(
            lambda s: outcome(sim, snapshot, effort, {name: s * unit}), share * STEPS[name],
            model, base,
        )
        for share in SIZES
    ]  # fmt: skip
    sim.restore(snapshot)
    return found


def compare(
    sim: contact_sim.Simulator,
    effort: Array,
    derivatives: StepDerivatives,
    columns: int = 0,
    accuracy: float = 1e-7,
) -> tuple[float, float]:
    """Return the largest error beside the largest derivative to an input, and what was compared.

    The second number is the share of the columns whose differences are as good as `accuracy`: two
    sizes agree that well. Of redundant impulses only q⁺ and v⁺ are compared.
    """
    worst, good, total, rng = 0.0, 0, 0, np.random.default_rng(0)
    results = RESULTS[:2] if derivatives.redundant else RESULTS
    for name in STEPS:
        length = sim.robot.n_joints if name == 'effort' else sim.robot.nv
        chosen = range(length) if not columns else rng.permutation(length)[:columns]
        own = {result: getattr(getattr(derivatives, result), name) for result in results}
        scale = {result: max(np.abs(own[result]).max(initial=0.0), 1e-9) for result in results}
        for k in chosen:
            sizes = central(sim, effort, name, int(k), results)
            for result in results:
                stack = np.array([found[result] for found in sizes]) / scale[result]
                agree = np.abs(np.diff(stack, axis=0)).max(axis=1, initial=0.0)
                best, total = int(agree.argmin()), total + 1
                if agree[best] > 0.3 * accuracy:
                    continue
                errors = np.abs(stack[best : best + 2] - own[result][:, k] / scale[result])
                worst, good = max(worst, errors.max(axis=1, initial=0.0).min()), good + 1
    return float(worst), good / max(total, 1)
