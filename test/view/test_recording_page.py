"""A recording in the page: every step that is shown is the recorded one."""

import socket
import threading
import time

import numpy as np
import pytest

from contact_sim import InvalidInput, Simulator, load_robot
from contact_sim.errors import ContactSimError
from contact_sim.replay import Recorder, Recording
from contact_sim.replay._event_detection import LIFT_OFF, MODEL, PUSH, TOUCH_DOWN

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view.__main__ import main
from contact_sim.view._playback import Playback, RecordingPage
from contact_sim.view._process import address_of
from contact_sim.view._saved import quiet_server

H, STEPS = 1e-3, 400
BOX = """<robot name="box"><link name="body">
<inertial><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/>
</inertial><visual><geometry><box size="0.2 0.2 0.2"/></geometry></visual></link></robot>"""
"""A body that touches the ground with its middle."""
PUSHED = {'body': [40.0, 0.0, 0.0, 0.0, 0.0, 0.0]}


@pytest.fixture(scope='module')
def run(tmp_path_factory):
    """Return the file of a run, and the report of every step, the first state included."""
    path = tmp_path_factory.mktemp('recording') / 'run.npz'
    sim = Simulator(load_robot(BOX, feet=['body']), friction=0.4)
    q = sim.q.copy()
    q[2] += 0.02
    sim.reset(q)
    reports = [sim.last_report]
    with Recorder(sim, path, chunk=150):
        for k in range(STEPS):
            if k == 250:
                sim.contact_model = 'lcp'
            reports.append(sim.step([], PUSHED if 150 <= k < 200 else None))
    return path, reports


@pytest.fixture
def opened(run):
    """Return the page of the run beside another model, and where it is in it."""
    playback = Playback(Recording(run[0]), 'todorov')
    with quiet_server() as server:
        server.scene.configure_default_lights(cast_shadow=False)  # the processor draws
        yield RecordingPage(server, playback), playback, server
    playback.close()


