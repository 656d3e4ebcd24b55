"""Callbacks are served whatever they raise; where they cannot be, the node ends."""

import re
import time
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

import rclpy
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool, Trigger

from contact_sim.errors import InvalidInput
from contact_sim.ros import _executor, simulation_node
from contact_sim.ros.simulation_node import CallbacksEnded, CallbackThread, answering, refusal

PATIENCE = 10.0


@pytest.fixture(params=[True, False], ids=['events', 'wait sets'], autouse=True)
def events(request, monkeypatch):
    """Serve callbacks with both executors that there may be."""
    if not request.param:
        monkeypatch.setattr(_executor, '_version', lambda: None)
    elif not _executor.awaits_services(_executor._version()):
        pytest.skip('the executor for events of this rclpy does not await services')
    return request.param


@pytest.mark.parametrize(
    ('version', 'awaits'),
    [
        ('7.1.6', False),
        ('7.1.11', True),
        ('7.1.12', True),
        ('8.0.0', False),
        ('9.1.1', False),
        ('9.1.2', True),
        ('10.0.0', False),
        ('10.0.1', True),
        ('11.0.0', True),
        ('12', True),
        ('9.1', False),
        ('9.x.1', False),
        ('', False),
        (None, False),
    ],
)
def test_the_executor_for_events_is_taken_where_it_awaits_services(version, awaits):
    assert _executor.awaits_services(version) == awaits


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


def test_an_executor_that_fails_ends_the_node_with_the_reason(node, monkeypatch, events):
    if events:
        raises = partial(int, 'no number')  # without a frame in Python, as an executor in C++
        failing = SimpleNamespace(add_node=str, shutdown=str, spin_once=raises)
        monkeypatch.setattr(simulation_node, 'quickest_executor', lambda context: failing)
    else:

        def fail(self):
            raise RuntimeError('no wait set')

        single = 'rclpy.executors.SingleThreadedExecutor.wait_for_ready_callbacks'
        monkeypatch.setattr(single, fail)
    monkeypatch.setattr(rclpy, 'ok', node.context.ok)

    def run(keep_running):
        assert wait_for(lambda: not keep_running())

    monkeypatch.setattr(node, 'run', run, raising=False)
    with pytest.raises(CallbacksEnded, match=r'no more: \w+Error'):
        simulation_node.run(node)


def test_a_failure_after_the_end_of_ros_is_none(node):
    callbacks = CallbackThread(node, node.context.ok)
    node.context.try_shutdown()
    assert wait_for(lambda: not callbacks.alive)
    callbacks.end()


class Moody:
    """Services that raise."""

    def __init__(self, node, error):
        self.said, self.error = [], error
        for kind, name in ((Trigger, 'plain'), (SetBool, 'awaited')):
            callback = answering(getattr(self, name), self.said.append)
            node.create_service(kind, name, callback)

    def plain(self, request, response):
        response.success, response.message = True, 'half done'
        raise self.error

    async def awaited(self, request, response):
        raise self.error


@pytest.mark.parametrize(
    ('error', 'reason'),
    [
        (InvalidInput('mass = -1 kg'), 'mass = -1 kg'),
        (OverflowError('too large'), r"OverflowError\('too large'\)"),
        (ValueError('x' * 1_000_000), 'ValueError.*characters'),
    ],
    ids=['of ours', 'of others', 'long'],
)
def test_a_service_that_raises_answers_with_the_reason(node, error, reason):
    moody = Moody(node, error)
    clients = [
        (node.create_client(kind, name), kind)
        for kind, name in ((Trigger, 'plain'), (SetBool, 'awaited'))
    ]
    callbacks = CallbackThread(node, node.context.ok)
    for client, kind in clients:
        assert wait_for(client.service_is_ready)
        answer = client.call_async(kind.Request())
        assert wait_for(answer.done)
        assert not answer.result().success
        assert re.search(reason, answer.result().message)
        assert len(answer.result().message) < 3000
    callbacks.end()
    assert len(moody.said) == 2
    assert all(len(line) < 3000 for line in moody.said)
    assert any('Traceback' in line for line in moody.said) == (not isinstance(error, InvalidInput))


@pytest.mark.parametrize('kind', [GetParameters, SetParameters, SetParametersAtomically])
def test_services_of_parameters_answer_too(kind):
    def callback(request, response):
        raise OverflowError('no')

    request = kind.Request()
    if kind is SetParameters:
        request.parameters = [Parameter(name, value=1).to_parameter_msg() for name in 'ab']
    coroutine = answering(callback, lambda said: None)(request, kind.Response())
    with pytest.raises(StopIteration) as ended:
        coroutine.send(None)
    response = ended.value.value
    if kind is SetParameters:
        assert [(r.successful, r.reason) for r in response.results] == [
            (False, "OverflowError('no')")
        ] * 2
    elif kind is SetParametersAtomically:
        assert response.result.reason == "OverflowError('no')"
    else:
        assert response.values == []


def test_a_result_of_simulation_interfaces_says_what_failed():
    result = SimpleNamespace(result=1, error_message='', RESULT_OPERATION_FAILED=4)
    said = refusal(None, SimpleNamespace(result=result), 'no')
    assert (said.result.result, said.result.error_message) == (4, 'no')
