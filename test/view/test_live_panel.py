"""The panel of the live page, with a client in place of a browser: each switch, slider and key."""

import re
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.view._session import LiveSession

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
DOCS = Path(__file__).resolve().parents[2] / 'docs'
G = 9.81


@pytest.fixture(scope='module')
def opened():
    """Return simulation, session, a client of one page, and the page."""
    from page_client import PageClient, wait_until

    from contact_sim.view._page import Page
    from contact_sim.view._process import address_of, page_server

    sim = Simulator(load_robot('quadruped'))
    session = LiveSession(sim, speed=0.5, paused=True)
    for model in ('sap', 'lcp', 'todorov', 'anitescu'):
        session.set_contact_model(model)  # a first start compiles for longer than a test waits
    server = page_server('localhost', free(), 'test')
    ended = threading.Event()
    page = Page(server, session)
    drawing = threading.Thread(target=page.run, args=(lambda: not ended.is_set(),))
    drawing.start()
    client = PageClient(address_of('localhost', server.get_port()))
    wait_until(lambda: 'push' in client.commands and len(server.get_clients()) == 1)
    yield sim, session, client, page
    client.close()
    ended.set()
    drawing.join()
    session.close()
    server.stop()


@pytest.fixture
def live(opened, soon):
    """Return simulation, session and client, as at the beginning."""
    sim, session, client, page = opened
    session.pause()
    session.set_contact_model('ncp')
    session.set_friction(0.8)
    session.set_restitution(0.0)
    session.set_shadows([])
    session.set_speed(0.5)
    session.set_waiting(True)
    session.set_velocity(0.0, 0.0, 0.0)
    session.set_controller('hold')
    session.set_time_step(1e-3)
    session.set_pose('standing')
    client.notes.clear()
    panel = page._panel
    soon(lambda: panel._synchronised == (session.settings(), panel._worker.finished))
    return sim, session, client


def free():
    with socket.socket() as listener:
        listener.bind(('localhost', 0))
        return listener.getsockname()[1]


@pytest.fixture
def soon():
    from page_client import wait_until

    return wait_until


def drags_to(session, target):
    """Return whether the handle drags to a target [m]; a drag begins where the handle was."""
    spring = session._run.spring
    return spring is not None and np.abs(spring.target - target).max() < 1e-4


@pytest.mark.parametrize(
    ('label', 'value', 'field', 'chosen'),
    [
        ('contact model', 'sap', 'contact_model', 'sap'),
        ('friction [-]', 0.31, 'friction', 0.31),
        ('restitution [-]', 0.4, 'restitution', 0.4),
        ('time step [ms]', 0.5, 'time_step', 5e-4),
        ('speed', 0.25, 'speed', 0.25),
        ('wait without a browser', False, 'waits', False),
        ('pose', 'crouching', 'pose', 'crouching'),
        ('lcp', True, 'shadows', ('lcp',)),
        ('controller', 'squat', 'controller', 'squat'),
        ('forward', 0.3, 'velocity', (0.3, 0.0, 0.0)),
        ('turn', -0.2, 'velocity', (0.0, 0.0, -0.2)),
    ],
)
def test_inputs_set_what_they_are_called(live, soon, label, value, field, chosen):
    _, session, client = live
    client.set(label, value)
    soon(lambda: getattr(session.settings(), field) == chosen)
    assert client.notes == []


def test_each_shadow_model_has_a_switch(live, soon):
    _, session, client = live
    for label, on, shadows in (
        ('lcp', True, ('lcp',)), ('todorov', True, ('lcp', 'todorov')),
        ('lcp', False, ('todorov',)), ('todorov', False, ()),
    ):  # fmt: skip
        client.set(label, on)
        soon(lambda wanted=shadows: session.settings().shadows == wanted)
    assert client.notes == []


