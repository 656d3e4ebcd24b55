"""Pages and clips: they open without a network, they move, and nothing is lost when they fail."""

import re

import numpy as np
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.errors import InvalidInput

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view import Camera, _saved
from contact_sim.view._saved import WRITERS, film, render, save_clip, save_page

PICTURES = 40


def brick_that_slides():
    robot = load_robot('sliding_brick')
    sim = Simulator(robot, friction=0.1)
    v = np.zeros(6)
    v[1] = 1.5
    sim.reset(v=v)
    reports = []
    for _ in range(PICTURES):
        for _ in range(25):
            sim.step([])
        reports.append(sim.last_report)
    return robot, sim.terrain, reports


def test_a_page_moves_without_a_network(browser_context, browser_page, tmp_path):
    """The clock of the player runs, and the brick, slower and slower, leaves where it was."""
    file = save_page(tmp_path / 'page.html', *brick_that_slides(), fps=20.0)
    asked = []
    browser_context.set_offline(True)
    browser_page.on('request', lambda request: asked.append(request.url))
    browser_page.goto(file.as_uri())
    clock = browser_page.locator('input').first
    clock.wait_for()
    seen = set()
    for _ in range(60):
        seen.add((clock.input_value(), browser_page.screenshot()))
        if len({time for time, _ in seen}) > 2 and len({image for _, image in seen}) > 2:
            break
    assert len({time for time, _ in seen}) > 2
    assert len({image for _, image in seen}) > 2
    outside = [url for url in asked if not url.startswith(('file:', 'data:', 'blob:'))]
    assert outside == []


def test_a_page_names_nothing_on_the_network(tmp_path):
    """Not in what is loaded: src and href attributes, and imports."""
    file = save_page(tmp_path / 'page.html', *brick_that_slides())
    head = file.read_text(encoding='utf-8').partition('__VISER_EMBED_DATA__')[0]
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?!data:)[^"]+"', head) == []
    assert [path.name for path in tmp_path.iterdir()] == ['page.html']


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('page.txt', r'\.html'),
        ('nowhere/page.html', 'cannot write'),
        ('clip.avi', r'\.mp4 or \.gif'),
    ],
)
def test_files_that_cannot_be_written_are_refused(name, message, tmp_path):
    save = save_clip if name.startswith('clip') else save_page
    robot, ground, reports = brick_that_slides()
    with pytest.raises(InvalidInput, match=message):
        save(tmp_path / name, robot, ground, reports[:1])
    assert list(tmp_path.iterdir()) == []


def test_nothing_to_save_is_said_and_an_old_file_stays(tmp_path):
    robot, ground, _ = brick_that_slides()
    file = tmp_path / 'page.html'
    file.write_text('old')
    with pytest.raises(InvalidInput, match='none'):
        save_page(file, robot, ground, [])
    assert file.read_text() == 'old'


def test_no_browser_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(_saved, 'NAMES', ('no-such-browser',))
    robot, ground, reports = brick_that_slides()
    with pytest.raises(InvalidInput, match=r'no browser.*apt-get install chromium'):
        save_clip(tmp_path / 'clip.gif', robot, ground, reports[:1])
    assert list(tmp_path.iterdir()) == []


def test_a_clip_has_the_pictures_and_moves(browser_is_there, tmp_path):
    """Of a brick that slides across the picture: first and last picture differ where it was."""
    Image = pytest.importorskip('PIL.Image')
    robot, ground, reports = brick_that_slides()
    file = save_clip(tmp_path / 'clip.gif', robot, ground, reports[::13], size=(160, 120))
    with Image.open(file) as clip:
        assert clip.n_frames == 4
        assert clip.size == (160, 120)
        frames = []
        for k in range(clip.n_frames):
            clip.seek(k)
            frames.append(np.asarray(clip.convert('RGB'), dtype=float))
    assert np.abs(frames[0] - frames[-1]).max() > 30.0


def test_a_picture_of_a_simulation_shows_what_moves(browser_is_there):
    robot = load_robot('sliding_brick')
    sim = Simulator(robot)
    before = render(sim, (160, 120))
    assert before.shape == (120, 160, 3)
    assert before.dtype == np.uint8
    sim.reset(v=[0.0, 1.5, 0.0, 0.0, 0.0, 0.0])
    sim.run(lambda time, q, v: [], 0.3)
    camera = Camera((1.0, -1.0, 0.6), (0.0, 0.0, 0.0))
    assert np.ptp(before) > 30
    assert np.abs(render(sim, (160, 120), camera).astype(float) - before).max() > 30.0


def test_a_run_becomes_a_clip_and_the_simulation_goes_on(browser_is_there, tmp_path):
    Image = pytest.importorskip('PIL.Image')
    sim = Simulator(load_robot('sliding_brick'), friction=0.1)
    sim.reset(v=[0.0, 1.5, 0.0, 0.0, 0.0, 0.0])
    file = film(tmp_path / 'run.gif', sim, lambda time, q, v: [], 0.4, fps=10.0, size=(160, 120))
    with Image.open(file) as clip:
        assert clip.n_frames == 5
    assert sim.time == pytest.approx(0.4)


@pytest.mark.parametrize('size', [(161, 120), (0, 120), (5000, 120), ('a', 2)])
def test_a_size_that_no_picture_has_is_refused(size):
    with pytest.raises(InvalidInput, match=r'size|width|height'):
        render(Simulator(load_robot('sliding_brick')), size)


def test_a_run_becomes_a_page(tmp_path):
    sim = Simulator(load_robot('sliding_brick'))
    file = film(tmp_path / 'run.html', sim, lambda time, q, v: [], 0.1, fps=10.0)
    assert file.stat().st_size > 100_000


def test_an_mp4_has_the_pictures_and_the_rate(tmp_path):
    ffmpeg = pytest.importorskip('imageio_ffmpeg', reason='no imageio-ffmpeg')
    frames = (np.full((48, 64, 3), 8 * k, dtype=np.uint8) for k in range(20))
    WRITERS['.mp4'](tmp_path / 'clip.mp4', frames, 10.0, (64, 48))
    assert ffmpeg.count_frames_and_secs(str(tmp_path / 'clip.mp4')) == (20, pytest.approx(2.0))
