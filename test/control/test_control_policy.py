"""Policies from ONNX files: small networks whose answers are known by hand."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper, save

from contact_sim import InvalidInput, Simulator, UnknownName, Worlds, load_robot
from contact_sim.campaign import Trial
from contact_sim.campaign._trial import Prepared
from contact_sim.collision._terrain import as_terrain
from contact_sim.control import load_policy, policy_layouts
from contact_sim.control._policy_file import read_policy
from contact_sim.control._policy_network import network_of
from contact_sim.robot._actuators import holding
from contact_sim.terrain import ScanGrid

SINGLE = TensorProto.FLOAT


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


def write_network(path, weight, bias=None, batch='n'):
    """Write actions = weight · obs + bias."""
    weight = np.array(weight, dtype=np.float32)
    bias = np.zeros(len(weight)) if bias is None else bias
    arrays = {'W': weight.T, 'b': np.array(bias, dtype=np.float32)}
    nodes = [
        helper.make_node('MatMul', ['obs', 'W'], ['product']),
        helper.make_node('Add', ['product', 'b'], ['actions']),
    ]
    ends = [
        helper.make_tensor_value_info(name, SINGLE, [batch, size])
        for name, size in (('obs', weight.shape[1]), ('actions', weight.shape[0]))
    ]
    write_graph(path, nodes, ends[:1], ends[1:], arrays)


def write_graph(path, nodes, inputs, outputs, arrays):
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, 'policy', inputs, outputs, constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)


def write_policy(folder, robot, weight=None, bias=None, batch='n', size=0, **stated):
    """Write a network and its file; without a weight the network answers its bias, or zero."""
    joints = stated.setdefault('joints', list(robot.joint_names))
    stated = {
        'network': 'net.onnx',
        'pose': 'standing',
        'gains': {'kp': 30.0, 'kd': 1.0},
        'period': 0.02,
        'action': {'scale': 1.0},
        'observation': ['joint_pos'],
    } | stated
    if weight is None:
        weight = np.zeros((len(joints), size or len(joints)))
    write_network(folder / 'net.onnx', weight, bias, batch)
    path = folder / 'policy.yaml'
    path.write_text(yaml.safe_dump(stated))
    return path


@pytest.mark.parametrize(('layout', 'fastest', 'scale'), [
    ('legged_gym', 'y', 5.0), ('isaac_lab', 'x', 1.0),
])  # fmt: skip
def test_the_ground_around_the_robot_reaches_the_network(go1, tmp_path, layout, fastest, scale):
    grid = ScanGrid((0.3, 0.2), 0.1, fastest=fastest)
    path = write_policy(
        tmp_path, go1, pick(12, np.arange(12), 12), observation=['height_scan'], layout=layout,
        height_scan={'size': [0.3, 0.2]}, action={'scale': 1.0, 'clip': 100.0},
    )  # fmt: skip
    policy = load_policy(path, go1)
    q, v = some_state(go1)
    with pytest.raises(InvalidInput, match=r'policy\.ground = sim\.terrain'):
        policy.effort(0.0, q, v)
    q[2] = 0.9
    ground = as_terrain('stairs')
    policy.ground = ground
    policy.effort(0.0, q, v)
    forward = pin.Quaternion(q[3:7]).toRotationMatrix()[:, 0]
    turn = math.atan2(forward[1], forward[0])
    x, y = grid.points.T
    heights = np.array([
        ground.height(q[0] + math.cos(turn) * a - math.sin(turn) * b,
                      q[1] + math.sin(turn) * a + math.cos(turn) * b)
        for a, b in zip(x, y, strict=True)
    ])  # fmt: skip
    expected = scale * np.clip(q[2] - heights - 0.5, -1.0, 1.0)
    np.testing.assert_allclose(policy.action, expected, atol=1e-6)
    # robots of a batch each see their own ground
    batch = policy.for_worlds(2)
    batch.ground = [ground, as_terrain('plane')]
    batch(np.zeros(2), np.array([q, q]), np.array([v, v]))
    np.testing.assert_allclose(batch.action[0], expected, atol=1e-6)
    np.testing.assert_allclose(batch.action[1], scale * 0.4, atol=1e-6)


def some_state(robot, seed=0):
    random = np.random.default_rng(seed)
    q = robot.reference_configuration()
    turn = pin.Quaternion(pin.exp3(random.normal(size=3) * 0.5))
    q[:3], q[3:7] = random.normal(size=3), turn.coeffs()
    q = robot.with_joint_positions(q, robot.joint_positions(q) + 0.1 * random.normal(size=12))
    return q, random.normal(size=robot.nv)


def pick(rows, columns, size):
    """Return a weight with which action i is observation columns[i]."""
    weight = np.zeros((rows, size))
    weight[np.arange(len(columns)), columns] = 1.0
    return weight


def expected_parts(robot, q, v, velocity, pose):
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    return {
        'base_lin_vel': v[:3],
        'base_ang_vel': v[3:6],
        'projected_gravity': R.T @ [0.0, 0.0, -1.0],
        'commands': velocity,
        'joint_pos': robot.joint_positions(q) - pose,
        'joint_vel': robot.joint_velocities(v),
    }


@pytest.mark.parametrize(
    'part',
    ['base_lin_vel', 'base_ang_vel', 'projected_gravity', 'commands', 'joint_pos', 'joint_vel'],
)
def test_each_part_reaches_the_network(go1, tmp_path, part):
    size = 12 if part.startswith('joint') else 3
    path = write_policy(
        tmp_path, go1, pick(12, np.arange(size), size), observation=[part], scales={part: 0.5}
    )
    policy = load_policy(path, go1)
    policy.velocity = (0.3, -0.2, 0.1)
    q, v = some_state(go1)
    policy.effort(0.0, q, v)
    pose = go1.joint_positions(go1.reference_configuration())
    expected = 0.5 * np.array(expected_parts(go1, q, v, [0.3, -0.2, 0.1], pose)[part])
    np.testing.assert_allclose(policy.action[:size], expected, atol=1e-6)


def test_gravity_in_a_base_on_its_side(go1, tmp_path):
    """Rolled by +90°, down is along −y of the base."""
    path = write_policy(tmp_path, go1, pick(12, [0, 1, 2], 3), observation=['projected_gravity'])
    policy, q = load_policy(path, go1), go1.reference_configuration()
    q[3:7] = np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)
    policy.effort(0.0, q, np.zeros(go1.nv))
    np.testing.assert_allclose(policy.action[:3], [0.0, -1.0, 0.0], atol=1e-7)


QUADRUPED = {
    'legged_gym': (
        ['base_lin_vel', 'base_ang_vel', 'projected_gravity', 'commands', 'joint_pos',
         'joint_vel', 'last_action'],
        [2.0, 0.25, 1.0, [2.0, 2.0, 0.25], 1.0, 0.05, 1.0], 0.5,
    ),
    'isaac_lab': (
        ['base_lin_vel', 'base_ang_vel', 'projected_gravity', 'commands', 'joint_pos',
         'joint_vel', 'last_action'],
        [1.0] * 7, 0.5,
    ),
    'mujoco_playground': (
        ['base_lin_vel', 'base_ang_vel', 'projected_gravity', 'joint_pos', 'joint_vel',
         'last_action', 'commands'],
        [1.0] * 7, 0.5,
    ),
    'unitree_rl_gym': (
        ['base_ang_vel', 'projected_gravity', 'commands', 'joint_pos', 'joint_vel', 'last_action',
         'phase'],
        [0.25, 1.0, [2.0, 2.0, 0.25], 1.0, 0.05, 1.0, 1.0], 0.25,
    ),
    'mujoco_playground_humanoid': (
        ['base_lin_vel', 'base_ang_vel', 'projected_gravity', 'commands', 'joint_pos',
         'joint_vel', 'last_action', 'phase'],
        [1.0] * 8, 0.5,
    ),
}  # fmt: skip
"""Order, scales and action scale as the public code of these projects states them."""


def test_every_layout_is_tested():
    assert set(QUADRUPED) == set(policy_layouts())


@pytest.mark.parametrize('layout', QUADRUPED)
def test_a_layout_orders_and_scales_the_observation(go1, tmp_path, layout):
    """Every number of the observation is read by a network that picks twelve of them at a time."""
    names, scales, action_scale = QUADRUPED[layout]
    joints = list(go1.joint_names)[::-1]
    pose = np.linspace(-0.5, 0.5, 12)
    q, v = some_state(go1)
    velocity = np.array([0.3, -0.2, 0.1])
    parts = expected_parts(go1, q, v, velocity, pose[::-1])
    parts['last_action'] = np.zeros(12)
    two = layout == 'mujoco_playground_humanoid'  # cos, cos, sin, sin at the start, or sin, cos
    parts['phase'] = [1.0, -1.0, 0.0, 0.0] if two else [0.0, 1.0]
    for name in ('joint_pos', 'joint_vel'):
        parts[name] = parts[name][::-1]
    expected = np.concatenate(
        [np.multiply(scale, parts[name]) for name, scale in zip(names, scales, strict=True)]
    )
    for first in range(0, len(expected), 12):
        columns = np.arange(first, min(first + 12, len(expected)))
        path = write_policy(
            tmp_path, go1, pick(12, columns, len(expected)), joints=joints, pose=pose.tolist()
        )
        stated = yaml.safe_load(path.read_text())
        for key in ('observation', 'period', 'action'):
            del stated[key]
        path.write_text(yaml.safe_dump(stated | {'layout': layout}))
        policy = load_policy(path, go1)
        policy.velocity = velocity
        command = policy.command(0.0, q, v)
        np.testing.assert_allclose(policy.action[: len(columns)], expected[columns], atol=1e-6)
        targets = pose + action_scale * policy.action
        np.testing.assert_allclose(command.position, targets[::-1], atol=1e-12)
        assert policy.period == 0.02


def test_a_file_overrides_its_layout(go1, tmp_path):
    path = write_policy(
        tmp_path, go1, pick(12, [0, 3, 4], 6), layout='legged_gym', clip=1.5, period=0.01,
        observation=['base_lin_vel', 'commands'], scales={'commands': 3.0},
    )  # fmt: skip
    policy = load_policy(path, go1)
    policy.velocity = (0.4, 0.6, 0.0)
    v = np.zeros(go1.nv)
    v[0] = 0.1
    policy.effort(0.0, go1.reference_configuration(), v)
    np.testing.assert_allclose(policy.action[:3], [0.2, 1.2, 1.5], atol=1e-6)
    assert policy.period == 0.01


def test_actions_become_joint_targets_in_the_order_of_the_robot(go1, tmp_path):
    joints = list(go1.joint_names)[::-1]
    bias, scale = np.linspace(-1.2, 1.2, 12), np.linspace(0.1, 0.5, 12)
    pose = dict(zip(joints, np.linspace(-0.3, 0.3, 12).tolist(), strict=True))
    path = write_policy(
        tmp_path, go1, bias=bias, joints=joints, pose=pose,
        gains={'kp': {'hip': 10.0, 'thigh': 20.0, 'calf': 30.0}, 'kd': list(range(12))},
        action={'scale': scale.tolist(), 'clip': 1.0},
    )  # fmt: skip
    command = load_policy(path, go1).command(0.0, *some_state(go1))
    target = np.linspace(-0.3, 0.3, 12) + scale * np.clip(bias, -1.0, 1.0)
    np.testing.assert_allclose(command.position, target[::-1], atol=1e-7)
    np.testing.assert_array_equal(command.damping, np.arange(12.0)[::-1])
    kinds = {'hip': 10.0, 'thigh': 20.0, 'calf': 30.0}
    stiffness = [kinds[name.split('_')[1]] for name in go1.joint_names]
    np.testing.assert_array_equal(command.stiffness, stiffness)


def test_the_network_runs_once_per_period_and_the_gains_act_always(go1, tmp_path):
    path = write_policy(
        tmp_path, go1, pick(12, [0], 3), observation=['commands'], period=0.01, pose='standing',
        gains={'kp': 30.0, 'kd': 2.0},
    )  # fmt: skip
    policy, q = load_policy(path, go1), go1.reference_configuration()
    pose, v = go1.joint_positions(q), np.zeros(go1.nv)
    seen = []
    for step in range(25):
        policy.velocity = (float(step), 0.0, 0.0)
        v[6] = 0.1 * step
        effort = policy.effort(step * 1e-3, q, v)
        seen.append(policy.action[0])
        expected = 30.0 * (pose[0] + policy.action[0] - pose[0]) - 2.0 * 0.1 * step
        assert effort[0] == pytest.approx(expected, abs=1e-9)
    assert seen == [0.0] * 10 + [10.0] * 10 + [20.0] * 5
    policy.effort(0.0, q, v)  # back in time: from the start
    assert policy.action[0] == 24.0


def test_last_action_is_what_the_network_answered(go1, tmp_path):
    """a ← a_before + 1, clipped: 1, 2, 2.5, 2.5."""
    path = write_policy(
        tmp_path, go1, np.eye(12), np.ones(12), observation=['last_action'],
        action={'scale': 0.1, 'clip': 2.5},
    )  # fmt: skip
    policy, (q, v) = load_policy(path, go1), some_state(go1)
    answers = []
    for k in range(4):
        policy.effort(0.02 * k, q, v)
        answers.append(policy.action[5])
    assert answers == [1.0, 2.0, 2.5, 2.5]
    policy.reset()
    policy.effort(0.08, q, v)
    assert policy.action[5] == 1.0


def test_smoothed_actions(go1, tmp_path):
    """With s = 0.75 a constant action of 1 counts 1 − 0.75^k after k periods."""
    path = write_policy(
        tmp_path, go1, bias=np.ones(12), pose=0.0, action={'scale': 1.0, 'smoothing': 0.75}
    )
    policy, (q, v) = load_policy(path, go1), some_state(go1)
    targets = [policy.command(0.02 * k, q, v).position[0] for k in range(4)]
    np.testing.assert_allclose(targets, 1.0 - 0.75 ** np.arange(1, 5), atol=1e-7)


@pytest.mark.parametrize(
    ('order', 'newest', 'start', 'expected'),
    [
        ('by_frame', 'last', 'zeros', [[0, 0, 0, 0, 1, 10], [0, 0, 1, 10, 2, 20]]),
        ('by_frame', 'first', 'zeros', [[1, 10, 0, 0, 0, 0], [2, 20, 1, 10, 0, 0]]),
        ('by_frame', 'last', 'first', [[1, 10, 1, 10, 1, 10], [1, 10, 1, 10, 2, 20]]),
        ('by_part', 'last', 'first', [[1, 1, 1, 10, 10, 10], [1, 1, 2, 10, 10, 20]]),
        ('by_part', 'first', 'zeros', [[1, 0, 0, 10, 0, 0], [2, 1, 0, 20, 10, 0]]),
    ],
)
def test_history(go1, tmp_path, order, newest, start, expected):
    """Two parts whose first numbers are k and 10 k in period k; the others are zero."""
    places = range(0, 18, 3)  # the first of each three numbers
    path = write_policy(
        tmp_path, go1, pick(12, places, 18), observation=['commands', 'base_lin_vel'],
        history={'length': 3, 'order': order, 'newest': newest, 'start': start},
    )  # fmt: skip
    policy, q, v = load_policy(path, go1), go1.reference_configuration(), np.zeros(go1.nv)
    for k, numbers in enumerate(expected):
        policy.velocity, v[0] = (k + 1.0, 0.0, 0.0), 10.0 * (k + 1.0)
        policy.effort(0.02 * k, q, v)
        np.testing.assert_allclose(policy.action[:6], numbers, atol=1e-5)


def test_phase(go1, tmp_path):
    path = write_policy(
        tmp_path, go1, pick(12, range(4), 4), observation=['phase'],
        phase={'period': 0.8, 'offsets': [0.0, 0.5], 'order': 'cos_sin'},
    )  # fmt: skip
    policy, (q, v) = load_policy(path, go1), some_state(go1)
    for time, expected in ((5.0, [1, -1, 0, 0]), (5.2, [0, 0, 1, -1]), (5.4, [-1, 1, 0, 0])):
        policy.effort(time, q, v)
        np.testing.assert_allclose(policy.action[:4], expected, atol=1e-6)


def test_memory_of_a_recurrent_network(go1, tmp_path):
    """h ← h + obs and actions = h: the sum of all observations so far, for each robot."""
    values = {
        name: helper.make_tensor_value_info(name, SINGLE, shape)
        for name, shape in (
            ('obs', [1, 12]), ('h_in', [1, 1, 12]), ('actions', [1, 12]), ('h_out', [1, 1, 12])
        )
    }  # fmt: skip
    nodes = [
        helper.make_node('Add', ['h_in', 'obs'], ['h_out']),
        helper.make_node('Reshape', ['h_out', 'shape'], ['actions']),
    ]
    path = write_policy(tmp_path, go1, pose=0.0)
    write_graph(
        tmp_path / 'net.onnx', nodes, [values['obs'], values['h_in']],
        [values['actions'], values['h_out']], {'shape': np.array([1, 12])},
    )  # fmt: skip
    q, v = go1.reference_configuration(), np.zeros(go1.nv)
    seen = go1.joint_positions(q)
    policy = load_policy(path, go1)
    batch = policy.for_worlds(2)
    for k in range(3):
        policy.effort(0.02 * k, q, v)
        batch(np.full(2, 0.02 * k), np.tile(q, (2, 1)), np.zeros((2, go1.nv)))
    np.testing.assert_allclose(policy.action, 3.0 * seen, atol=1e-5)
    batch.reset([1])
    batch(np.full(2, 0.06), np.tile(q, (2, 1)), np.zeros((2, go1.nv)))
    np.testing.assert_allclose(batch.action, np.outer([4.0, 1.0], seen), atol=1e-5)


def test_a_linear_policy_that_is_joint_pd_stands_as_joint_pd_does(go1, tmp_path):
    """Gains k and 0 with q* = q_pose + (1 − k_p/k) (q − q_pose) − (k_d/k) q̇ are joint PD."""
    kp, kd = go1.default_gains
    weight = np.hstack([np.diag(1.0 - kp / 100.0), np.diag(-kd / 100.0)])
    path = write_policy(
        tmp_path, go1, weight, observation=['joint_pos', 'joint_vel'], period=1e-3,
        gains={'kp': 100.0, 'kd': 0.0},
    )  # fmt: skip
    policy, pose = load_policy(path, go1), go1.joint_positions(go1.reference_configuration())
    ours, theirs = Simulator(go1, 'ncp'), Simulator(go1, 'ncp')
    command = holding(pose, kp, kd)
    for _ in range(400):
        ours.step(policy.effort(ours.time, ours.q, ours.v))
        positions, speeds = go1.joint_positions(theirs.q), go1.joint_velocities(theirs.v)
        theirs.step(command.effort_at(positions, speeds))
    np.testing.assert_allclose(ours.q, theirs.q, atol=1e-5)  # the network computes in 32 bits
    assert ours.q[2] == pytest.approx(go1.reference_configuration()[2], abs=0.01)


@pytest.mark.parametrize('batch', ['n', 1])
def test_worlds_are_driven_as_one_robot_is(go1, tmp_path, batch):
    """Worlds with other commands, through `run` and `follow`, against robots one at a time."""
    random = np.random.default_rng(1)
    path = write_policy(
        tmp_path, go1, 0.1 * random.normal(size=(12, 60)), batch=batch, period=4e-3,
        layout='legged_gym',
        observation=['commands', 'base_lin_vel', 'last_action', 'joint_pos', 'joint_vel',
                     'base_ang_vel', 'projected_gravity', 'phase'],
        phase={'period': 0.5, 'offsets': [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]},
        gains={'kp': 40.0, 'kd': 1.0}, action={'scale': 0.2},
    )  # fmt: skip
    policy, velocity = load_policy(path, go1), np.array([[0.3, 0.0, 0.1], [0.0, 0.2, 0.0]])
    sims = [Simulator(go1, 'ncp') for _ in velocity]
    for sim, command in zip(sims, velocity, strict=True):
        policy.reset()
        policy.velocity = command
        for _ in range(20):
            sim.step(policy.effort(sim.time, sim.q, sim.v))
    run, follow = (Worlds(go1, 2, threads=1) for _ in range(2))
    controllers = [policy.for_worlds(2) for _ in range(2)]
    for controller in controllers:
        controller.velocity = velocity
    run.run(controllers[0], 20)
    for _ in range(5):
        follow.follow(controllers[1].commands(follow.time, follow.q, follow.v), 4)
    for worlds in (run, follow):
        np.testing.assert_allclose(worlds.q, [sim.q for sim in sims], atol=1e-6)
    assert np.abs(run.q[0] - run.q[1]).max() > 1e-3


def test_other_joints_are_held_in_the_standing_pose(go1, tmp_path):
    joints = ['FR_calf_joint', 'FL_hip_joint']
    path = write_policy(tmp_path, go1, bias=[0.5, -0.5], joints=joints, pose=[-1.0, 0.2])
    command = load_policy(path, go1).command(0.0, *some_state(go1))
    expected = go1.joint_positions(go1.reference_configuration())
    kp, kd = go1.default_gains
    for joint, target in zip(joints, (-0.5, -0.3), strict=True):
        i = go1.joint_names.index(joint)
        expected[i], kp[i], kd[i] = target, 30.0, 1.0
    np.testing.assert_allclose(command.position, expected, atol=1e-7)
    np.testing.assert_array_equal([command.stiffness, command.damping], [kp, kd])


@pytest.mark.parametrize(
    ('changes', 'kind', 'words'),
    [
        ({'size': 9}, InvalidInput, ["'obs' takes 9 numbers", 'has 12', 'joint_pos 12']),
        (
            {'size': 9, 'history': {'length': 2}, 'observation': ['commands', 'joint_vel']},
            InvalidInput, ['takes 9', 'has 30: commands 3, joint_vel 12; history of 2'],
        ),
        (
            {'weight': np.zeros((11, 12))},
            InvalidInput, ["'actions' has 11 actions", '12 joints'],
        ),
        ({'joints': ['FL_hip_joint', 'FL_hips_joint']}, UnknownName, ["mean 'FL_hip_joint'"]),
        ({'joints': ['FL_hip_joint'] * 2}, InvalidInput, ['more than once']),
        ({'observation': ['joint_position']}, UnknownName, ["did you mean 'joint_pos'"]),
        ({'height_scan': {'size': [1.0]}, 'observation': ['height_scan']}, InvalidInput,
         ['height_scan.size']),
        ({'height_scan': {'fastest': 'z'}, 'observation': ['height_scan']}, UnknownName,
         ['fastest']),
        ({'height_scan': {'sizes': 1.0}}, UnknownName, ["did you mean 'size'"]),
        ({'observation': ['phase']}, InvalidInput, ['phase.period']),
        ({'observation': ['joint_pos'] * 2}, InvalidInput, ['more than once']),
        ({'observation': []}, InvalidInput, ['at least one']),
        ({'layout': 'legged_gymn'}, UnknownName, ["did you mean 'legged_gym'"]),
        ({'networks': 'x'}, UnknownName, ["did you mean 'network'"]),
        ({'gains': {'kp': 1.0}}, InvalidInput, ['gains.kd is missing']),
        ({'gains': {'kp': -1.0, 'kd': 1.0}}, InvalidInput, ['gains.kp', 'at least 0']),
        ({'gains': {'kp': {'hip': 1.0}, 'kd': 1.0}}, InvalidInput, ['no key fits joint']),
        ({'gains': {'kp': {'knee': 1.0}, 'kd': 1.0}}, UnknownName, ['knee']),
        ({'gains': 3.0}, InvalidInput, ['expected values of kp, kd']),
        ({'action': {'scale': [1.0, 2.0]}}, InvalidInput, ['action.scale', 'shape (2,)']),
        ({'action': {'scale': 1.0, 'smoothing': 1.0}}, InvalidInput, ['smoothing']),
        ({'action': {'scales': 1.0}}, UnknownName, ["did you mean 'scale'"]),
        ({'pose': 'sitting'}, UnknownName, ['sitting']),
        ({'pose': {'FL_hip_joint': 0.0}}, InvalidInput, ['no key fits']),
        ({'scales': {'commands': 2.0}}, InvalidInput, ['scales.commands', 'no such part']),
        ({'scales': {'joint_pos': [1.0, 2.0]}}, InvalidInput, ['scales.joint_pos']),
        ({'history': {'order': 'frames'}}, UnknownName, ['history.order', 'by_frame']),
        ({'period': 0.0}, InvalidInput, ['period']),
        ({'clip': -1.0}, InvalidInput, ['clip']),
        ({'network': 'other.onnx'}, InvalidInput, ['no file', 'other.onnx']),
        ({'network': 'policy.yaml'}, InvalidInput, ['cannot be loaded']),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_refused(go1, tmp_path, changes, kind, words):
    path = write_policy(tmp_path, go1, **changes)
    with pytest.raises(kind) as caught:
        load_policy(path, go1)
    for word in words:
        assert word in str(caught.value)


def test_what_no_layout_states_is_named(go1, tmp_path):
    path = tmp_path / 'policy.yaml'
    path.write_text('layout: legged_gym\nnetwork: net.onnx\njoints: [FL_hip_joint]\npose: 0.0\n')
    with pytest.raises(InvalidInput, match='gains is missing'):
        load_policy(path, go1)
    path.write_text('network: net.onnx\n')
    with pytest.raises(InvalidInput, match=r'joints is missing; a layout \(legged_gym'):
        load_policy(path, go1)


@pytest.mark.parametrize('content', ['- a', 'a: [', '3'])
def test_no_yaml_of_keys(go1, tmp_path, content):
    (tmp_path / 'policy.yaml').write_text(content)
    with pytest.raises(InvalidInput, match=r'policy\.yaml'):
        load_policy(tmp_path / 'policy.yaml', go1)


def test_files_that_are_missing_or_of_another_kind(go1, tmp_path):
    with pytest.raises(InvalidInput, match='no file'):
        load_policy(tmp_path / 'none.yaml', go1)
    write_policy(tmp_path, go1)
    with pytest.raises(InvalidInput, match=r'expected a YAML file'):
        load_policy(tmp_path / 'net.onnx', go1)


def test_a_trial_of_a_policy_starts_in_its_pose(go1, tmp_path):
    joints = list(go1.joint_names)[3:]  # the others stand
    standing = go1.joint_positions(go1.reference_configuration())
    pose = standing[3:] + np.linspace(-0.2, 0.2, len(joints))
    path = write_policy(tmp_path, go1, joints=joints, pose=pose.tolist())
    prepared = Prepared(Trial(str(path), contact_model='ncp'))
    assert prepared.controller.start_pose[3:] == pytest.approx(pose)
    sim = prepared.simulator()
    assert go1.joint_positions(sim.q) == pytest.approx([*standing[:3], *pose])
    assert sim.last_report.contacts.gap.min() == pytest.approx(0.0, abs=1e-9)


def test_without_onnxruntime_the_extra_is_named(go1, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'onnxruntime', None)
    path = write_policy(tmp_path, go1)
    with pytest.raises(InvalidInput, match=r"pip install 'contact_sim\[policy\]'"):
        load_policy(path, go1)


def test_a_base_that_is_fixed_has_no_velocity(tmp_path):
    robot = load_robot('go1', floating_base=False)
    path = write_policy(tmp_path, robot, np.zeros((12, 3)), observation=['base_lin_vel'])
    with pytest.raises(InvalidInput, match='the base of robot go1 is fixed'):
        load_policy(path, robot)


@pytest.mark.parametrize('velocity', [(1.0, 0.0), (np.nan, 0.0, 0.0), 'fast'])
def test_a_velocity_is_three_numbers(go1, tmp_path, velocity):
    policy = load_policy(write_policy(tmp_path, go1), go1)
    with pytest.raises(InvalidInput, match='velocity'):
        policy.velocity = velocity


def test_states_of_other_sizes_are_refused(go1, tmp_path):
    policy = load_policy(write_policy(tmp_path, go1), go1)
    with pytest.raises(InvalidInput, match='q of shape'):
        policy.effort(0.0, np.zeros(3), np.zeros(go1.nv))
    with pytest.raises(InvalidInput, match='robot'):
        load_policy(tmp_path / 'policy.yaml', SimpleNamespace())


@pytest.fixture
def scripted(go1, tmp_path):
    """Return the path of a policy whose network is TorchScript: an LSTM with its state inside."""
    torch = pytest.importorskip('torch', reason='torch is not installed (extra `torch`)')

    class Recurrent(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.memory = torch.nn.LSTM(size, 8)
            self.actor = torch.nn.Linear(8, 12)
            self.register_buffer('hidden_state', torch.zeros(1, 1, 8))
            self.register_buffer('cell_state', torch.zeros(1, 1, 8))

        def forward(self, x):
            out, (h, c) = self.memory(x.unsqueeze(0), (self.hidden_state, self.cell_state))
            self.hidden_state[:] = h
            self.cell_state[:] = c
            return self.actor(out.squeeze(0))

    path = write_policy(tmp_path, go1, network='net.pt')
    (tmp_path / 'net.pt').touch()
    torch.manual_seed(0)
    size = read_policy(path, go1).observation_size
    torch.jit.script(Recurrent(size)).save(str(tmp_path / 'net.pt'))
    return path


def test_torchscript_with_memory_is_what_torch_computes(go1, scripted):
    import torch

    network = torch.jit.load(str(scripted.parent / 'net.pt'))
    own = network_of(read_policy(scripted, go1))
    rows = np.random.default_rng(0).normal(size=(5, read_policy(scripted, go1).observation_size))
    memory = own.memory(2)
    for row in rows:  # two worlds, one of which sees the opposite
        ours = own.actions(np.array([row, -row]), memory, [0, 1])
        theirs = network(torch.as_tensor(row[None], dtype=torch.float32)).detach().numpy()
        assert np.abs(ours[0] - theirs[0]).max() <= 1e-6
        assert np.abs(ours[0] - ours[1]).max() > 1e-3
    again = own.actions(rows[:1], own.memory(1), [0])
    assert np.abs(again - own.actions(rows[:1], own.memory(1), [0])).max() == 0.0


def test_torchscript_that_does_not_fit_is_refused(go1, scripted):
    stated = yaml.safe_load(scripted.read_text()) | {'observation': ['joint_pos', 'commands']}
    scripted.write_text(yaml.safe_dump(stated))
    with pytest.raises(InvalidInput, match=r'does not take the observation, 15 numbers'):
        load_policy(scripted, go1)
    (scripted.parent / 'net.pt').write_bytes(b'no zip')
    with pytest.raises(InvalidInput, match=r'net\.pt: cannot be loaded.*torch\.jit\.save'):
        load_policy(scripted, go1)


def test_without_torch_the_extra_is_named(go1, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'torch', None)
    path = write_policy(tmp_path, go1, network='net.pt')
    (tmp_path / 'net.pt').write_bytes(b'')
    with pytest.raises(InvalidInput, match=r'contact_sim\[torch\]'):
        load_policy(path, go1)