def until(true, seconds=90.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def until_read(playback):
    """Wait until both runs have been read to their ends."""
    readers = [reader for reader in (playback.reader, playback.other) if reader is not None]
    until(lambda: all(reader.survey or reader.failure for reader in readers))
    assert [reader.failure for reader in readers] == [''] * len(readers)


def shown_is(frame, report):
    """Check that a page shows exactly this step."""
    shown = frame.recorded.report
    assert np.abs(shown.q - report.q).max() <= 1e-12
    assert np.abs(shown.v - report.v).max() <= 1e-12
    assert np.abs(shown.contacts.force - report.contacts.force).max() <= 1e-12
    assert shown.record.buffer.tobytes() == report.record.buffer.tobytes()


def drawn_at(server, name='scene'):
    """Return where the body is drawn, in its scene [m], (3,)."""
    node = server.scene._handle_from_node_name[f'/{name}/meshes/0']
    return np.array(node.batched_positions[0])


def test_the_page_shows_the_recorded_steps_in_any_order(run, opened):
    page, playback, server = opened
    until_read(playback)
    for k in (137, 3, STEPS, 250, 251, 0, 180, 150, 1):
        page.panel.slider.value = k  # as the page does; then the callback of a browser
        page.panel._scrub(k)
        frame = page.draw()
        assert frame.recorded.step == k
        shown_is(frame, run[1][k])
        np.testing.assert_array_equal(drawn_at(server), run[1][k].q[:3].astype(np.float32))
        assert frame.recorded.wrenches == (PUSHED if 150 < k <= 200 else {})


def test_another_model_is_drawn_beside_the_run_or_in_it(run, opened):
    page, playback, server = opened
    until_read(playback)
    playback.seek(60)  # on the ground since 0.02 m = g t²/2, t = 0.064 s: the soft one is lower
    playback.seek(120)
    frame = page.draw()
    assert frame.other.contact_model == 'todorov'
    assert frame.other.report.q[2] < frame.recorded.report.q[2] - 1e-7
    np.testing.assert_array_equal(drawn_at(server, 'other'), frame.other.report.q[:3].astype('f'))
    first, other = page.scenes.scenes()
    assert not other.offset.any()
    page.panel.side_by_side.value = True
    page.draw()
    assert other.offset[1] > 0.2
    assert not first.offset.any()  # nobody has pushed it yet
    playback.seek(230)
    page.draw()
    home = run[1][120].q[:2]
    np.testing.assert_array_equal(first.offset[:2], home - run[1][230].q[:2])
    assert first.offset[0] < -0.01
    np.testing.assert_allclose(other.offset[0], first.offset[0])
    playback.show_model(None)
    page.draw()
    assert page.scenes.scenes() == [first]
    playback.show_model('ncp')
    until_read(playback)
    playback.seek(240)
    frame = page.draw()  # the recorded model until step 250
    assert frame.other.report.q.tobytes() == frame.recorded.report.q.tobytes()


def test_single_steps_events_and_time(run, opened):
    _, playback, _ = opened
    until(lambda: playback.reader.survey and playback.reach == STEPS)
    falling = next(n for n in range(1, 100) if 9.81 * H**2 * n * (n + 1) / 2 >= 0.02)
    assert playback.next((TOUCH_DOWN,)).step == playback.step == falling
    playback.take(1)
    assert playback.step == falling + 1
    playback.take(-2)
    assert playback.frame().recorded.step == falling - 1
    assert playback.next((PUSH,)).step == 151
    assert playback.next((PUSH,)).step == 201
    assert playback.next((LIFT_OFF,)) is None
    assert playback.step == 201
    assert playback.previous((PUSH,)).step == 151
    assert playback.next((MODEL,)).text == 'contact model lcp'
    assert playback.step == 251
    playback.seek(100)
    playback.speed = 0.5
    playback.advance(1.0)  # it stands still
    assert playback.step == 100
    playback.toggle()
    playback.advance(0.1)
    assert playback.step == 150
    playback.advance(1.0)
    assert (playback.step, playback.playing) == (STEPS, False)
    playback.toggle()
    assert (playback.step, playback.playing) == (0, True)


def test_what_a_panel_says_of_a_step(run, opened):
    page, playback, _ = opened
    until_read(playback)
    playback.seek(180)
    page.draw()
    assert 'step 180 of 400' in page.panel._state.content
    force = np.linalg.norm(run[1][180].contacts.force[0])
    assert f'| body [N] | {force:.4g} slip |' in page.panel._numbers.content
    plots = page.panel._plots._plots
    force_plot = plots[0][0].data
    np.testing.assert_allclose(force_plot[0], H * np.arange(1, STEPS + 1), atol=1e-12)
    expected = [np.linalg.norm(report.contacts.force[0]) for report in run[1][1:]]
    np.testing.assert_allclose(force_plot[1], expected, rtol=1e-14)
    assert np.flatnonzero(force_plot[-1] == force_plot[-1].max()).tolist() == [179]
    assert [handle.title for handle, _ in plots] == [
        'force on the feet [N]', 'residuals, powers of 10', 'energy since the beginning [mJ]',
    ]  # fmt: skip
    assert 10.0 <= np.abs(plots[2][1][1:]).max() < 1e4
    for handle, _ in plots:
        assert np.isfinite(handle.data).all()


def test_the_time_line_in_a_browser(run, opened, browser_page):
    page, _, server = opened
    drawn, stop = [], threading.Event()
    page.draw, draw = lambda: drawn.append(draw()), page.draw
    thread = threading.Thread(target=page.run, args=(lambda: not stop.is_set(),))
    thread.start()
    try:
        browser_page.set_viewport_size({'width': 1000, 'height': 700})  # room for the panel
        browser_page.goto(address_of('localhost', server.get_port()))
        browser_page.get_by_text('step 0 of 400').wait_for()
        box = browser_page.locator('input[type="text"]:visible').first
        for k in (222, 17):
            box.fill(str(k))
            box.press('Enter')
            browser_page.get_by_text(f'step {k} of 400').wait_for()
            shown_is(drawn[-1], run[1][k])
        browser_page.get_by_role('button', name='step forward').click()
        browser_page.get_by_text('step 18 of 400').wait_for()
        shown_is(drawn[-1], run[1][18])
        browser_page.get_by_role('button', name='next event').click()
        until(lambda: drawn[-1].recorded.step > 18)
        assert drawn[-1].recorded.report.contacts.normal_force[0] > 0.0  # it touches down
    finally:
        stop.set()
        thread.join()


def test_a_change_that_cannot_be_made_ends_what_is_shown(run, tmp_path):
    with np.load(run[0]) as file:
        arrays = dict(file)
    events = str(arrays['steps-0000000150/events']).replace('contact_model', 'magic')
    arrays['steps-0000000150/events'] = np.array(events)
    np.savez(tmp_path / 'magic.npz', **arrays)
    playback = Playback(Recording(tmp_path / 'magic.npz'))
    until(lambda: playback.reader.failure)
    assert 'before step 251 cannot be made' in playback.reader.failure
    with pytest.raises(InvalidInput, match='before step 251'):
        playback.next()
    playback.seek(STEPS)
    shown = playback.frame().recorded
    assert 180 < shown.step == playback.reach <= 250
    assert shown.report.q.tobytes() == run[1][shown.step].q.tobytes()


# ------------------------------------------------------------- command line


def refused(capsys, *words):
    """Return the one line with which a command is refused."""
    assert main([str(word) for word in words]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    return said[0]


def test_recordings_that_cannot_be_shown(run, tmp_path, capsys):
    assert 'cannot read' in refused(capsys, tmp_path / 'none.npz')
    cut = tmp_path / 'cut.npz'
    cut.write_bytes(run[0].read_bytes()[:2000])
    assert str(cut) in refused(capsys, cut, '--save', tmp_path / 'page.html')
    with np.load(run[0]) as file:
        arrays = dict(file)
    header = str(arrays['header'])
    arrays['header'] = np.array(header.replace('"format": ', '"format": 9'))
    np.savez(tmp_path / 'later.npz', **arrays)
    assert 'is not a recording of format' in refused(capsys, tmp_path / 'later.npz')
    assert list(tmp_path.glob('*.html')) == []


@pytest.mark.parametrize(
    ('words', 'reason'),
    [
        (['--save', 'run.avi'], 'expected a file called'),
        (['--save', '/nowhere/run.html'], 'cannot write'),
        (['--save', 'run.html', '--begin', '7'], 'less than 0.4 s'),
        (['--save', 'run.html', '--duration', '0'], '--duration'),
        (['--at', '7'], 'less than 0.4 s'),
        (['--at', '-0.1'], '--at'),
        (['--speed', '-1'], '--speed'),
        (['--port', '99999999'], 'choose another port'),
    ],
)
def test_words_that_cannot_be(run, words, reason, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert reason in refused(capsys, run[0], *words)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_opens_at_a_time(run, monkeypatch):
    opened = []

    def note(page, title, options):
        until(lambda: page._playback.reach == STEPS)
        opened.append((page.draw().recorded.report.time, page.panel.slider.value))

    monkeypatch.setattr('contact_sim.view.__main__.run_page', note)
    with socket.socket() as free:
        free.bind(('localhost', 0))
        port = free.getsockname()[1]
    assert main([str(run[0]), '--at', '0.137', '--port', str(port)]) == 0
    assert opened == [(pytest.approx(0.137), 137)]


def test_a_page_is_saved(run, tmp_path, capsys):
    file = tmp_path / 'page.html'
    assert main([str(run[0]), '--model', 'sap', '--save', str(file), '--speed', '0.5']) == 0
    assert capsys.readouterr().out.strip() == str(file)
    assert file.stat().st_size > 1e5


def test_an_empty_recording(tmp_path):
    sim = Simulator(load_robot(BOX, feet=['body']))
    with Recorder(sim, tmp_path / 'empty.npz'):
        pass
    with pytest.raises(InvalidInput, match='has no step to show'):
        Playback(Recording(tmp_path / 'empty.npz'))
    with pytest.raises(ContactSimError):
        Playback(Recording(tmp_path / 'empty.npz'), 'magic')
