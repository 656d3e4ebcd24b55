"""Odd inputs end in our errors or in TypeError, never in those of other libraries."""

import dataclasses
import random
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from urdf_texts import ONE_LEG, ONE_LEG_SRDF, joint, link, robot

import contact_sim
from contact_sim import ContactPoint, Plane, Planes, RobotModel, Simulator, load_robot
from contact_sim.collision._surface import PLANES, ROUND
from contact_sim.collision._terrain import GroundSurface
from contact_sim.control import Stance, Trot
from contact_sim.errors import ContactSimError, InvalidInput, RobotDescriptionError
from contact_sim.step._problem import ContactProblem


class Moody:
    def __array__(self, *_, **__):
        raise RuntimeError


GO1 = load_robot('go1')
MASKED = np.ma.masked_array([0.5] * 4, mask=[1, 0, 0, 0])
ODD = [
    1 + 2j, 'x', '0.5', b'0.5', np.datetime64('2020'), np.timedelta64(3, 's'), MASKED,
    np.ma.masked, None, [], {}, (), object(), float('nan'), float('inf'), -1, 10**400, 1e308,
    True, [[1, 2], [3]], np.array(['a'] * 12), np.array([1j] * 12), np.full(12, None), set(),
    range(3), Moody(), np.zeros((2, 0)), [None] * 12, 'é' * 5000, np.float32(0.3),
    Fraction(1, 2), datetime(2020, 1, 1), Ellipsis, float, [np.zeros(3)] * 3,
]  # fmt: skip


@pytest.fixture(scope='module')
def sim():
    return Simulator(GO1)


def restored(sim, **changes):
    snapshot = sim.snapshot()
    try:
        sim.restore(dataclasses.replace(snapshot, **changes))
    finally:
        sim.restore(snapshot)


EYE, ZEROS = np.eye(3), np.zeros(3)
CALLS = {
    'friction': lambda sim, x: setattr(sim, 'friction', x),
    'restitution': lambda sim, x: setattr(sim, 'restitution', x),
    'torsional_friction': lambda sim, x: setattr(sim, 'torsional_friction', x),
    'rolling_friction': lambda sim, x: setattr(sim, 'rolling_friction', x),
    'baumgarte': lambda sim, x: setattr(sim, 'baumgarte', x),
    'threshold': lambda sim, x: setattr(sim, 'restitution_threshold', x),
    'effort': lambda sim, x: sim.step(x),
    'wrench': lambda sim, x: sim.step(np.zeros(12), {'trunk': x}),
    'wrenches': lambda sim, x: sim.step(np.zeros(12), x),
    'q': lambda sim, x: sim.reset(x),
    'v': lambda sim, x: sim.reset(v=x),
    'time': lambda sim, x: sim.reset(time=x),
    'terrain': lambda sim, x: sim.reset(terrain=x),
    'restore': lambda sim, x: sim.restore(x),
    'snapshot friction': lambda sim, x: restored(sim, friction=x),
    'snapshot restitution': lambda sim, x: restored(sim, restitution=x),
    'snapshot moments': lambda sim, x: restored(sim, moments=x),
    'snapshot stabilisation': lambda sim, x: restored(sim, stabilisation=x),
    'robot': lambda _, x: Simulator(x),
    'joint_positions': lambda _, x: GO1.joint_positions(x),
    'joint_velocities': lambda _, x: GO1.joint_velocities(x),
    'with_actuators': lambda _, x: GO1.with_actuators(x),
    'armature': lambda _, x: GO1.with_actuators(armature=x),
    'position limits': lambda _, x: GO1.with_position_limits(x),
    'edge_radius': lambda _, x: GO1.with_body_contacts(edge_radius=x),
    'floating_base': lambda _, x: load_robot(ONE_LEG, floating_base=x),
    'feet': lambda _, x: load_robot(ONE_LEG, feet=x),
    'poses': lambda _, x: load_robot(ONE_LEG, feet=['foot'], poses=x),
    'pose': lambda _, x: load_robot(ONE_LEG, feet=['foot'], poses={'low': x}),
    'joint': lambda _, x: load_robot(ONE_LEG, feet=['foot'], poses={'low': {'hip': x}}),
    'actuated_joints': lambda _, x: load_robot(ONE_LEG, actuated_joints=x),
    'from_pinocchio': lambda _, x: RobotModel.from_pinocchio(x),
    'offset': lambda _, x: ContactPoint('a', 'b', 'c', x, 0.1),
    'radius': lambda _, x: ContactPoint('a', 'b', 'c', [0, 0, 0], x),
    'normal': lambda _, x: Plane(x),
    'planes': lambda _, x: Planes(x),
    'angle': lambda _, x: contact_sim.InclinedPlane(x),
    'joined': lambda _, x: contact_sim.joined(x),
    'places': lambda _, x: contact_sim.joined({'a': GO1}, x),
    'place': lambda _, x: contact_sim.joined({'a': GO1}, {'a': x}),
    'delassus': lambda _, x: ContactProblem.from_delassus(x, ZEROS, [0.5]),
    'g': lambda _, x: ContactProblem.from_delassus(EYE, x, [0.5]),
    'mu': lambda _, x: ContactProblem.from_delassus(EYE, ZEROS, x),
    'inertia': lambda _, x: ContactProblem.from_dynamics(
        x, EYE, ZEROS, ZEROS, [0.5], [0.0], ZEROS, 0.1
    ),
    'load': lambda _, x: ContactProblem.load(x),
    'Stance robot': lambda _, x: Stance(x),
    'Stance motion': lambda _, x: Stance(GO1, x),
    'Stance friction': lambda _, x: Stance(GO1, friction=x),
    'Stance gains': lambda _, x: Stance(GO1, gains=x),
    'Trot friction': lambda _, x: Trot(GO1, friction=x),
    'Trot tuning': lambda _, x: Trot(GO1, tuning=x),
}


