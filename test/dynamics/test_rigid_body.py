"""The rigid-body kernels against Pinocchio, for every joint type that it has."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest

from contact_sim import load_robot, robots
from contact_sim.dynamics._integration import integrate_configuration, pinocchio_increment
from contact_sim.dynamics._rigid_body import (
    bias_forces,
    forward_kinematics,
    kinetic_energy,
    mass_matrix,
    mass_moment,
    mechanical_energy,
    point_bias,
    world_inertia,
)
from contact_sim.dynamics._tree import dof_parents, tree_of

pytestmark = pytest.mark.usefixtures('interpreted_kernels')
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
HELICAL_JOINTS = [
    n for n in ('HX', 'HY', 'HZ', 'HelicalUnaligned') if hasattr(pin, 'JointModel' + n)
]
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
    return (
        kind(unit_vector(rng)) if name in ('RevoluteUnaligned', 'PrismaticUnaligned') else kind()
    )


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


@pytest.mark.parametrize('seed', range(60))
def test_dofs_before_dofs_are_those_of_pinocchio(seed):
    model = random_tree(seed)
    rows = list(model.createData().parents_fromRow)[: model.nv]
    assert np.array_equal(dof_parents(model), rows)


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
    forward_kinematics(*places, q, t.origin, t.pose, t.columns)
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
    assert_energies_equal(here, close, q_close, v, shift)
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


def assert_energies_equal(here, model, q, v, shift):
    """Kinetic and potential energy against Pinocchio, near the world's origin."""
    data, bare = model.createData(), model.copy()
    bare.armature = np.zeros(model.nv)  # Pinocchio's energy leaves it out on unaligned axes
    kinetic = pin.computeKineticEnergy(bare, data, q, v) + 0.5 * v @ (model.armature * v)
    assert_close(kinetic_energy(here.M, here.tree.dof_parent, v), kinetic)
    moment = np.full(3, np.nan)
    mass_moment(here.inertia, here.origin - shift, moment)
    potential = pin.computePotentialEnergy(model, data, q)
    assert_close(-GRAVITY @ moment, potential, scale=10.0 * pin.computeTotalMass(model))


def assert_integrates_like_pinocchio(model, here, q, v):
    tree, increment = here.tree, np.empty(model.nv)
    for displacement in (v, 1e-3 * v, 1e-9 * v, 0.0 * v):
        pinocchio_increment(displacement, tree.free_flyer_v, increment)
        q_next = np.full(model.nq, np.nan)
        integrate_configuration(
            tree.kind, tree.q_index, tree.v_index, here.pose, displacement, q, q_next
        )
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


def moved_roots(model):
    """Return the model with all of its roots moved by FAR."""
    moved = model.copy()
    for joint in range(1, model.njoints):
        if model.parents[joint] == 0:
            moved.jointPlacements[joint].translation += FAR
    return moved


@pytest.mark.parametrize('name', robots())
def test_a_kilometre_away_nothing_is_lost(name, rng):
    model = load_robot(name).pinocchio_model
    q, v = random_state(model, rng)
    q_far = q.copy()
    q_far[:3] += FAR
    assert_equals_pinocchio(model, q_far, v, (model, q), FAR)
    assert_equals_pinocchio(moved_roots(model), q, v, (model, q), FAR)


@pytest.mark.parametrize('first', range(len(SUPPORTED)), ids=SUPPORTED)
def test_random_trees_a_kilometre_away(first):
    for seed in range(first, 70, len(SUPPORTED)):
        model = random_tree(seed)
        q, v = random_state(model, np.random.default_rng(seed))
        assert_equals_pinocchio(moved_roots(model), q, v, (model, q), FAR)


