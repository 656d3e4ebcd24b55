"""The session of the live page: what each command does to the simulation."""

import time
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from robots import ball

import contact_sim
from contact_sim import InvalidInput, NonFiniteState, Simulator, UnknownName, load_robot
from contact_sim.view._session import RATE, LiveSession, Motions, own_controller

G = 9.81


@pytest.fixture(scope='module')
def go1():
    return load_robot('go1')


@pytest.fixture
def open_session():
    """Return what makes a session that stands still; all end with the test."""
    made = []

    def make(sim, **named):
        made.append(LiveSession(sim, **{'speed': 0.0, 'paused': True} | named))
        return made[-1]

    yield make
    for session in made:
        session.close()


@pytest.fixture
def standing(go1, open_session):
    sim = Simulator(go1)
    return open_session(sim), sim


@pytest.fixture
def afloat(open_session):
    """Return the session of a ball of 2 kg without gravity."""
    sim = Simulator(ball(mass=2.0), gravity=0.0)
    session = open_session(sim)
    session.drop(1.0)
    return session, sim


def wait_until(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_time_stands_still_while_nobody_looks(open_session):
    keep_drawing = pytest.importorskip('contact_sim.view._page').keep_drawing
    sim = Simulator(ball(mass=2.0))
    session = open_session(sim, paused=False)
    wait_until(lambda: sim.step_count > 10)  # a session without a page never waits
    server = SimpleNamespace(get_clients=dict)
    looks = iter([True, False])
    keep_drawing(server, lambda seconds: None, lambda: next(looks), session.watch)
    session.set_friction(0.7)
    number = sim.step_count
    time.sleep(0.1)
    assert sim.step_count == number
    session.step(3)
    session.resume()
    assert sim.step_count == number + 3
    session.set_waiting(False)
    assert not session.settings().waits
    wait_until(lambda: sim.step_count > number + 10)
    session.set_waiting(True)
    server.get_clients = lambda: {0: None}
    looks = iter([True, False])
    keep_drawing(server, lambda seconds: None, lambda: next(looks), session.watch)
    number = sim.step_count
    wait_until(lambda: sim.step_count > number + 10)


@pytest.mark.parametrize(('cost', 'pictures'), [(1e-3, 60), (8e-3, 60), (20e-3, 25)])
def test_sixty_pictures_per_second_where_they_take_less_than_half_of_the_time(
    monkeypatch, cost, pictures
):
    keep_drawing = pytest.importorskip('contact_sim.view._page').keep_drawing
    clock = [0.0]

    def spend(seconds):
        clock[0] += seconds

    fake = SimpleNamespace(perf_counter=lambda: clock[0], sleep=spend)
    monkeypatch.setattr('contact_sim.view._page.time', fake)
    drawn = []

    def draw(seconds):
        drawn.append(seconds)
        spend(cost)

    server = SimpleNamespace(get_clients=lambda: {0: None})
    keep_drawing(server, draw, lambda: clock[0] < 10.0)
    assert len(drawn) / 10.0 == pytest.approx(pictures, abs=0.5)


def test_another_terrain_and_back(standing):
    session, sim = standing
    session.step(5)
    session.set_terrain('stairs', 0.3)
    stairs = session.latest() and session.ground
    assert stairs is sim.terrain
    assert sim.time == 0.0
    distance = stairs.signed_distance(sim.last_report.contacts.position)
    assert np.abs(distance).max() < 1e-3
    session.step(2)
    for terrain, difficulty, error in (('stars', 0.3, UnknownName), ('rough', 7.0, InvalidInput)):
        with pytest.raises(error):
            session.set_terrain(terrain, difficulty)
        assert sim.terrain is stairs
    assert sim.step_count == 2
    session.set_terrain('plane')
    assert session.latest().report.time == 0.0
    assert session.ground is sim.terrain is not stairs
    assert set(session.capabilities.terrains) == set(contact_sim.terrains())


def test_steps_are_counted_and_time_stands_still_after_them(standing):
    session, sim = standing
    session.step(7)
    session.step()
    assert sim.step_count == 8
    time.sleep(0.05)
    assert session.latest().report.time == sim.time == pytest.approx(8e-3, abs=1e-15)
    assert session.latest().step_seconds > 0.0
    session.resume()
    wait_until(lambda: sim.time > 0.1)
    session.pause()
    stopped = sim.time
    time.sleep(0.05)
    assert sim.time == stopped
    assert session.settings().paused


def test_a_push_changes_the_momentum_by_force_times_duration(afloat):
    session, sim = afloat
    session.push('body', (3.0, -1.0, 0.5), (0.0, 0.0, 0.0), 0.05)
    session.step(1)
    np.testing.assert_array_equal(session.latest().wrenches['body'], [3, -1, 0.5, 0, 0, 0])
    session.step(60)
    np.testing.assert_allclose(sim.v[:3], 0.05 / 2.0 * np.array([3.0, -1.0, 0.5]), rtol=1e-12)
    assert session.latest().wrenches == {}
    session.push('body', (0.0, 0.0, 0.0), (0.0, 0.0, 0.008), 0.05)
    session.step(60)
    assert sim.v[5] == pytest.approx(0.008 * 0.05 / (0.4 * 2.0 * 0.1**2), rel=1e-12)


def test_a_drag_is_a_critically_damped_spring(afloat):
    session, sim = afloat
    session.set_time_step(1e-4)
    start = sim.q[:3].copy()
    session.drag('body', start + [0.2, 0.0, 0.1])
    for seconds in (0.05, 0.1, 0.2):
        session.step(round((seconds - sim.time) / 1e-4))
        left = (1.0 + RATE * seconds) * np.exp(-RATE * seconds)  # of x″ = −ω² x − 2 ω x′
        moved = (1.0 - left) * np.array([0.2, 0.0, 0.1])
        np.testing.assert_allclose(sim.q[:3] - start, moved, atol=0.2 * RATE * 1e-4)
    session.drag('body', None)
    session.step(1)
    speed = sim.v.copy()
    session.step(10)
    np.testing.assert_allclose(sim.v, speed, atol=1e-15)


def test_what_is_dragged_at_a_foot_is_light(go1, open_session):
    sim = Simulator(go1, gravity=0.0)
    session = open_session(sim)
    session.drop(1.0)
    session.drag('FL_foot', sim.frame_placement('FL_foot').translation + [0.0, 0.0, 0.05])
    session.step(1)
    foot = session.latest().wrenches['FL_foot'][2] / (RATE**2 * 0.05)
    session.drag('trunk', sim.frame_placement('trunk').translation + [0.0, 0.0, 0.05])
    session.step(1)
    trunk = session.latest().wrenches['trunk'][2] / (RATE**2 * 0.05)
    inertia = pin.crba(go1.pinocchio_model, go1.pinocchio_model.createData(), sim.q)
    assert 0.0 < foot < 0.1 * trunk < 0.1 * np.triu(inertia)[0, 0] < 0.1 * 1.01 * go1.total_mass


def test_the_contact_model_changes_and_the_state_stays(standing):
    session, sim = standing
    session.step(20)
    q, v = sim.q.copy(), sim.v.copy()
    for model in contact_sim.contact_models():
        session.set_contact_model(model)
        assert session.settings().contact_model == sim.contact_model == model
        np.testing.assert_array_equal(sim.q, q)
        np.testing.assert_array_equal(sim.v, v)
    session.set_contact_model('sap')
    session.step(1)
    other = Simulator(session.robot, 'sap')
    other.reset(q, v)
    hold = Motions(session.robot).start('hold', session.robot.reference_configuration(), 0.0, 0.0)
    report = other.step(hold.effort(0.0, other.q, other.v))
    np.testing.assert_array_equal(session.latest().report.v, report.v)


def test_settings_act_between_two_steps(standing):
    session, sim = standing
    session.set_friction(0.25)
    session.set_restitution(0.5)
    session.set_time_step(5e-4)
    session.set_speed(0.5)
    session.step(1)
    chosen = session.settings()
    assert (chosen.friction, chosen.restitution, chosen.time_step) == (0.25, 0.5, 5e-4)
    assert chosen.speed == 0.5
    np.testing.assert_array_equal(session.latest().report.record.friction[:4], 0.25)
    assert sim.time == 5e-4


def test_what_cannot_be_done_is_said_and_changes_nothing(standing):
    session, sim = standing
    before, state = session.settings(), sim.snapshot().buffer
    refused = [
        (lambda: session.set_contact_model('newton'), UnknownName, 'newton'),
        (lambda: session.set_friction(-0.1), InvalidInput, 'friction'),
        (lambda: session.set_restitution(1.5), InvalidInput, 'restitution'),
        (lambda: session.set_time_step(0.0), InvalidInput, 'time_step'),
        (lambda: session.set_speed(-1.0), InvalidInput, 'speed'),
        (lambda: session.set_pose('sitting on a chair'), UnknownName, 'pose'),
        (lambda: session.set_shadows(['sap', 'sap']), InvalidInput, 'only once'),
        (lambda: session.set_controller('dance'), UnknownName, 'dance'),
        (lambda: session.set_velocity(np.nan, 0.0, 0.0), InvalidInput, 'forward'),
        (lambda: session.push('tail', (1, 0, 0), (0, 0, 0), 1.0), UnknownName, 'tail'),
        (lambda: session.push('trunk', (1, 0), (0, 0, 0), 1.0), InvalidInput, 'force'),
        (lambda: session.push('trunk', (1, 0, 0), (0, 0, 0), 0.0), InvalidInput, 'duration'),
        (lambda: session.drag('tail', (0, 0, 0)), UnknownName, 'tail'),
        (lambda: session.drop(-1.0), InvalidInput, 'height'),
        (lambda: session.step(0), InvalidInput, 'steps'),
    ]
    for command, error, said in refused:
        with pytest.raises(error, match=said):
            command()
    assert session.settings() == before
    np.testing.assert_array_equal(sim.snapshot().buffer, state)
    session.step(1)
    assert session.latest().failure == ''


def test_drop_pose_and_reset(open_session):
    sim = Simulator(load_robot('quadruped'))
    session = open_session(sim)
    on_ground = sim.q[2]
    session.drop(0.3)
    assert sim.q[2] == pytest.approx(on_ground + 0.3, abs=1e-12)
    session.step(100)
    assert sim.v[2] == pytest.approx(-G * 0.1, rel=1e-3)  # legs that hold their pose fall along
    session.set_pose('crouching')
    crouching = sim.standing_configuration('crouching')
    np.testing.assert_array_equal(sim.q, crouching)
    assert crouching[2] < on_ground
    assert session.settings().pose == 'crouching'
    session.step(500)
    assert sim.q[2] == pytest.approx(crouching[2], abs=0.02)  # it is held there
    session.reset()
    np.testing.assert_array_equal(sim.q, crouching)
    assert sim.time == 0.0
    assert session.latest().report.time == 0.0


def test_a_state_that_is_not_finite_stands_still_until_a_reset(afloat):
    session, sim = afloat
    session.push('body', (1e99, 0.0, 0.0), (0.0, 0.0, 0.0), 5.0)
    session.resume()
    wait_until(lambda: session.latest().failure)
    assert 'finite' in session.latest().failure
    with pytest.raises(NonFiniteState):
        session.step(1)
    session.reset()
    session.step(5)
    assert session.latest().failure == ''
    assert sim.step_count == 5


def test_shadows_carry_the_robot_as_well(go1, standing):
    session, _ = standing
    session.set_shadows(['sap', 'lcp'])
    session.step(2000)
    shown = session.latest()
    assert set(shown.shadows) == {'sap', 'lcp'}
    rigid, soft = (shown.shadows[name].contacts.force[:, 2].sum() for name in ('lcp', 'sap'))
    weight = go1.total_mass * G
    assert rigid == pytest.approx(weight, rel=1e-3)
    assert 0.0 < soft < 0.9 * weight  # of springs that nothing has compressed yet
    session.set_shadows([])
    session.step(1)
    assert session.latest().shadows == {}


def test_the_controllers_of_the_package(standing):
    session, sim = standing
    names = 'hold', 'stand', 'squat', 'sway', 'trot', 'balance'
    assert session.capabilities.controllers == names
    session.set_controller('stand')
    session.step(500)
    height = sim.q[2]
    session.set_controller('squat', amplitude=0.04, frequency=1.0)
    session.step(1500)  # grown after 1 s; half a period later at the bottom
    assert sim.q[2] == pytest.approx(height - 2 * 0.04, abs=4e-3)
    session.set_controller('trot')
    session.set_velocity(0.4, 0.0, 0.0)
    start = sim.q[0]
    session.step(3000)
    assert sim.q[0] - start == pytest.approx(0.4 * 2.5, rel=0.2)  # after standing and speeding up
    assert session.settings().velocity == (0.4, 0.0, 0.0)
    assert session.take_messages() == []


def test_a_fixed_base_is_only_held(open_session):
    session = open_session(Simulator(load_robot('double_pendulum')))
    assert session.capabilities.controllers == ('hold',)
    session.step(10)
    assert session.latest().failure == ''


def late_failure(time, q, v):
    if time > 0.01:
        raise ZeroDivisionError('my own mistake')
    return np.zeros(12)


class Kneel:
    def __init__(self, robot):
        self.robot = robot

    def effort(self, time, q, v):
        return np.full(self.robot.n_joints, np.nan if time > 0.005 else 0.0)


@pytest.mark.parametrize(
    ('name', 'said'), [('late_failure', 'my own mistake'), ('Kneel', 'effort of joint')]
)
def test_a_controller_that_fails_is_replaced_and_says_why(go1, open_session, name, said):
    motions = Motions(go1, own_controller(f'{__name__}:{name}'))
    session = open_session(Simulator(go1), motions=motions)
    assert session.capabilities.controllers[-1] == name
    session.set_controller(name)
    session.step(5)
    assert session.settings().controller == name
    session.step(45)
    assert session.settings().controller == 'hold'
    (message,) = session.take_messages()
    assert name in message
    assert said in message
    assert session.latest().failure == ''
    assert session.take_messages() == []


@pytest.mark.parametrize('place', ['nothing', 'no.such.module:one', f'{__name__}:G', ':x'])
def test_no_controller_there(place):
    with pytest.raises(InvalidInput, match='controller'):
        own_controller(place)


def test_a_closed_session_says_so(standing):
    session, _ = standing
    session.close()
    with pytest.raises(InvalidInput, match='ended'):
        session.step(1)
