"""The rigid-body kernels against Pinocchio, for every joint type that it has."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import load_robot, robots
from contact_sim.dynamics.bias_forces import bias_forces, point_bias
from contact_sim.dynamics.energy import kinetic_energy, mass_moment
from contact_sim.dynamics.integrate import move, move_base
from contact_sim.dynamics.kinematics import place, world_inertia
from contact_sim.dynamics.mass_matrix import mass_matrix
from contact_sim.dynamics.tree import tree_of

RELATIVE = 1e-12
GRAVITY = np.array([0.8, -0.5, -9.81])
FAR = np.array([1024.0, -512.0, 64.0])
"""About 1 km [m], a sum of powers of two: adding it to a multiple of GRID is exact."""
GRID = 2.0**-20
AXIS_JOINTS = [
    *[f'R{axis}' for axis in 'XYZ'],
    *[f'RUB{axis}' for axis in 'XYZ'],
    *[f'P{axis}' for axis in 'XYZ'],
    'RevoluteUnaligned',
    'RevoluteUnboundedUnaligned',
    'PrismaticUnaligned',
]
OTHER_JOINTS = ['Spherical', 'SphericalZYX', 'Translation', 'Planar', 'FreeFlyer', 'Universal']
HELICAL_JOINTS = [n for n in ('HX', 'HY', 'HZ', 'HelicalUnaligned') if hasattr(pin, 'JointModel' + n)]
SUPPORTED = [*AXIS_JOINTS, *OTHER_JOINTS, *HELICAL_JOINTS, 'Composite']


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def unit_vector(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def placement(rng):
    rotation = pin.exp3(rng.uniform(-2.0, 2.0, 3))
    return pin.SE3(rotation, np.round(rng.uniform(-0.5, 0.5, 3) / GRID) * GRID)


def joint_of(name, rng, depth=0):
    """Return a joint of the type; a composite one of two or three, itself perhaps composite."""
    kind = getattr(pin, f'JointModel{name}')
    if name == 'Composite':
        names = [*AXIS_JOINTS, *OTHER_JOINTS] + ([] if depth else ['Composite'])
        parts = [joint_of(part, rng, depth + 1) for part in rng.choice(names, 1 + rng.integers(3))]
        joint = kind(parts[0], placement(rng))
        for part in parts[1:]:
            joint.addJoint(part, placement(rng))
        return joint
    if name == 'Universal':
        return kind(*pin.exp3(rng.normal(size=3))[:2])
    if name == 'HelicalUnaligned':
        return kind(unit_vector(rng), 0.3)
    if name in ('HX', 'HY', 'HZ'):
        return kind(-0.2)
    return kind(unit_vector(rng)) if name in ('RevoluteUnaligned', 'PrismaticUnaligned') else kind()


def random_tree(seed):
    """Return a model of up to eight joints; every type is the first joint of some seeds.

    Joints are added branch by branch, as Pinocchio's mass matrix needs them.
    """
    rng = np.random.default_rng(seed)
    model, branch = pin.Model(), [0]
    for k in range(rng.integers(1, 9)):
        name = SUPPORTED[seed % len(SUPPORTED)] if k == 0 else rng.choice(SUPPORTED)
        branch = branch[: 1 + rng.integers(len(branch))] if rng.random() < 0.4 else branch
        joint = model.addJoint(branch[-1], joint_of(name, rng), placement(rng), f'{name}_{k}')
        branch.append(joint)
        if rng.random() < 0.9:
            pin.seed(seed * 10 + k)
            model.appendBodyToJoint(joint, pin.Inertia.Random(), placement(rng))
    model.armature = rng.uniform(0.0, 0.1, model.nv)
    return model


def random_state(model, rng):
    """Return q and v; the positions of free flyers are on the grid."""
    q = pin.integrate(model, pin.neutral(model), rng.uniform(-1.5, 1.5, model.nv))
    for joint in model.joints:
        if joint.shortname() == 'JointModelFreeFlyer':
            position = slice(joint.idx_q, joint.idx_q + 3)
            q[position] = np.round(q[position] / GRID) * GRID
    return q, rng.uniform(-1.0, 1.0, model.nv)


def terms_of(model, q, v):
    tree = tree_of(model)
    assert tree.unsupported == ()
    nb, nv = len(tree.kind), model.nv
    t = SimpleNamespace(tree=tree, origin=np.full(3, np.nan), M=np.zeros((nv, nv)))
    t.pose, t.columns = np.full((nb, 12), np.nan), np.full((nv, 6), np.nan)
    t.inertia, t.composite = np.full((nb, 10), np.nan), np.full((nb, 10), np.nan)
    t.twist, t.bias, t.wrench = (np.full((nb, 6), np.nan) for _ in range(3))
    t.nle = np.full(nv, np.nan)
    indices = tree.parent, tree.v_index
    places = tree.kind, tree.parent, tree.q_index, tree.v_index, tree.placement
    place(*places, q, t.origin, t.pose, t.columns)
    world_inertia(tree.body, t.pose, t.origin, t.inertia)
    mass_matrix(*indices, tree.dof_parent, t.columns, t.inertia, tree.armature, t.composite, t.M)
    bias_forces(*indices, t.columns, t.inertia, v, GRAVITY, t.twist, t.bias, t.wrench, t.nle)
    return t


def assert_close(found, expected, scale=0.0):
    """Equal to RELATIVE of the largest entry, or of `scale` where this is larger."""
    expected = np.asarray(expected, dtype=float)
    scale = max(np.abs(expected).max(initial=0.0), scale)
    error = np.abs(np.asarray(found) - expected).max(initial=0.0)
    assert error <= RELATIVE * scale, f'{error} of {scale}'


def assert_equals_pinocchio(model, q, v, near=None, shift=(0.0, 0.0, 0.0)):
    """Check every term; `near` is the same robot and q moved by −`shift` to the world's origin.

    Far away Pinocchio's own terms lose digits, but M and nle do not depend on where a robot is.
    """
    model = model.copy()
    model.gravity.linear = GRAVITY
    here, data = terms_of(model, q, v), model.createData()
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    assert_placements_equal(here, data)
    close, q_close = near or (model, q)
    close = close.copy()
    close.gravity.linear = GRAVITY
    data = close.createData()
    pin.crba(close, data, q_close)
    assert_close(here.M, np.tril(data.M.T))
    assert_close(here.nle, pin.nonLinearEffects(close, data, q_close, v), scale=1.0)
    assert_motions_equal(here, close, q_close, v, shift)
    energy = pin.computeKineticEnergy(close, data, q_close, v)
    assert_close(kinetic_energy(here.M, here.tree.dof_parent, v), energy)
    assert_integrates_like_pinocchio(model, here, q, v)


def assert_placements_equal(here, data):
    for joint, body in enumerate(here.tree.body_of_joint):
        rotation = here.pose[body, :9].reshape(3, 3).T @ here.tree.axes[body].T
        assert_close(rotation, data.oMi[joint].rotation)
        assert_close(here.pose[body, 9:], data.oMi[joint].translation, scale=1.0)


def assert_motions_equal(here, model, q, v, shift):
    """Columns, twists and J̇ v of every joint against Pinocchio, near the world's origin."""
    data, aligned = model.createData(), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    columns = np.array(pin.computeJointJacobians(model, data, q)).reshape(6, -1)
    linear = columns[:3].T + np.cross(columns[3:].T, here.origin - shift)
    assert_close(here.columns, np.hstack([linear, columns[3:].T]))
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    for joint, body in list(enumerate(here.tree.body_of_joint))[1:]:
        r = data.oMi[joint].translation - (here.origin - shift)
        twist = here.twist[body]
        velocity = pin.getVelocity(model, data, joint, aligned)
        assert_close(twist[:3] + np.cross(twist[3:], r), velocity.linear, scale=1.0)
        assert_close(twist[3:], velocity.angular, scale=1.0)
        expected = pin.getClassicalAcceleration(model, data, joint, aligned)
        found = point_bias(twist, here.bias[body], GRAVITY, tuple(r))
        assert_close(found, expected.linear, scale=np.linalg.norm(GRAVITY))
        assert_close(here.bias[body, 3:], expected.angular, scale=1.0)


