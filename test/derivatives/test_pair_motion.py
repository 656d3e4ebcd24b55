"""Formulas of contacts of bodies: against differences of the geometry, and of whole steps."""

from __future__ import annotations

import contextlib
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
    ON_RIM,
    SHARED,
    SPHERE,
    SUPPORT,
)
from contact_sim.robot._collision_pairs import Collisions, Solid, solid_gaps

LAW = contact_sim.Ncp(tolerance=1e-13)
NOTHING = np.zeros(0)
GAP = 2e-4
"""Gaps close within a step [m]."""
SHAPES: dict[str, tuple[Any, ...]] = {
    'ball': ((0.0, 0.0, 0.0), 0.1), 'capsule': ((0.0, 0.0, 0.2), 0.05),
    'box': ((0.1, 0.15, 0.2), 0.0), 'small box': ((0.06, 0.08, 0.05), 0.0),
    'cylinder': ((0.1, 0.1, 0.2), 0.0, {'cylinder': (0.1, 0.2)}),
    'hull': ((0.1, 0.1, 0.1), 0.0, {'corners': (
        (0.1, 0.1, 0.1), (-0.1, -0.1, 0.1), (-0.1, 0.1, -0.1), (0.1, -0.1, -0.1),
    )}),
}  # fmt: skip
"""Half sizes of cores and radii [m], and what else a solid has."""


def two_bodies(first: str, second: str) -> contact_sim.RobotModel:
    """Return two free bodies that may touch each other, centres of mass beside their middles."""
    model, solids = pin.Model(), []
    for k, shape in enumerate((first, second)):
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f'joint_{k}')
        inertia = pin.Inertia(1.0 + k, np.array([0.01, -0.02, 0.015]), 0.02 * np.eye(3))
        model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
        model.addBodyFrame(f'body_{k}', joint, pin.SE3.Identity(), 0)
        half, radius, *more = SHAPES[shape]
        rest = more[0] if more else {}
        solids.append(Solid(f'solid_{k}', f'body_{k}', f'joint_{k}', half, radius,
                            (0.02, 0.01, -0.01), **rest))  # fmt: skip
    robot = contact_sim.RobotModel.from_pinocchio(model)
    return replace(robot, collisions=Collisions(tuple(solids), (('solid_0', 'solid_1'),)))


