"""The policy controller over DDS, in lockstep, with the ground that it observes."""

import sys

import numpy as np
import pytest
import yaml

pytest.importorskip('rclpy', reason='needs ROS')

from onnx import TensorProto, helper, numpy_helper, save
from ros_session import Session

from contact_sim import Simulator, load_robot
from contact_sim.control import load_policy
from contact_sim.ros._processes import Process, ros_arguments
from contact_sim.terrain import ScanGrid

GRID = ScanGrid((0.4, 0.2))
TOPICS = {
    '/joint_states': 'sensor_msgs/msg/JointState',
    '/joint_commands': 'sensor_msgs/msg/JointState',
    '/odom': 'nav_msgs/msg/Odometry',
}


@pytest.fixture
def policy(tmp_path):
    """Return the file of a policy whose actions are a twentieth of the first twelve distances."""
    weight = np.zeros((len(GRID), 12), dtype=np.float32)
    weight[np.arange(12), np.arange(12)] = 0.05
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in (('obs', len(GRID)), ('actions', 12))
    ]
    graph = helper.make_graph(
        [helper.make_node('MatMul', ['obs', 'W'], ['actions'])], 'policy', ends[:1], ends[1:],
        [numpy_helper.from_array(weight, 'W')],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    save(model, tmp_path / 'net.onnx')
    (tmp_path / 'policy.yaml').write_text(yaml.safe_dump({
        'network': 'net.onnx', 'joints': list(load_robot('go1').joint_names), 'pose': 'standing',
        'gains': {'kp': 60.0, 'kd': 2.0}, 'period': 0.02, 'action': {'scale': 1.0},
        'observation': ['height_scan'],
        'height_scan': {'size': [0.4, 0.2], 'offset': 0.2},
    }))  # fmt: skip
    return tmp_path / 'policy.yaml'


def test_a_policy_walks_over_ros_as_in_python(tmp_path, policy):
    with Session(tmp_path, TOPICS, {
        'terrain.type': 'stairs', 'real_time_factor': 0.0, 'lockstep.enabled': True,
        'lockstep.period': 20, 'lockstep.timeout': 30.0, 'publish_rate.joint_states': 50.0,
        'publish_rate.odom': 50.0, 'publish_rate.height_scan': 50.0,
        'height_scan.x_size': 0.4, 'height_scan.y_size': 0.2, 'height_scan.fastest': 'x',
        'start_paused': True,
    }) as session:  # fmt: skip
        program = [sys.executable, '-m', 'contact_sim.ros.controllers.policy']
        with Process(
            program, ros_arguments({'robot': 'go1', 'policy': str(policy)}), session.domain
        ):
            session.wait(
                lambda: session.node.count_publishers('/joint_commands') == 1, 'the policy', 60.0
            )
            gains = session.get('gains.FL_hip_joint.p', 'gains.FL_hip_joint.d')
            assert gains == [60.0, 2.0]
            session.pause(False)
            session.wait(lambda: len(session.messages['/odom']) > 60, 'a second', 60.0)
        commands = [one for one in session.messages['/joint_commands'] if len(one.position)]
    # in process, from the same state on the same ground
    robot = load_robot('go1')
    sim = Simulator(robot, terrain='stairs')
    here = load_policy(policy, robot)
    here.ground = sim.terrain
    states = {one.header.stamp.sec * 10**9 + one.header.stamp.nanosec: one
              for one in session.messages['/odom']}  # fmt: skip
    compared = 0
    for command in commands[10:]:
        stamp = command.header.stamp.sec * 10**9 + command.header.stamp.nanosec
        if stamp in states:
            pose = states[stamp].pose.pose
            q = sim.q.copy()
            q[:3] = pose.position.x, pose.position.y, pose.position.z
            turn = pose.orientation
            q[3:7] = turn.x, turn.y, turn.z, turn.w
            here.reset()
            target = here.command(0.0, q, np.zeros(robot.nv)).position
            np.testing.assert_allclose(command.position, target, atol=2e-3)
            compared += 1
    assert compared > 20
