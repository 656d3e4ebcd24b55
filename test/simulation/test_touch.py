"""Links that must not touch the ground."""

from types import SimpleNamespace

import numpy as np
import pytest

from contact_sim import InvalidInput, Planes, Simulator, UnknownName, load_robot
from contact_sim.simulation._report import TouchGuard
from contact_sim.testing._trial import TrajectoryFailure
from contact_sim.topics._robot_topics import published_links

GO1 = load_robot('go1')
BODY = GO1.with_body_contacts(['trunk', 'FL_calf', 'RL_thigh'], most=8)


def fall(sim, links, seconds=2.0):
    """Return the first touch of links of a robot that nobody holds, and all reports up to it."""
    guard, reports = TouchGuard(sim.robot, links), []
    for _ in range(round(seconds / sim.time_step)):
        reports.append(sim.step(np.zeros(sim.robot.n_joints)))
        touch = guard.touch(reports[-1])
        if touch is not None:
            return touch, reports
    return None, reports


@pytest.mark.parametrize('terrain', ['plane', Planes((((0, 0, 1), 0.0), ((1, 0, 0), -5.0)))])
def test_the_first_touch_is_told_with_link_time_and_force(terrain):
    sim = Simulator(BODY, terrain=terrain)
    touch, reports = fall(sim, ['trunk', 'RL_thigh'])
    assert touch.link in ('trunk', 'RL_thigh')
    assert touch.time == sim.time
    force = [report.pairs.load_on([touch.link]) for report in reports]
    assert touch.force == pytest.approx(force[-1])
    assert touch.force > 0.0
    assert not any(force[:-1])
    assert str(touch).startswith(f'{touch.link} touches the ground at t = {touch.time:.9g} s with')


def test_feet_are_links_too_by_whichever_name():
    joints = [f'{leg}_foot_fixed' for leg in ('FR', 'FL', 'RR', 'RL')]
    sim = Simulator(load_robot('go1', feet=joints))
    for name in ('FL_foot', 'FL_foot_fixed'):
        sim.reset()
        touch, reports = fall(sim, [name])
        assert touch.link == name
        assert touch.force == pytest.approx(reports[-1].contacts.normal_force[1])
    assert fall(sim, [], 0.01)[0] is None


def test_links_that_cannot_touch_are_refused():
    with pytest.raises(UnknownName, match="'trunk'"):
        TouchGuard(load_robot('go1', body_contacts=False), ['trunk'])
    with pytest.raises(InvalidInput, match='expected a list of names of links'):
        TouchGuard(BODY, 'trunk')


def test_a_trial_ends_with_the_reason(trial):
    run = trial(lambda *_: np.zeros(12), sim=Simulator(BODY), end_on_contact=['trunk'])
    with pytest.raises(
        TrajectoryFailure, match=r'^trunk touches the ground at t = .* N$'
    ) as failure:
        run.advance(3.0)
    trajectory = run.trajectory
    assert failure.value.time == trajectory.time[-1] < 2.0


def test_links_have_the_solids_of_their_geometry():
    links = published_links(BODY)
    assert [link.name for link in links] == ['trunk', 'FL_calf', 'RL_thigh']
    solids = [solid.frame for solid in BODY.collisions.solids]
    trunk, thigh = solids.index('trunk'), solids.index('RL_thigh')
    pairs = SimpleNamespace(
        normal_force=np.array([1.0, 2.0, 4.0, 8.0]),
        solids=np.array([[trunk, -1], [thigh, -1], [thigh, -1], [thigh, trunk]]),
    )
    contacts = SimpleNamespace(normal_force=np.zeros(4))
    report = SimpleNamespace(contacts=contacts, pairs=pairs, time=1.0)
    assert TouchGuard(BODY, ['RL_thigh', 'trunk']).touch(report).force == 6.0