def meeting(
    robot: contact_sim.RobotModel,
    turns: tuple[Any, Any],
    way: Any,
    side: Any = 0.0,
    law: Any = LAW,
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
    q[:3] = q[:3].round(9)  # the last bits of coal depend on what it did before
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


def rotation(rng: Any) -> Any:
    """Return a random rotation."""
    return pin.exp3(3.0 * rng.uniform(-1.0, 1.0, 3))


def lying(rng: Any, first: str, second: str) -> tuple[tuple[Any, Any], Any, Any]:
    """Return turns, direction and offset of a body that lies nearly flat on, or along, another."""
    of_second, tilt = rotation(rng), pin.exp3(2e-3 * rng.normal(size=3))
    along = 0 if second == 'capsule' else int(rng.integers(3))
    way, turn = of_second[:, along], of_second @ pin.exp3(1.5 * rng.uniform() * np.eye(3)[along])
    if first == 'capsule' and second == 'box':  # its axis in a face
        axis = turn[:, (along + 1) % 3]
        turn = np.column_stack([np.cross(way, axis), way, axis])
    elif first == 'capsule':
        turn = of_second @ pin.exp3(0.05 * rng.normal(size=3))
    side = of_second @ (0.08 * rng.normal(size=3))
    return (turn @ tilt, of_second), way, side - way * (way @ side)


@pytest.mark.parametrize(
    ('first', 'second', 'kinds'),
    [
        ('ball', 'ball', {FIXED}), ('ball', 'capsule', {FIXED}), ('ball', 'box', {FIXED}),
        ('ball', 'cylinder', {FIXED}), ('ball', 'hull', {FIXED}),
        ('capsule', 'capsule', {FIXED, CROSSED, SHARED}),
        ('capsule', 'box', {FIXED, CROSSED, IN_PLANE}),
        ('small box', 'box', {FIXED, CROSSED, IN_PLANE}),
        ('box', 'small box', {FIXED, CROSSED, IN_PLANE, ON_LINE}),
    ],
)  # fmt: skip
def test_motion_of_contacts_of_two_bodies(first: str, second: str, kinds: set[int]) -> None:
    """Corners, edges and sides of every pair of shapes, at random poses and velocities."""
    robot, rng, seen, share = two_bodies(first, second), np.random.default_rng(0), set(), []
    for k in range(30):
        turns, way, side = lying(rng, first, second)
        if k % 2:
            turns, way, side = (rotation(rng), rotation(rng)), rng.normal(size=3), 0.0
        sim = meeting(robot, turns, way / np.linalg.norm(way), side)
        derivatives = sim.derivatives(NOTHING)
        if not (derivatives.modes != d.OPEN).any():
            continue  # they miss each other
        with contextlib.suppress(contact_sim.InvalidInput):  # the differences are on an edge
            seen |= kinds_that_agree(sim, derivatives)
        error, good = compare(sim, NOTHING, derivatives, columns=3)
        # differences of redundant steps scatter by 1e-6, and two sizes may agree by chance
        assert error < (1e-5 if derivatives.redundant and good < 0.1 else 1e-7)
        share.append(good)
    assert seen == kinds
    assert np.mean(share) > 0.7


def test_motion_of_a_contact_of_an_ellipsoid() -> None:
    sim = contact_sim.Simulator(contact_sim.loose_ellipsoid((0.3, 0.2, 0.1), 2.0), LAW)
    rng, seen = np.random.default_rng(2), set()
    for _ in range(4):
        R = rotation(rng)
        height = np.linalg.norm(np.array([0.3, 0.2, 0.1]) * R[2]) + GAP
        v = 0.5 * rng.normal(size=6)
        v[:3] -= R.T[:, 2]
        sim.reset([0.0, 0.0, height, *pin.Quaternion(R).coeffs()], v)
        seen |= kinds_that_agree(sim, sim.derivatives(NOTHING))
    assert seen == {SUPPORT}


@pytest.mark.parametrize(
    ('terrain', 'kinds'),
    [
        (contact_sim.Planes([((0.0, 0.0, 1.0), 0.0), ((-0.6, 0.0, 0.8), -0.06)]), {SPHERE}),
        (contact_sim.SphereGround((0.0, 0.0, -0.5), 0.5), {SPHERE, FIXED}),
        (contact_sim.CylinderGround((0.0, 0.0, -0.5), (1.0, 0.0, 0.0), 0.5), {SPHERE, CROSSED}),
        (contact_sim.SphereGround((0.0, 0.0, 1.5), 1.5, hollow=True), {SPHERE}),
    ],
    ids=['two planes', 'sphere', 'cylinder', 'hollow'],
)  # fmt: skip
def test_boxes_on_smooth_ground(terrain: Any, kinds: set[int]) -> None:
    """Corners of a box in a valley of two planes; corners, edges and faces on round ground."""
    sim = contact_sim.Simulator(contact_sim.loose_box((0.2, 0.3, 0.4), 1.0), LAW, terrain)
    rng, seen = np.random.default_rng(4), set()
    for k in range(8):
        R = rotation(rng) if k % 2 else pin.exp3(0.1 * rng.normal(size=3))
        sim.reset([0.0, 0.0, 0.6, *pin.Quaternion(R).coeffs()], [0.0] * 6)
        for _ in range(600):
            if (sim.step(NOTHING).pairs.normal_force > 0.0).any():
                break
        derivatives = sim.derivatives(NOTHING)
        seen |= kinds_that_agree(sim, derivatives)
        assert compare(sim, NOTHING, derivatives, columns=3)[0] < 1e-7
    assert seen == kinds


def cylinder() -> contact_sim.RobotModel:
    """Return a cylinder of 5 cm and 20 cm, its centre of mass beside its middle."""
    shape = '<geometry><cylinder radius="0.05" length="0.2"/></geometry>'
    return contact_sim.load_robot(
        '<robot name="c"><link name="c"><inertial><origin xyz="0.005 0 0.01"/><mass value="1"/>'
        '<inertia ixx="0.004" iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>'
        f'<collision>{shape}</collision></link></robot>', feet=(), body_contacts=False,
    ).with_body_contacts()  # fmt: skip


@pytest.mark.parametrize('tilt', [0.3, 1.3, 0.5 * np.pi])
def test_motion_of_contacts_of_a_cylinder(tilt: float) -> None:
    """It rolls on a rim, or lies on the lowest points of both; other points travel with them."""
    sim = contact_sim.Simulator(cylinder(), LAW, friction=0.3)
    rng, seen = np.random.default_rng(5), set()
    for k in range(4):
        R = pin.exp3(rng.uniform(-3.0, 3.0) * np.eye(3)[2]) @ pin.exp3(tilt * np.eye(3)[0])
        R = R @ pin.exp3(rng.uniform(-3.0, 3.0) * np.eye(3)[2])
        height = 0.05 * np.sqrt(1.0 - R[2, 2] ** 2) + 0.1 * abs(R[2, 2]) - GAP * (-1) ** k
        v = 0.3 * rng.normal(size=6)
        v[:3] -= R.T[:, 2]
        sim.reset([0.0, 0.0, height, *pin.Quaternion(R).coeffs()], v)
        derivatives = sim.derivatives(NOTHING)
        seen |= kinds_that_agree(sim, derivatives)
        error, share = compare(sim, NOTHING, derivatives, columns=4)
        assert error < 1e-7
        assert share > 0.6
    assert seen == {ON_RIM}


def test_a_cylinder_that_stands() -> None:
    """Four points of its face hold it: the motion is that of any points there."""
    sim = contact_sim.Simulator(cylinder(), LAW)
    sim.reset([0.0, 0.0, 0.1 - 1e-4, 0.0, 0.0, 0.0, 1.0], np.zeros(6))
    derivatives = sim.derivatives(NOTHING)
    assert derivatives.redundant
    assert np.abs(derivatives.velocity.v).max() < 1e-9
    # each point is pushed out by 0.2 φ/h: v_z⁺ = −0.2 z/h, ω⁺ = −0.2 tilt/h
    np.testing.assert_allclose(derivatives.velocity.q[2:5, 2:5], -200.0 * np.eye(3), atol=1e-6)


# --- Bodies of one tree


def two_arms(seed: int) -> tuple[contact_sim.RobotModel, Any]:
    """Return a free body with two arms of two joints, which touch each other, and its q.

    A capsule at the end of one arm, a ball at that of the other.
    """
    rng, model, ends = np.random.default_rng(seed), pin.Model(), []
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root')
    model.appendBodyToJoint(root, pin.Inertia.FromBox(2.0, 0.2, 0.3, 0.2), pin.SE3.Identity())
    for side in (-1.0, 1.0):
        last, place = root, pin.SE3(np.eye(3), np.array([0.0, 0.2 * side, 0.0]))
        for joint in (pin.JointModelRX(), pin.JointModelRY()):
            last = model.addJoint(last, joint, place, f'joint_{model.njoints}')
            inertia = pin.Inertia.FromBox(0.5, 0.05, 0.05, 0.3)
            model.appendBodyToJoint(last, inertia, pin.SE3(np.eye(3), np.array([0, 0, -0.1])))
            place = pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.3]))
        model.addBodyFrame(f'end_{len(ends)}', last, pin.SE3.Identity(), 0)
        ends.append(last)
    q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
    q[2], data = 5.0, model.createData()
    pin.forwardKinematics(model, data, q)
    # the ball beside the axis of the capsule
    capsule = data.oMi[ends[0]] * pin.SE3(rotation(rng), np.array([0.0, 0.0, -0.2]))
    away = np.cross(capsule.rotation[:, 2], rng.normal(size=3))
    on_axis = capsule.act(np.array([0.0, 0.0, 0.05]))
    centre = on_axis + (0.12 + GAP) * away / np.linalg.norm(away)
    own = data.oMi[ends[0]].inverse() * capsule
    solids = (
        Solid('capsule', 'end_0', model.names[ends[0]], (0.0, 0.0, 0.1), 0.05,
              tuple(own.translation.tolist()), tuple(own.rotation.ravel().tolist())),
        Solid('ball', 'end_1', model.names[ends[1]], (0.0, 0.0, 0.0), 0.07,
              tuple(data.oMi[ends[1]].actInv(centre).tolist())),
    )  # fmt: skip
    robot = contact_sim.RobotModel.from_pinocchio(model)
    return replace(robot, collisions=Collisions(solids, (('capsule', 'ball'),))), q


