"""One node of a name: of many that start at once exactly one runs, and its end frees the name."""

import os
import subprocess
import sys

import pytest

pytest.importorskip('rclpy', reason='needs ROS')

from contact_sim.ros._processes import isolated_environment

STARTS = 12
PROGRAM = f"""
import os
import sys
import rclpy
from rclpy.node import Node
from contact_sim.errors import ContactSimError
from contact_sim.ros import simulation_node

simulation_node.SILENCE = 1.0
go, gone = os.pipe(), os.pipe()


def start(number):
    os.close(go[1]), os.close(gone[1])
    os.read(go[0], 1)
    rclpy.init()
    name = simulation_node.UniqueName(Node('contact_sim', enable_rosout=False))
    try:
        name.check()
        answer = 'runs'
    except ContactSimError as error:
        answer = str(error)
    os.write(1, f'{{answer}}\\n'.encode())
    os.read(gone[0], 1)  # it has the name until all have answered
    os._exit(0)


children = []
for number in range({STARTS}):
    child = os.fork()
    if child == 0:
        start(number)
    children.append(child)
os.close(go[1])
sys.stdin.readline()
os.close(gone[1])
for child in children:
    os.waitpid(child, 0)
rclpy.init()
simulation_node.UniqueName(Node('contact_sim', enable_rosout=False)).check()
print('and again', flush=True)
os._exit(0)
"""


def test_of_many_that_start_at_once_one_runs():
    # as on a machine so busy that none of them hears of another
    blind = isolated_environment() | {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'OFF'}
    process = subprocess.Popen(
        [sys.executable, '-c', PROGRAM], text=True, env=os.environ | blind,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        answers = [process.stdout.readline().strip() for _ in range(STARTS)]
        assert answers.count('runs') == 1, answers
        refused = [answer for answer in answers if answer != 'runs']
        assert all('a node /contact_sim runs on ROS domain' in answer for answer in refused)
        process.stdin.write('\n')
        process.stdin.close()
        assert process.stdout.readline().strip() == 'and again'
    finally:
        process.kill()
        process.wait()
