"""A simulation that goes on with other robots, against one that had all of them from the start."""

import numpy as np
import pytest

from contact_sim import Compliant, Simulator, joined, load_robot, loose_ball, loose_box
from contact_sim.arrays._views import PERSISTENT_FIELDS
from contact_sim.constraints import FrameAnchor
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.robot import holding, parts_of
from contact_sim.simulation import with_robots
from contact_sim.simulation._succession import adopt, carry_over, successor

GO1, SOLO, BOX, BALL = (
    load_robot('go1'), load_robot('solo12'), loose_box((0.3, 0.2, 0.1), 2.0), loose_ball(0.1, 1.0)
)  # fmt: skip
CLOSE = 1e-10
"""Robots that do not touch are problems of their own, so all bits but those of rounding agree."""
MODELS = ('ncp', 'sap', 'todorov', 'anitescu', Compliant(stiffness=2e6), 'lcp', 'null_space',
          'hybrid')  # fmt: skip
"""Compliant with a stiffness of its own: that for a penetration follows the weight of all."""


def commands(sim):
    """Return efforts that hold each robot near its pose, and swing its first joint."""
    robot = sim.robot
    q, v = robot.joint_positions(sim.q), robot.joint_velocities(sim.v)
    pose = robot.joint_positions(robot.reference_configuration())
    command = holding(pose, *robot.default_gains)
    effort = command.effort_at(q, v, robot.continuous_joints)
    effort[::3] += 3.0 * np.sin(20.0 * sim.time)
    return effort


def run(sim, steps):
    for _ in range(steps):
        sim.step(commands(sim))
    return sim


def state_of(sim, name):
    """Return the state of a robot and the forces on its feet."""
    part = next(part for part in parts_of(sim.robot) if part.name == name)
    features = max(sim.sizes.features, 1)
    contacts = (features * part.contact_points[:, None] + np.arange(features)).ravel()
    force = sim.last_report.contacts.force[contacts]
    return np.concatenate([sim.q[part.q], sim.v[part.v]]), force


def assert_same(one, other, *names, close=CLOSE):
    for name in names:
        (state, force), (expected, forces) = state_of(one, name), state_of(other, name)
        assert state == pytest.approx(expected, abs=close)
        assert force == pytest.approx(forces, abs=1e4 * close)


def world(*names, **kwargs):
    robots = {'': GO1, 'solo': SOLO, 'box': BOX, 'ball': BALL}
    places = {'solo': (2.0, 0.0, 0.4), 'box': (0.0, 2.0, 0.2), 'ball': (-2.0, 0.0)}
    chosen = {name: robots[name] for name in names}
    return joined(chosen, {name: places[name] for name in names if name}, **kwargs)


ALL = world('', 'solo', 'box', 'ball')


@pytest.mark.parametrize('model', MODELS)
def test_a_robot_goes_on_as_if_others_had_been_there_or_gone(model):
    """One that comes does not disturb it, nor one that goes; states of both runs are compared."""
    # hybrid ends its arcs at the events of all robots
    close = 1e-5 if model == 'hybrid' else CLOSE
    alone, together = Simulator(GO1, model), Simulator(ALL, model)
    run(alone, 150), run(together, 150)
    q = {part.name: together.q[part.q] for part in parts_of(ALL)[1:]}
    v = {part.name: together.v[part.v] for part in parts_of(ALL)[1:]}
    more = with_robots(alone, ALL, q, v)
    assert (more.time, more.step_count) == (together.time, together.step_count)
    assert_same(more, together, '', close=close)  # also the forces of the last step
    before = more.q.copy()
    run(alone, 5)
    assert (more.q == before).all()  # it is another simulation
    run(more, 100), run(together, 100), run(alone, 95)
    assert_same(more, together, '', close=close)
    assert_same(more, alone, '', close=close)
    fewer = with_robots(together, world('solo', 'ball'))
    assert_same(fewer, together, 'solo', 'ball', close=close)
    run(fewer, 100), run(together, 100)
    assert_same(fewer, together, 'solo', 'ball', close=close)
    single = with_robots(more, GO1)
    run(single, 50), run(alone, 50)
    assert_same(single, alone, '', close=close)


