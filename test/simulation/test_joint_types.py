"""Robots with every joint type that Pinocchio has: by the kernels, or with terms it fills in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import ContactPoint, RobotModel, Simulator
from contact_sim.dynamics._integration import INTEGRATORS
from contact_sim.dynamics._tree import tree_of
from contact_sim.step import _workspace

AXIS = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
KINDS = {
    **{f'{kind}{axis}': getattr(pin, f'JointModel{kind}{axis}')
       for kind in ('R', 'P', 'RUB') for axis in 'XYZ'},
    **{f'H{axis}': partial(getattr(pin, f'JointModelH{axis}'), 0.1) for axis in 'XYZ'},
    'revolute': lambda: pin.JointModelRevoluteUnaligned(AXIS),
    'prismatic': lambda: pin.JointModelPrismaticUnaligned(AXIS),
    'helical': lambda: pin.JointModelHelicalUnaligned(AXIS, 0.1),
    'spherical': pin.JointModelSpherical,
    'spherical_zyx': pin.JointModelSphericalZYX,
    'planar': pin.JointModelPlanar,
    'translation': pin.JointModelTranslation,
    'universal': lambda: pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[1]),
    'free_flyer': pin.JointModelFreeFlyer,
    'composite': lambda: composite(),
}  # fmt: skip


def composite():
    joint = pin.JointModelComposite(pin.JointModelRX())
    joint.addJoint(pin.JointModelPY(), pin.SE3(np.eye(3), np.array([0.1, 0.0, 0.0])))
    return joint


def model_with(joint):
    """Return a free body that carries another one on `joint`, and a hinge behind it."""
    rng = np.random.default_rng(4)

    def body():
        inertia = np.diag(rng.uniform(0.02, 0.03, 3))
        return pin.Inertia(rng.uniform(0.5, 2.0), rng.uniform(-0.1, 0.1, 3), inertia)

    model = pin.Model()
    place = pin.SE3(pin.Quaternion(*(np.ones(4) / 2)), np.array([0.1, -0.2, 0.3]))
    base = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    model.appendBodyToJoint(base, body(), pin.SE3.Identity())
    middle = model.addJoint(base, joint, place, 'middle')
    model.appendBodyToJoint(middle, body(), pin.SE3.Identity())
    last = model.addJoint(middle, pin.JointModelRY(), place, 'last')
    model.appendBodyToJoint(last, body(), pin.SE3.Identity())
    model.addBodyFrame('tip', last, pin.SE3.Identity(), 0)
    return model, middle


def check_one_step(model, integrator='semi_implicit'):
    points = [ContactPoint('tip', 'tip', 'last', np.array([0.05, 0.0, -0.1]), 0.02)]
    robot = RobotModel.from_pinocchio(model, points, actuated_joints=['last'])
    sim = Simulator(robot, friction=0.5, integrator=integrator)
    rng = np.random.default_rng(5)
    q = pin.integrate(model, pin.neutral(model), 0.4 * rng.standard_normal(model.nv))
    q[2] += 5.0
    v = rng.standard_normal(model.nv)
    sim.reset(q, v)
    report = sim.step([0.3], {'tip': [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]})
    data = model.createData()
    tau = np.zeros(model.nv)
    tau[robot.joint_velocity_index] = 0.3
    pin.framesForwardKinematics(model, data, q)
    frame = model.getFrameId('tip')
    J = pin.computeFrameJacobian(model, data, q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    tau += J.T @ [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]
    expected = pin.aba(model, model.createData(), q, v, tau)
    assert np.allclose(report.acceleration, expected, rtol=1e-9, atol=1e-9 * abs(expected).max())
    # all joints but the free flyers move with the new velocity for h
    data = model.createData()
    pin.framesForwardKinematics(model, data, sim.q)
    assert np.allclose(sim.frame_placement('tip').homogeneous, data.oMf[frame].homogeneous)
    inner = model.joints[2]
    if inner.shortname() not in ('JointModelFreeFlyer', 'JointModelComposite'):
        moved = pin.integrate(model, q, 1e-3 * report.record.v_next)
        part = slice(inner.idx_q, inner.idx_q + inner.nq)
        assert np.allclose(sim.q[part], moved[part], rtol=0, atol=1e-14)
    return sim


@pytest.mark.parametrize('kind', KINDS)
def test_a_robot_with_this_joint_moves_as_pinocchio_says(kind):
    model, _ = model_with(KINDS[kind]())
    assert tree_of(model).unsupported == ()
    check_one_step(model)


@pytest.mark.parametrize('integrator', INTEGRATORS)
@pytest.mark.parametrize('kind', ['revolute', 'spherical', 'free_flyer', 'composite'])
def test_terms_filled_in_by_pinocchio_give_the_same_run(kind, integrator, monkeypatch):
    model, _ = model_with(KINDS[kind]())
    fast = check_one_step(model, integrator)

    def unknown(known):
        return lambda model: _renamed(known(model), model)

    monkeypatch.setattr(_workspace, 'tree_of', unknown(_workspace.tree_of))
    slow = check_one_step(model, integrator)
    for sim in (fast, slow):
        q = sim.q.copy()
        q[2] -= sim.last_report.contacts.gap[0] - 0.01
        sim.reset(q, np.zeros(model.nv))
        loads = [sim.step([0.0]).contacts.normal_force[0] for _ in range(150)]
        assert max(loads) > 0.0
    assert slow._workspace.external_terms[0] == 1
    assert np.allclose(fast.q, slow.q, rtol=0, atol=1e-9)
    assert np.allclose(fast.v, slow.v, rtol=0, atol=1e-7)


def _renamed(tree, model):
    """Return `tree` as if one of its joints were unknown: every body a joint of its own."""
    bodies = np.arange(model.njoints)
    axes = np.repeat(np.eye(3)[None], model.njoints, axis=0)
    zeros = np.zeros(model.njoints, dtype=np.int64)
    return replace(
        tree, kind=zeros, parent=zeros, q_index=zeros, v_index=np.zeros(len(zeros) + 1, np.int64),
        placement=np.zeros((len(zeros), 13)), body=np.zeros((len(zeros), 10)), axes=axes,
        body_of_joint=bodies, unsupported=('middle',),
    )  # fmt: skip


if hasattr(pin, 'JointModelEllipsoid'):  # from Pinocchio 4 on

    def test_a_joint_that_the_kernels_do_not_know_is_filled_in():
        model, _ = model_with(pin.JointModelEllipsoid(0.1, 0.2, 0.3))
        assert tree_of(model).unsupported == ('middle',)
        check_one_step(model)
