"""Where each of several robots is in what all of them share."""

import numpy as np
import pytest
from robots import sled

from contact_sim import joined, load_robot
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