@pytest.mark.parametrize(
    'law',
    [LAW, contact_sim.Sap(tolerance=1e-14),
     contact_sim.Compliant(tolerance=1e-14, stiffness=1e4, friction_law='tanh')],
    ids=['ncp', 'sap', 'compliant'],
)  # fmt: skip
def test_contacts_of_two_arms_of_one_robot(law: Any) -> None:
    """The motion of the base moves both, that of an arm one of them; effective masses, too."""
    touched = 0
    for seed in range(8):
        robot, q = two_arms(seed)
        sim = contact_sim.Simulator(robot, law, friction=0.3)
        v = 0.5 * np.random.default_rng(seed).normal(size=robot.nv)
        for sign in (1.0, -1.0):
            sim.reset(q, sign * v)
            efforts = np.zeros(robot.n_joints)
            sim.step(efforts)
            derivatives = sim.derivatives(efforts)
            if not (derivatives.modes != d.OPEN).any():
                continue
            touched += 1
            assert kinds_that_agree(sim, derivatives) == {FIXED}
            error, share = compare(sim, efforts, derivatives, columns=5)
            assert error < 1e-7
            assert share > 0.6
    assert touched >= 3


@pytest.mark.parametrize('approximation', ['lagged', 'sap'])
@pytest.mark.parametrize(('first', 'second'), [('ball', 'ball'), ('capsule', 'capsule')])
def test_effective_masses_of_contacts_of_two_bodies(
    first: str, second: str, approximation: str
) -> None:
    """∂w/∂q by formula against differences, under sap; G by the whole step under compliant."""
    law = contact_sim.Sap(tolerance=1e-14, approximation=approximation)
    robot, rng, compared = two_bodies(first, second), np.random.default_rng(3), 0
    for _ in range(3):
        way = rng.normal(size=3)
        turns = rotation(rng), rotation(rng)
        sim = meeting(robot, turns, way / np.linalg.norm(way), 0.0, law)
        sim.step(NOTHING)
        derivatives = sim.derivatives(NOTHING)
        arrays = sim._linearisation
        n = int(arrays.view('counts')[d.ROWS])
        if n and arrays.view('on_weight')[:n].any():
            own = arrays.view('weight_slope')[:3, :12].copy()
            arrays._fill_given()
            expected = arrays.view('weight_slope')[:3, :12]
            np.testing.assert_allclose(own[0], expected[0], atol=1e-9 * np.abs(expected).max())
            compared += 1
        assert compare(sim, NOTHING, derivatives, columns=3)[0] < 1e-7
    assert compared
    law = contact_sim.Compliant(tolerance=1e-14, stiffness=1e4, friction_law='stribeck')
    sim = meeting(robot, turns, way / np.linalg.norm(way), 0.0, law)
    assert compare(sim, NOTHING, sim.derivatives(NOTHING), columns=6)[0] < 1e-7


def test_kinks_of_contacts_of_bodies_are_named() -> None:
    sim = contact_sim.Simulator(contact_sim.loose_box((0.2, 0.2, 0.2), 1.0))
    sim.step(NOTHING)
    names = {kink.name for kink in sim.derivatives(NOTHING).kinks_within(1e-3)}
    assert names == {'box_0 on the ground'}
