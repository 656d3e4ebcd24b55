"""Formulas of contacts of bodies: against differences of the geometry, and of whole steps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from step_differences import compare

import contact_sim
from contact_sim.derivatives import _differences
from contact_sim.derivatives import _fields as d
from contact_sim.derivatives._differences import Differences, given_fields
from contact_sim.derivatives._pair_geometry import (
    CROSSED,
    FIXED,
    IN_PLANE,
    ON_LINE,
    SUPPORT,
)
from contact_sim.robot._collision_pairs import Collisions, Solid, solid_gaps

LAW = contact_sim.Ncp(tolerance=1e-13)
NOTHING = np.zeros(0)
GAP = 2e-4
"""Gaps close within a step [m]."""
SHAPES: dict[str, tuple[tuple[float, float, float], float]] = {
    'ball': ((0.0, 0.0, 0.0), 0.1), 'capsule': ((0.0, 0.0, 0.2), 0.05),
    'box': ((0.1, 0.15, 0.2), 0.0), 'small box': ((0.06, 0.08, 0.05), 0.0),
}  # fmt: skip
"""Half sizes of cores and radii [m]."""


def two_bodies(first: str, second: str) -> contact_sim.RobotModel:
    """Return two free bodies that may touch each other, centres of mass beside their middles."""
    model, solids = pin.Model(), []
    for k, shape in enumerate((first, second)):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f'joint_{k}')
        inertia = pin.Inertia(1.0 + k, np.array([0.01, -0.02, 0.015]), 0.02 * np.eye(3))
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        model.addBodyFrame(f'body_{k}', joint, pin.SE3.Identity(), 0)
        half, radius = SHAPES[shape]
        solids.append(Solid(f'solid_{k}', f'body_{k}', f'joint_{k}', half, radius,
                            (0.02, 0.01, -0.01)))  # fmt: skip
    robot = contact_sim.RobotModel.from_pinocchio(model)
    return replace(robot, collisions=Collisions(tuple(solids), (('solid_0', 'solid_1'),)))


def meeting(
    robot: contact_sim.RobotModel, turns: tuple[Any, Any], way: Any, side: Any = 0.0, law: Any = LAW
) -> contact_sim.Simulator:
    """Return a simulation of two bodies that meet: the first comes along −`way` to the second.

    On a line that is off by `side` [m].
    """
    model, solids = robot.pinocchio_model, robot.collisions.solids
    q = pin.neutral(model)
    q[3:7], q[10:14] = (pin.Quaternion(turn).coeffs() for turn in turns)
    q[7:10] = 0.0, 0.0, 5.0
    low, high = 0.0, 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        q[:3] = q[7:10] + side + middle * np.asarray(way)
        away = solid_gaps(model, q, [(solids[0], solids[1])])[0]
        low, high = (low, middle) if away > GAP else (middle, high)
    sim = contact_sim.Simulator(robot, contact_model=law, friction=0.3)
    rng = np.random.default_rng(7)
    v = 0.5 * rng.normal(size=12)
    v[:3] -= 1.5 * turns[0].T @ way
    sim.reset(q, v)
    return sim


def kinds_that_agree(sim: contact_sim.Simulator, derivatives: Any) -> set[int]:
    """Assert that the motion of contacts is that of differences; return the kinds of contacts.

    The differences are those of a step that leaves them most alike when it is halved.
    """
    arrays = sim._linearisation
    assert (derivatives.modes != d.OPEN).any()
    of = arrays.view('row_of')[: 3 * int(arrays.view('counts')[d.CONTACTS])]
    data, nothing = arrays.work.data, np.zeros(sim.sizes.nc, bool)
    differences = Differences(arrays.work, arrays._weights)
    sizes = []
    for step in (2e-4, 1e-4, 5e-5, 2.5e-5, 1e-5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_differences, 'STEP', step)
            given = given_fields(differences, data, data.v_next.copy(), 0.0, sim.sizes, nothing)
        sizes.append(given)
    for own, name in (
        ('motion_next', 'given_next'), ('motion_start', 'given_start'),
        ('gap_slope', 'given_gap'), ('force_slope', 'given_turn'),
    ):  # fmt: skip
        expected = np.array([given[name][of] for given in sizes])
        scale = max(np.abs(expected[0]).max(), 1e-3)
        alike = np.abs(np.diff(expected, axis=0)).max(axis=(1, 2))
        best = int(alike.argmin())
        assert alike[best] < 1e-5 * scale
        room = max(1e-8 * scale, 3.0 * alike[best])
        np.testing.assert_allclose(arrays.view(own)[: len(of)], expected[best + 1], atol=room)
    return set(arrays.view('surface')[of[::3] // 3].tolist())


def rotation(rng: Any, size: float = 3.0) -> Any:
    return pin.exp3(size * rng.uniform(-1.0, 1.0, 3))
