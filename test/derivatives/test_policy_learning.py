"""A policy learns to push a ball to targets, by gradients through all steps and contacts.

A case of [Le Lidec et al. 2024], see docs/derivatives.md: gradients of a run in closed loop.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pinocchio as pin

import contact_sim
from contact_sim.robot._collision_pairs import Collisions, Solid

STEPS, H = 100, 5e-3
TARGETS = np.array([(0.5, 0.1), (0.5, -0.1), (0.6, 0.0)])
"""Of the ball, which lies at x = 0.2 m; the finger starts at the origin [m]."""
INPUTS, HIDDEN, REACH, PUSH = 9, 8, 4.0, 5.0
"""Sizes of the network; gains of its inputs [1/m] and outputs [N]."""
GRADIENT = 4
"""Runs that a run with all derivatives costs: 3.3 to 4.0 measured."""


def scene() -> contact_sim.Simulator:
    """Return a finger, a ball that slides along x and y, before a ball that rolls."""
    model, last = pin.Model(), 0
    for name, joint in (('x', pin.JointModelPX()), ('y', pin.JointModelPY())):
        height = pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.1 if last == 0 else 0.0]))
        last = model.addJoint(last, joint, height, name)
    model.appendBodyToJoint(last, pin.Inertia.FromSphere(1.0, 0.05), pin.SE3.Identity())
    model.addBodyFrame('finger', last, pin.SE3.Identity(), 0)
    ball = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'ball')
    model.appendBodyToJoint(ball, pin.Inertia.FromSphere(0.5, 0.1), pin.SE3.Identity())
    model.addBodyFrame('ball', ball, pin.SE3.Identity(), 0)
    solids = (
        Solid('finger', 'finger', 'y', (0.0, 0.0, 0.0), 0.05),
        Solid('ball', 'ball', 'ball', (0.0, 0.0, 0.0), 0.1),
    )
    robot = contact_sim.RobotModel.from_pinocchio(model, actuated_joints=['x', 'y'])
    touching = Collisions(solids, (('finger', 'ball'),), grounded=('ball',))
    law = contact_sim.Ncp(tolerance=1e-12)
    return contact_sim.Simulator(
        replace(robot, collisions=touching), law, friction=0.5, time_step=H
    )


def features(q: Any, v: Any, target: Any) -> tuple[Any, Any]:
    """Return the inputs of the network, and their derivatives to the tangent of q and to v."""
    R = pin.Quaternion(q[5:9]).toRotationMatrix()
    along = R[:2]  # the ball moves in its own axes
    x = np.concatenate(
        [REACH * (target - q[2:4]), REACH * (q[2:4] - q[:2]), v[:2], along @ v[2:5], [1.0]]
    )
    slope = np.zeros((INPUTS, 16))
    slope[0:2, 2:5], slope[2:4, 2:5] = -REACH * along, REACH * along
    slope[2:4, 0:2], slope[4:6, 8:10] = -REACH * np.eye(2), np.eye(2)
    slope[6:8, 10:13], slope[6:8, 5:8] = along, -along @ pin.skew(v[2:5])
    return x, slope


def layers(policy: Any) -> tuple[Any, Any]:
    """Return both matrices of the network u = PUSH B tanh(A x)."""
    return policy[: HIDDEN * INPUTS].reshape(HIDDEN, INPUTS), policy[HIDDEN * INPUTS :].reshape(
        2, HIDDEN
    )


def miss(sim: contact_sim.Simulator, policy: Any, target: Any) -> Any:
    """Return how far the ball ends from a target (2,) [m]."""
    A, B = layers(policy)
    sim.reset([0.0, 0.0, 0.2, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], np.zeros(8))
    for _ in range(STEPS):
        sim.step(PUSH * B @ np.tanh(A @ features(sim.q, sim.v, target)[0]))
    return sim.q[2:4] - target


def miss_and_slope(sim: contact_sim.Simulator, policy: Any, target: Any) -> tuple[Any, Any]:
    """Return the miss and its derivatives to the policy: λ_t = (A_t + B_t K_t)ᵀ λ_t+1."""
    A, B = layers(policy)
    sim.reset([0.0, 0.0, 0.2, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0], np.zeros(8))
    steps = []
    for _ in range(STEPS):
        x, of_state = features(sim.q, sim.v, target)
        h = np.tanh(A @ x)
        effort = PUSH * B @ h
        gains = PUSH * (B * (1.0 - h * h)) @ A @ of_state
        derivatives = sim.derivatives(effort)
        steps.append((derivatives.state_matrix, derivatives.input_matrix, gains, x, h))
        sim.step(effort)
    costate, slope = np.zeros((2, 16)), np.zeros((2, len(policy)))
    costate[:, 2:5] = pin.Quaternion(sim.q[5:9]).toRotationMatrix()[:2]
    for of_state, of_effort, gains, x, h in reversed(steps):
        at_effort = PUSH * costate @ of_effort
        inner = (at_effort @ B) * (1.0 - h * h)
        slope[:, : HIDDEN * INPUTS] += np.einsum('ki,j->kij', inner, x).reshape(2, -1)
        slope[:, HIDDEN * INPUTS :] += np.einsum('ki,j->kij', at_effort, h).reshape(2, -1)
        costate = costate @ of_state + (costate @ of_effort) @ gains
    return sim.q[2:4] - target, slope


def squared(sim: contact_sim.Simulator, policy: Any) -> float:
    """Return the sum of the squared misses of all targets [m²]."""
    return float(sum((miss(sim, policy, target) ** 2).sum() for target in TARGETS))


def drawn(seed: int) -> Any:
    """Return a random policy."""
    return 0.3 * np.random.default_rng(seed).normal(size=HIDDEN * (INPUTS + 2))


def learned(sim: contact_sim.Simulator, policy: Any, steps: int) -> tuple[Any, list[float], int]:
    """Return the policy after damped steps of Gauss-Newton, costs, and evaluations in runs."""
    damping, costs, runs = 1e-3, [], 0
    for _ in range(steps):
        found = [miss_and_slope(sim, policy, target) for target in TARGETS]
        error, slope = np.concatenate([e for e, _ in found]), np.vstack([s for _, s in found])
        costs.append(float(error @ error))
        runs += GRADIENT
        for _ in range(8):
            damped = slope @ slope.T + damping * np.eye(len(error))
            trial = policy - slope.T @ np.linalg.solve(damped, error)
            runs += 1
            if squared(sim, trial) < costs[-1]:
                policy, damping = trial, max(damping / 5.0, 1e-8)
                break
            damping *= 5.0
    return policy, [*costs, squared(sim, policy)], runs


def searched(sim: contact_sim.Simulator, policy: Any, runs: int, size: float) -> float:
    """Return the least cost that a random search finds with a number of evaluations."""
    rng, cost = np.random.default_rng(1), squared(sim, policy)
    for _ in range(runs):
        trial = policy + size * rng.normal(size=len(policy))
        found = squared(sim, trial)
        if found < cost:
            policy, cost = trial, found
    return cost


def test_the_slope_of_a_policy_is_that_of_differences() -> None:
    """Through 100 steps in closed loop, a collision and rolling: 1e-7 of the largest."""
    sim, policy = scene(), drawn(1)
    slope = miss_and_slope(sim, policy, TARGETS[0])[1]
    for k in range(0, len(policy), 11):
        unit = 1e-4 * np.eye(len(policy))[k]
        near = miss(sim, policy + unit, TARGETS[0]) - miss(sim, policy - unit, TARGETS[0])
        far = miss(sim, policy + 2 * unit, TARGETS[0]) - miss(sim, policy - 2 * unit, TARGETS[0])
        seen = (8.0 * near - far) / 12e-4
        np.testing.assert_allclose(slope[:, k], seen, atol=1e-7 * np.abs(slope).max())


def test_a_policy_learns_to_push_a_ball() -> None:
    """A hundredth of the squared miss; random search with as many evaluations has a twentieth."""
    sim, policy = scene(), drawn(1)
    _, costs, runs = learned(sim, policy, 12)
    assert costs[0] > 0.3
    assert costs[-1] < 0.012 * costs[0]
    assert all(after <= before for before, after in pairwise(costs))
    others = [searched(sim, policy, runs, size) for size in (0.1, 0.03)]
    assert costs[-1] < 0.3 * min(others)