@pytest.mark.parametrize('model', MODELS)
def test_the_same_robots_go_on_to_the_bit(model):
    sim = run(Simulator(ALL, model, friction=0.5), 150)
    same = with_robots(sim, ALL)
    layout = sim.sizes.layout
    for field in (*PERSISTENT_FIELDS, 'q', 'v', 'clock', 'feature_start', 'friction'):
        start, stop, _ = layout[field]
        numbers = [one.snapshot().buffer[start:stop] for one in (same, sim)]
        assert (numbers[0] == numbers[1]).all(), field
    run(sim, 100), run(same, 100)
    assert (sim.q == same.q).all()
    assert (sim.v == same.v).all()
    assert (sim.last_report.contacts.force == same.last_report.contacts.force).all()


def test_warm_start_and_memory_of_every_contact_are_carried_over():
    """The impulses are those of the simulation that had all robots, contact by contact."""
    together = run(Simulator(ALL, 'compliant', friction=0.4), 200)
    fewer = with_robots(together, world('box', 'solo'))  # in another order, too
    back = with_robots(fewer, ALL)
    report, expected = fewer.last_report, together.last_report
    assert (len(report.pairs), len(expected.pairs)) == (4, 5)
    assert np.abs(report.pairs.force).max() > 1.0
    layout = together.sizes.layout
    for name in ('solo',):
        part, whole = (
            next(p for p in parts_of(sim.robot) if p.name == name) for sim in (back, together)
        )
        for field in ('impulse', 'memory_start'):
            start, stop, shape = layout[field]
            rows = 3 if field == 'impulse' else 1
            values = [
                sim.snapshot().buffer[start:stop].reshape(-1, *shape[1:])
                for sim in (back, together)
            ]
            slots = (rows * whole.contact_points[:, None] + np.arange(rows)).ravel()
            assert (values[0][slots] == values[1][slots]).all()
            assert part.contact_points.tolist() == whole.contact_points.tolist()


@pytest.mark.parametrize('terrain', ['groove', 'rough'])
def test_ground_with_several_features_and_moments(terrain):
    settings = {'terrain': terrain, 'torsional_friction': 0.01, 'rolling_friction': 0.005}
    alone = run(Simulator(GO1, friction=0.6, **settings), 120)
    more = with_robots(alone, world('', 'ball'))
    run(alone, 80), run(more, 80)
    assert_same(more, alone, '')
    assert np.unique(more.friction) == pytest.approx([0.6])
    assert np.unique(more.torsional_friction) == pytest.approx([0.01])


def test_efforts_on_their_way_to_slow_actuators_stay():
    slow = GO1.with_actuators(None, delay=np.full(12, 0.004), time_constant=np.full(12, 0.01))
    slower = SOLO.with_actuators(None, delay=np.full(12, 0.007))
    alone = run(Simulator(slow), 100)
    more = with_robots(alone, joined({'': slow, 'solo': slower}, {'solo': (2.0, 0.0, 0.0)}))
    back = with_robots(more, slow)
    run(alone, 50), run(more, 50), run(back, 50)
    assert_same(more, alone, '')
    assert_same(back, alone, '')


def test_constraints_hold_where_they_held():
    anchor = FrameAnchor('trunk', name='stand')
    alone = run(Simulator(GO1, constraints=[anchor]), 50)
    run(alone, 50)
    more = with_robots(alone, world('', 'box'))
    assert more.constraints == alone.constraints
    assert more.given_constraints == (anchor,)
    run(alone, 50), run(more, 50)
    assert_same(more, alone, '')
    with pytest.raises(UnknownName):
        with_robots(more, world('box'))
    more.remove_constraint('stand')
    assert with_robots(more, world('box')).constraints == ()


