"""Callbacks are served whatever they raise; where they cannot be, the node ends."""

import time

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from std_srvs.srv import Trigger

from contact_sim.ros import simulation_node
from contact_sim.ros.callbacks import CallbacksEnded, CallbackThread

PATIENCE = 10.0


@pytest.fixture
def node():
    context = Context()
    rclpy.init(context=context)
    node = Node('moody', context=context)
    yield node
    node.destroy_node()
    context.try_shutdown()


def wait_for(condition):
    until = time.perf_counter() + PATIENCE
    while not condition() and time.perf_counter() < until:
        time.sleep(0.01)
    return condition()


@pytest.mark.parametrize(
    'error', [OverflowError, RuntimeError, SystemExit, KeyboardInterrupt, GeneratorExit]
)
def test_a_callback_that_raises_is_not_the_last_one(node, error):
    calls = []

    def moody():
        calls.append(None)
        raise error('no')

    node.create_timer(0.01, moody)
    callbacks = CallbackThread(node, node.context.ok)
    assert wait_for(lambda: len(calls) > 3)
    assert callbacks.alive
    callbacks.end()
    assert not callbacks.alive


def test_a_service_that_raises_leaves_the_others_alone(node):
    def refuse(request, response):
        raise ValueError

    def agree(request, response):
        response.success = True
        return response

    node.create_service(Trigger, 'refuse', refuse)
    node.create_service(Trigger, 'agree', agree)
    refusing, agreeing = (node.create_client(Trigger, name) for name in ('refuse', 'agree'))
    callbacks = CallbackThread(node, node.context.ok)
    assert wait_for(refusing.service_is_ready)
    assert wait_for(agreeing.service_is_ready)
    refusing.call_async(Trigger.Request())
    answer = agreeing.call_async(Trigger.Request())
    assert wait_for(answer.done)
    assert answer.result().success
    callbacks.end()


def test_an_executor_that_fails_ends_the_node_with_the_reason(node, monkeypatch):
    def fail(self):
        raise RuntimeError('no wait set')

    monkeypatch.setattr('rclpy.executors.SingleThreadedExecutor.wait_for_ready_callbacks', fail)
    monkeypatch.setattr(rclpy, 'ok', node.context.ok)

    def run(keep_running):
        assert wait_for(lambda: not keep_running())

    monkeypatch.setattr(node, 'run', run, raising=False)
    with pytest.raises(CallbacksEnded, match=r'no more: RuntimeError.*no wait set'):
        simulation_node.run(node)


def test_a_failure_after_the_end_of_ros_is_none(node):
    callbacks = CallbackThread(node, node.context.ok)
    node.context.try_shutdown()
    assert wait_for(lambda: not callbacks.alive)
    callbacks.end()