def test_inputs_follow_what_others_set(live, soon):
    _, session, client = live
    session.set_contact_model('anitescu')
    session.set_friction(0.6)
    session.set_shadows(['sap'])
    session.set_velocity(0.5, 0.0, 0.0)
    soon(lambda: client.value('contact model') == 'anitescu')
    soon(lambda: client.value('friction [-]') == 0.6 and client.value('sap') is True)
    soon(lambda: client.value('forward') == 0.5)
    session.set_shadows([])
    soon(lambda: client.value('sap') is False)
    assert session.settings().contact_model == 'anitescu'


def test_one_button_is_primary(live):
    client = live[2]
    buttons = [made for made in client.inputs.values() if '_icon_html' in made]
    assert len(buttons) == 6
    assert [made['label'] for made in buttons if made['color'] is None] == ['resume']


def test_another_terrain_is_drawn(live, opened, soon):
    sim, session, client = live
    page, plane = opened[3], sim.terrain
    client.set('terrain', 'stairs')
    client.set('difficulty [-]', 0.2)
    client.click('change terrain')
    soon(lambda: sim.terrain is not plane)
    scene = page._server.scene
    soon(lambda: scene.get_handle_by_name('/scene/ground/surface') is not None)
    assert scene.get_handle_by_name('/scene/ground/plane') is None
    session.set_terrain('plane')
    soon(lambda: scene.get_handle_by_name('/scene/ground/plane') is not None)
    assert client.notes == []


def test_a_click_at_an_arrow_shows_the_numbers(live, opened, soon):
    sim, session, client = live
    page = opened[3]
    session.set_terrain('plane')
    session.step(20)
    foot = sim.last_report.contacts.position[0]
    soon(lambda: page._drawn is session._run.newest[0])
    for where, shown in ((foot + [0.3, 0.0, 0.3], False), (foot + [0.0, 0.0, 0.1], True)):
        offset = page._scene.offset
        client.click_scene(offset + where + [0.0, -3.0, 0.0], [0.0, 1.0, 0.0])
        soon(lambda wanted=shown: client.value('numbers') is wanted)
    soon(lambda: page._scene.visible['numbers'])
    client.set('numbers', False)
    soon(lambda: not page._scene.visible['numbers'])


def test_the_speed_from_before_comes_back(live, soon):
    _, session, client = live
    session.set_speed(0.4)
    soon(lambda: client.value('speed') == 0.4)
    client.set('as fast as possible', True)
    soon(lambda: session.settings().speed == 0.0)
    session.set_friction(0.7)
    soon(lambda: client.value('friction [-]') == 0.7)  # the page has followed
    assert client.value('speed') == 0.4
    client.set('as fast as possible', False)
    soon(lambda: session.settings().speed == 0.4)


def test_what_is_refused_is_shown_and_taken_back(live, soon):
    _, session, client = live
    soon(lambda: client.value('friction [-]') == pytest.approx(session.settings().friction))
    before = session.settings()
    client.set('friction [-]', -1.0)
    soon(lambda: client.notes)
    assert 'friction' in client.notes[0][1]
    soon(lambda: client.value('friction [-]') == before.friction)
    assert session.settings() == before
    session.step(1)


def test_the_keys_do_what_they_are_called(live, soon):
    sim, session, client = live
    client.press('step')
    soon(lambda: sim.step_count == 1)
    client.press('drop')
    soon(lambda: sim.step_count == 0 and sim.q[2] > sim.standing_configuration()[2] + 0.29)
    client.press('pause or resume')
    soon(lambda: sim.time > 0.05)
    client.press('pause or resume')
    soon(lambda: session.settings().paused)
    client.press('reset')
    soon(lambda: sim.time == 0.0)
    for key, velocity in (
        ('forward: more', (0.1, 0, 0)), ('forward: more', (0.2, 0, 0)),
        ('sideways: more', (0.2, 0.1, 0)), ('turn: less', (0.2, 0.1, -0.1)),
        ('forward: less', (0.1, 0.1, -0.1)), ('stop', (0, 0, 0)),
    ):  # fmt: skip
        client.press(key)
        soon(lambda wanted=velocity: session.settings().velocity == pytest.approx(wanted))
    client.set('force x [N]', 7.0)
    client.set('duration [s]', 0.01)
    client.press('push')

    def pushed():
        session.step(1)
        return [wrench[0] for wrench in session.latest().wrenches.values()]

    soon(pushed)
    assert pushed() == [7.0]
    session.step(10)
    assert pushed() == []
    assert client.notes == []