def test_settings_are_those_of_the_simulation():
    sim = Simulator(GO1, friction=0.3, restitution=0.2, gravity=(0.1, 0.0, -3.0), time_step=5e-4)
    sim.baumgarte, sim.restitution_threshold, sim.shadow = 0.1, 0.2, ['sap']
    run(sim, 20)
    more = with_robots(sim, world('', 'ball'))
    for name in ('time', 'step_count', 'time_step', 'baumgarte', 'restitution_threshold',
                 'shadow', 'contact_model', 'terrain', 'integrator'):  # fmt: skip
        assert getattr(more, name) == getattr(sim, name)
    assert (more.gravity == sim.gravity).all()
    assert np.unique(more.friction) == pytest.approx([0.3])
    assert np.unique(more.restitution) == pytest.approx([0.2])
    assert more.last_report.time == sim.last_report.time


def test_new_robots_start_as_given():
    sim = run(Simulator(GO1), 10)
    q = BOX.reference_configuration().copy()
    q[:3] = 0.3, 0.4, 2.0
    v = np.array([0.0, 1.0, 0.0, 0.0, 0.0, 2.0])
    more = with_robots(sim, world('', 'box'), {'box': q}, {'box': v})
    box = parts_of(more.robot)[1]
    assert (more.q[box.q] == q).all()
    assert (more.v[box.v] == v).all()
    run(more, 100)
    time = 100 * more.time_step
    fallen = 0.5 * 9.81 * time * (time + more.time_step)  # of the semi-implicit rule
    assert more.q[box.q][2] == pytest.approx(2.0 - fallen, abs=1e-9)
    for states in ({'': GO1.reference_configuration()}, {'nobody': q}):
        with pytest.raises(UnknownName):
            with_robots(sim, world('', 'box'), states)
    with pytest.raises(InvalidInput, match='make a new Simulator'):
        with_robots(sim, world('solo', 'box'))
    with pytest.raises(InvalidInput):
        with_robots(sim, world('', 'box'), {'box': np.full(7, np.nan)})


def test_a_simulation_adopts_what_has_been_built_meanwhile():
    """It may step between the building and the adoption, and keeps its observers."""
    sim, other = (run(Simulator(GO1), 30) for _ in range(2))
    steps = []

    class Observer:
        def before_step(self, wrenches):
            pass

        def after_step(self):
            steps.append(sim.time)

    sim.add_observer(Observer())
    new = successor(sim, world('', 'box'))
    run(sim, 20), run(other, 50)
    carry_over(sim, new)
    adopt(sim, new)
    run(sim, 30)
    assert len(steps) == 50
    assert_same(sim, other, '')
    assert len(parts_of(sim.robot)) == 2


def test_robots_that_touch_go_on_touching():
    """A box on a box, to which a ball comes: contacts of bodies get other numbers of pairs."""
    robots = {'low': BOX, 'high': BOX}
    pair = joined(robots, against_each_other=True)
    q = pair.reference_configuration().copy()
    q[2], q[9] = 0.05, 0.15
    sim = Simulator(pair)
    sim.reset(q)
    for _ in range(200):
        sim.step([])
    three = joined({'ball': BALL, **robots}, {'ball': (1.0, 0.0)}, against_each_other=True)
    more = with_robots(sim, three)
    for _ in range(100):
        sim.step([]), more.step([])
    assert len(sim.last_report.pairs) >= 8
    for name in robots:
        assert_same(more, sim, name)
    iterations = more.last_report.solver.iterations
    assert iterations == sim.last_report.solver.iterations


def test_one_robot_without_a_name_keeps_its_names():
    robot = world('', 'box')
    assert {'trunk', 'box/box'} <= {frame.name for frame in robot.pinocchio_model.frames}
    assert robot.joint_names == GO1.joint_names
    first, box = parts_of(robot)
    assert first.own(['trunk', 'box/box']) == ('trunk',)
    assert box.own(['trunk', 'box/box']) == ('box',)
    assert (first.alone, box.alone, parts_of(GO1)[0].alone) == (False, False, True)
    assert first.qualified_name('trunk') == 'trunk'
    text = '<robot name="odd"><link name="box/base"><inertial><mass value="1"/><inertia '
    text += 'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    with pytest.raises(InvalidInput, match='give that one another name'):
        joined({'': load_robot(text, feet=()), 'box': BOX})