def test_slides_of_a_kilometre(rng):
    """A planar robot made of slides and a hinge: its origin goes along with it."""
    model, joint = pin.Model(), 0
    for name in ('PX', 'PY', 'RZ', 'RY'):
        joint = model.addJoint(joint, getattr(pin, f'JointModel{name}')(), placement(rng), name)
    model.jointPlacements[1] = model.jointPlacements[2] = pin.SE3.Identity()
    model.appendBodyToJoint(joint, pin.Inertia.Random(), placement(rng))
    q, v = random_state(model, rng)
    q[:2] = np.round(q[:2] / GRID) * GRID
    far = q + [*FAR[:2], 0.0, 0.0]
    assert_equals_pinocchio(model, far, v, (model, q), np.array([*FAR[:2], 0.0]))


CONTINUOUS_ABOUT_A_DIAGONAL = """<robot name="wheel"><link name="world"/>
<link name="rim"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
<joint name="axle" type="continuous"><parent link="world"/><child link="rim"/>
<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><axis xyz="0.6 0 0.8"/></joint></robot>"""


def test_continuous_joint_about_any_axis(rng):
    """Python cannot give this joint an axis, a URDF can."""
    model = pin.buildModelFromXML(CONTINUOUS_ABOUT_A_DIAGONAL)
    assert model.joints[1].shortname() == 'JointModelRevoluteUnboundedUnaligned'
    assert_equals_pinocchio(model, *random_state(model, rng))


def test_every_joint_type_of_pinocchio_is_tested_or_known_as_unsupported():
    names = {n.removeprefix('JointModel') for n in dir(pin) if n.startswith('JointModel')} - {''}
    assert names - set(SUPPORTED) <= {'Mimic', 'Ellipsoid'}


def test_unknown_joints_are_listed(rng):
    """Ellipsoid and mimic joints, and what contains them; the indices hold all the same."""
    model = pin.Model()
    joint = first = model.addJoint(0, pin.JointModelRX(), placement(rng), 'hip')
    unknown = []
    if hasattr(pin, 'JointModelEllipsoid'):
        ellipsoid = pin.JointModelEllipsoid(0.1, 0.2, 0.3)
        composite = pin.JointModelComposite(pin.JointModelRX())
        composite.addJoint(ellipsoid, pin.SE3.Identity())
        joint = model.addJoint(joint, ellipsoid, placement(rng), 'ellipsoid')
        joint = model.addJoint(joint, composite, placement(rng), 'composite')
        unknown += ['ellipsoid', 'composite']
    if hasattr(pin, 'JointModelMimic'):
        mimic = pin.JointModelMimic(model.joints[first], 2.0, 0.1)
        joint = model.addJoint(joint, mimic, placement(rng), 'mimic')
        unknown += ['mimic']
    joint = model.addJoint(joint, pin.JointModelPZ(), placement(rng), 'foot')
    joint = model.addJoint(joint, pin.JointModelFreeFlyer(), placement(rng), 'free')
    tree = tree_of(model)
    assert tree.unsupported == tuple(unknown)
    assert tree.v_index[-1] == len(tree.dof_parent) == len(tree.armature) == model.nv
    for name in ('hip', 'foot', 'free'):
        index = model.getJointId(name)
        body = tree.body_of_joint[index]
        assert tree.v_index[body] == model.joints[index].idx_v
        assert tree.q_index[body] == model.joints[index].idx_q
    np.testing.assert_array_equal(tree.free_flyer_v, [model.joints[joint].idx_v])


def test_energy_counts_armature_on_any_axis(rng):
    """½ (I + armature) ω² of a wheel about an axis that is none of x, y, z."""
    model = pin.Model()
    axis = unit_vector(rng)
    joint = model.addJoint(0, pin.JointModelRevoluteUnaligned(axis), pin.SE3.Identity(), 'axle')
    inertia = pin.Inertia(2.0, np.zeros(3), np.diag([0.1, 0.2, 0.3]))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    model.armature = np.array([0.7])
    energy = mechanical_energy(model, np.array([0.4]), np.array([3.0]), GRAVITY)
    assert energy == pytest.approx(4.5 * (axis @ inertia.inertia @ axis + 0.7), rel=1e-14)