def test_the_documentation_lists_every_key(opened):
    _, _, client, _ = opened
    text = (DOCS / 'viewer.md').read_text(encoding='utf-8')
    rows = dict(re.findall(r'^\| `(\w+)` \| ([^|]+?) \|$', text, re.MULTILINE))
    assert rows == {key: label for label, (_, key) in client.commands.items()}


def test_the_state_that_is_not_finite_is_said(live, soon):
    sim, session, client = live
    session.push('trunk', (1e99, 0.0, 0.0), (0.0, 0.0, 0.0), 1.0)
    client.press('pause or resume')
    soon(lambda: client.notes)
    assert 'finite' in client.notes[0][1]
    client.click('reset')
    soon(lambda: sim.time < 1.0 and session.latest().failure == '')
    soon(lambda: sim.step_count > 3)


def test_the_handle_draws_its_frame(live, opened, soon):
    sim, session, client = live
    session.drop(0.5)
    frame, worker = client.value('frame'), opened[3]._panel._worker
    before = worker.finished
    client.set('handle to drag it with', True)
    start = sim.frame_placement(frame).translation.copy()
    soon(lambda: worker.finished > before)  # or the handle comes after it was dragged
    soon(lambda: np.abs(np.subtract(client.places['/handle'], start)).max() < 1e-3)
    client.drag('/handle', tuple((start + [0.0, 0.1, 0.0]).tolist()))
    soon(lambda: drags_to(session, start + [0.0, 0.1, 0.0]))

    def pushed():
        session.step(1)
        return session.latest().wrenches.get(frame, np.zeros(6))[1]

    assert pushed() > 0.0
    session.step(500)
    moved = sim.frame_placement(frame).translation - start
    assert moved[1] == pytest.approx(0.1, abs=0.01)
    client.let_go('/handle')
    soon(lambda: pushed() == 0.0)
    client.set('handle to drag it with', False)


def test_the_picture_goes_with_the_robot(live, soon):
    sim, session, client = live
    session.push('trunk', (300.0, 100.0, 0.0), (0.0, 0.0, 0.0), 0.2)
    session.step(400)
    gone = sim.q[:2]
    assert np.abs(gone).min() > 0.01
    soon(lambda: np.abs(client.places['/scene'][:2] + gone).max() < 1e-4)
    assert client.places['/scene'][2] == 0.0  # level
    client.set('handle to drag it with', True)
    drawn = sim.frame_placement(client.value('frame')).translation
    soon(lambda: np.abs(np.subtract(client.places['/handle'][:2], drawn[:2] - gone)).max() < 1e-4)
    client.set('handle to drag it with', False)
    client.set('follow the robot', False)
    client.press('reset')
    soon(lambda: sim.time == 0.0)
    session.step(2)
    np.testing.assert_allclose(client.places['/scene'][:2], -gone, atol=1e-4)
    client.set('follow the robot', True)
    soon(lambda: np.abs(client.places['/scene']).max() < 1e-3)


def test_the_handle_means_places_in_the_world_where_the_picture_has_moved(live, soon):
    sim, session, client = live
    session.push('trunk', (300.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.2)
    session.step(400)
    frame = client.value('frame')
    client.set('handle to drag it with', True)
    soon(lambda: np.abs(client.places['/scene'][:2] + sim.q[:2]).max() < 1e-4)
    drawn_to = sim.frame_placement(frame).translation + [0.0, 0.1, 0.0]
    client.drag('/handle', tuple((client.places['/scene'] + drawn_to).tolist()))
    soon(lambda: drags_to(session, drawn_to))
    client.let_go('/handle')
    soon(lambda: session._run.spring is None)
    client.set('handle to drag it with', False)