@pytest.mark.parametrize('call', CALLS.values(), ids=CALLS)
def test_odd_inputs_end_in_our_errors(sim, call):
    before, answered = sim.snapshot(), 0
    for value in ODD:
        try:
            call(sim, value)
        except (ContactSimError, TypeError):
            answered += 1
        sim.restore(before)
    assert answered


UNREAL = [0.5 + 1j, '0.5', np.datetime64('2020'), MASKED, float('nan'), -0.1, None]


@pytest.mark.parametrize('value', UNREAL, ids=repr)
def test_coefficients_are_real_numbers(sim, value):
    several = value if value is MASKED else np.full(4, value)
    for call in (
        lambda: setattr(sim, 'friction', value),
        lambda: Simulator(GO1, friction=value),
        lambda: Stance(GO1, friction=value),
        lambda: Trot(GO1, friction=value),
        lambda: restored(sim, restitution=several),
        lambda: restored(sim, friction=several),
    ):
        with pytest.raises(InvalidInput, match=r'friction|restitution'):
            call()


class Own(GroundSurface):
    kind, data, features = 0, np.zeros(0), 1

    def __init__(self, kind, data):
        self.kind, self.data = kind, data


@pytest.mark.parametrize('length', [0.0, 0.5, 2.0, 1.0 + 1e-6])
def test_directions_of_a_ground_have_length_one(length):
    plane, pipe = np.zeros((2, len(Plane().data)))
    plane[2], pipe[3:5], pipe[5] = length, 1.0, length
    grounds = [Own(PLANES, plane)] if length == 0.0 else [Own(PLANES, plane), Own(ROUND, pipe)]
    for ground in grounds:
        with pytest.raises(InvalidInput, match=r'directions of lengths .*, expected 1'):
            Simulator(GO1, terrain=ground)


@pytest.mark.parametrize('value', ['false', 'False', 0, 1, None, np.array(True)])
def test_flags_are_true_or_false(value):
    for name in ('floating_base', 'check_meshes'):
        with pytest.raises(InvalidInput, match=f'{name} = .*: expected True or False'):
            load_robot(ONE_LEG, **{name: value})


def test_poses_beyond_the_limits_of_the_joints():
    for angle in ('99', '-28.6', '2.11'):
        srdf = ONE_LEG_SRDF.replace('value="0.5"', f'value="{angle}"')
        with pytest.raises(RobotDescriptionError, match=r"'standing': hip = .* limits -1 and 2"):
            load_robot(ONE_LEG, srdf=srdf)


def test_joints_that_are_misspelt_in_a_pose():
    names = [f'{side}_knee_joint' for side in ('left', 'right')]
    text = robot(link('base'), *map(link, names), *(joint(n, 'base', n) for n in names))
    pose = '<joint name="left_knee_joint" value="1"/><joint name="{}" value="1"/>'
    srdf = f'<robot name="x"><group_state name="standing" group="g">{pose}</group_state></robot>'
    with pytest.raises(RobotDescriptionError, match="'right_kne_joint'; did you mean 'right_knee"):
        load_robot(text, srdf=srdf.format('right_kne_joint'))
    load_robot(text, srdf=srdf.format('tail'))  # a joint of another version of the robot
    load_robot(text, srdf=srdf.format('right_knee_joint'))


@pytest.mark.parametrize(('links', 'kind'), [(1001, 'fixed'), (5000, 'fixed'), (402, 'revolute')])
def test_a_tree_that_is_too_large(links, kind):
    names = [f'l{k}' for k in range(links)]
    limit = '' if kind == 'fixed' else '<limit lower="-1" upper="2" effort="30" velocity="20"/>'
    joints = [joint(f'to_{b}', a, b, kind, limit=limit) for a, b in pairwise(names)]
    with pytest.raises(RobotDescriptionError, match=r'at most (1000|400)'):
        load_robot(robot(*map(link, names), *joints))


def test_a_saved_problem_that_is_damaged(tmp_path):
    """1500 damages: the file is refused, or what it holds is a problem."""
    path, chance, refused = tmp_path / 'problem.npz', random.Random(0), 0
    ContactProblem.from_delassus(EYE, ZEROS, [0.5]).save(path)
    whole = path.read_bytes()
    for k in range(1500):
        data = bytearray(whole)
        if k % 3 == 0:
            del data[chance.randrange(len(data)) :]
        elif k % 3 == 1:
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        else:
            place = chance.randrange(len(data))
            data[place : place + 40] = chance.randbytes(chance.randrange(80))
        path.write_bytes(data)
        try:
            ContactProblem.load(path)
        except InvalidInput:
            refused += 1
    assert refused > 1000