def assert_integrates_like_pinocchio(model, here, q, v):
    tree, increment, v_next = here.tree, np.empty(model.nv), np.empty(model.nv)
    for displacement in (v, 1e-3 * v, 1e-9 * v, 0.0 * v):
        move_base(displacement, v, tree.free_flyer_v, increment, v_next)
        q_next = np.full(model.nq, np.nan)
        move(tree.kind, tree.q_index, tree.v_index, here.pose, displacement, q, q_next)
        assert_close(q_next, pin.integrate(model, q, increment), scale=1.0)


@pytest.mark.parametrize('name', robots())
def test_robots_of_the_catalogue(name, rng):
    model = load_robot(name).pinocchio_model
    for _ in range(3):
        assert_equals_pinocchio(model, *random_state(model, rng))


@pytest.mark.parametrize('build', [pin.buildSampleModelHumanoid, pin.buildSampleModelManipulator])
def test_pinocchio_samples(build, rng):
    model = build()
    assert_equals_pinocchio(model, *random_state(model, rng))


@pytest.mark.parametrize('first', range(len(SUPPORTED)), ids=SUPPORTED)
def test_random_trees_with_every_joint_type(first):
    for seed in range(first, 220, len(SUPPORTED)):
        model = random_tree(seed)
        assert_equals_pinocchio(model, *random_state(model, np.random.default_rng(seed)))


def test_every_joint_type_of_pinocchio_is_tested_or_known_as_unsupported():
    names = {n.removeprefix('JointModel') for n in dir(pin) if n.startswith('JointModel')} - {''}
    assert names - set(SUPPORTED) <= {'Mimic', 'Ellipsoid'}
