"""Poses that are given to load_robot."""

import numpy as np
import pytest
from urdf_texts import ONE_LEG, ONE_LEG_SRDF, joint, link, robot

from contact_sim import load_robot
from contact_sim.errors import InvalidInput, UnknownName


def leg(poses, **said):
    return load_robot(ONE_LEG, feet=['foot'], poses=poses, **said)


def angles(loaded, pose):
    return loaded.joint_positions(loaded.reference_configuration(pose)).tolist()


def test_poses_by_joint_name():
    loaded = leg({'stand': {'hip': 0.3, 'knee': -0.6}, 'kneel': {'knee': 1.5}})
    assert loaded.reference_configurations == ('standing', 'stand', 'kneel')
    assert angles(loaded, 'stand') == [0.3, -0.6]
    assert angles(loaded, 'kneel') == [0.0, 1.5]


def test_they_win_over_the_srdf():
    loaded = leg({'standing': {'hip': 0.1}}, srdf=ONE_LEG_SRDF)
    assert angles(loaded, 'standing') == [0.1, 0.0]
    assert angles(loaded, 'half_sitting') == [1.0, 0.0]


def test_the_base_and_endless_joints():
    text = robot(link('base'), link('wheel'), joint('axle', 'base', 'wheel', 'continuous'))
    poses = {'up': {'root_joint': [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0], 'axle': 0.5}}
    q = load_robot(text, feet=(), poses=poses).references['up']
    assert q[:7].tolist() == [1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]
    assert q[7:] == pytest.approx([np.cos(0.5), np.sin(0.5)], abs=1e-15)


@pytest.mark.parametrize(
    ('poses', 'error', 'message'),
    [
        ({'stand': {'hop': 0.3}}, UnknownName, r"joint in poses\['stand'\]: 'hop'; known: .*hip"),
        ({'stand': {3: 0.3}}, UnknownName, r"joint in poses\['stand'\]: 3"),
        ({'stand': {'hip': 'x'}}, InvalidInput, r"poses\['stand'\]\['hip'\] = 'x': expected real"),
        ({'stand': {'hip': np.nan}}, InvalidInput, 'expected finite numbers'),
        ({'stand': {'hip': [0.1, 0.2]}}, InvalidInput, 'has 2 values, expected 1'),
        ({'stand': {'hip': [[0.1]]}}, InvalidInput, 'expected finite numbers'),
        ({'stand': {'hip': 57.0}}, InvalidInput, 'hip = 57, but the joint has the limits -1'),
        ({'stand': {'root_joint': [0, 0, 0, 0, 0, 0, 9]}}, InvalidInput, 'norm 9'),
        ({'stand': 0.3}, InvalidInput, r"poses\['stand'\] = 0.3: expected values by joint"),
        ({'': {'hip': 0.3}}, InvalidInput, 'expected a name that is not empty'),
        ({5: {'hip': 0.3}}, InvalidInput, 'expected a name'),
        ([('stand', {})], InvalidInput, 'expected values by joint, by name of the pose'),
        ('stand', InvalidInput, "poses = 'stand': expected"),
    ],
)
def test_bad_poses(poses, error, message):
    with pytest.raises(error, match=message):
        leg(poses)
