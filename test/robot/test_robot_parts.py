"""Where each of several robots is in what all of them share."""

import numpy as np
import pytest
from robots import sled

from contact_sim import InvalidInput, Simulator, joined, load_robot, loose_ball
from contact_sim.robot._several_robots import map_robots, parts_of

GO1, SLED = load_robot('go1').with_body_contacts(['trunk'], most=8), sled()
PAIR = joined({'a': GO1, 'sled': SLED, 'b': GO1}, {'b': (2.0, 1.0, 0.7)})


def test_a_robot_alone_is_one_part_without_a_name():
    (part,) = parts_of(GO1)
    assert (part.name, part.robot, part.number) == ('', GO1, 0)
    assert (part.q, part.v, part.joints) == (slice(0, 19), slice(0, 18), slice(0, 12))
    assert part.contact_points.tolist() == list(range(len(GO1.contact_points)))
    assert part.qualified_name('FL_foot') == 'FL_foot'
    assert part.own(['FL_foot', 'x/y']) == ('FL_foot', 'x/y')


def test_parts_lie_where_the_joined_model_has_them():
    parts = parts_of(PAIR)
    assert [part.name for part in parts] == ['a', 'sled', 'b']
    for part in parts:
        assert (part.q, part.v, part.joints) == PAIR.of(part.name)
        names = [PAIR.contact_points[k].name for k in part.contact_points]
        assert names == [part.qualified_name(point.name) for point in part.robot.contact_points]
        assert part.own(PAIR.joint_names) == part.robot.joint_names
    every = np.concatenate([part.contact_points for part in parts])
    assert sorted(every) == list(range(len(PAIR.contact_points)))


def test_a_world_in_which_nothing_changes_is_the_same():
    assert map_robots(PAIR, lambda part: part.robot) is PAIR
    assert map_robots(GO1, lambda part: part.robot) is GO1


def test_robots_are_changed_at_their_places():
    weak = map_robots(
        PAIR,
        lambda p: p.robot.with_actuators(effort_limit=5.0) if p.name == 'b' else p.robot,
    )
    assert weak.effort_limit[PAIR.of('b')[2]] == pytest.approx(5.0)
    assert np.array_equal(weak.effort_limit[:12], PAIR.effort_limit[:12])
    assert np.array_equal(weak.reference_configuration(), PAIR.reference_configuration())
    assert weak.name == PAIR.name
    alone = map_robots(GO1, lambda part: part.robot.with_actuators(effort_limit=5.0))
    assert alone.effort_limit == pytest.approx(5.0)


TABLE = """<robot name="table"><link name="world"/><link name="top"><inertial><mass value="5"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial><collision>
<origin xyz="0 0 -0.1"/><geometry><box size="1 0.6 0.2"/></geometry></collision></link>
<joint name="fixed" type="fixed"><parent link="world"/><child link="top"/></joint>
<link name="lamp"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0"
iyz="0"/></inertial></link><joint name="swings" type="continuous"><parent link="top"/>
<child link="lamp"/><axis xyz="0 0 1"/></joint></robot>"""


def test_what_is_fixed_to_the_world_stands_at_its_place():
    """A ball lies on a table that stands elsewhere, higher and turned, and not where it was."""
    table = load_robot(TABLE, floating_base=False, feet=(), body_contacts=False)
    ball = loose_ball(0.1, 1.0)
    places = {'table': (3.0, 1.0, np.pi / 2, 0.7, 0.0, 0.0), 'ball': (3.0, 1.4)}
    world = joined({'table': table, 'ball': ball}, places, against_each_other=True)
    assert world.parts[0].placement.translation.tolist() == [3.0, 1.0, 0.7]
    sim = Simulator(world)
    q, at = world.reference_configuration().copy(), world.of('ball')[0].start
    for y, rests in ((1.4, True), (1.6, False)):  # turned, it reaches 0.5 m along y
        q[at : at + 3] = 3.0, y, 0.85
        sim.reset(q)
        for _ in range(300):
            sim.step([0.0])
        height = sim.q[at + 2]
        assert height == pytest.approx(0.8, abs=1e-6) if rests else height < 0.6
    tilted = joined(
        {'table': table, 'ball': ball}, {'table': (0.0, 0.0, 0.0, 0.7, 0.1, 0.0)},
        against_each_other=True,
    )  # fmt: skip
    sim = Simulator(tilted)
    q[at : at + 3] = 0.0, 0.0, 0.7 + 0.1 / np.cos(0.1)
    sim.reset(q)
    for _ in range(200):
        sim.step([0.0])
    time = 200 * sim.time_step
    down = 5.0 / 7.0 * 9.81 * np.sin(0.1)  # rolling, theory of a sphere on a slope
    way = -0.5 * down * time * (time + sim.time_step) * np.cos(0.1)
    assert sim.q[at + 1] == pytest.approx(way, abs=1e-4)
    with pytest.raises(InvalidInput, match='of a fixed base'):
        joined({'ball': ball}, {'ball': (0.0, 0.0, 0.0, 1.0, 0.0, 0.0)})
