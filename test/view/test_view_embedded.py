"""A moving scene inside another page."""

import html
import importlib.util
import re
import time

import numpy as np
import pytest

from contact_sim import InvalidInput, Simulator, load_robot
from contact_sim.view._saved import MISSING, MovingScene
from contact_sim.view._scene import Camera, whole_run


@pytest.fixture(scope='module')
def ball():
    """A ball that flies 0.2 m up and along, as a scene."""
    sim = Simulator(load_robot('bouncing_ball'))
    sim.reset([0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    return sim, [sim.step([]) for _ in range(200)]


def test_it_plays_in_a_frame_of_another_page(ball, browser_page, tmp_path):
    pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
    sim, reports = ball
    shown = MovingScene(sim.robot, sim.terrain, reports[::4], fps=10.0, height=200)._repr_html_()
    browser_page.set_viewport_size({'width': 300, 'height': 300})
    page = tmp_path / 'page.html'
    page.write_text(f'<!doctype html><html><body><p>before</p>{shown}<p>after</p></body></html>')
    browser_page.goto(page.as_uri())
    inside = browser_page.frame_locator('iframe')
    inside.locator('canvas').first.wait_for(timeout=60_000)
    clock = inside.locator('input[type="text"]').first  # the time at the end of the bar
    clock.wait_for(timeout=60_000)
    first, patience = clock.input_value(), time.monotonic() + 60.0
    while clock.input_value() == first:
        assert time.monotonic() < patience, f'it stands still at {first}'
        browser_page.wait_for_timeout(50)
    assert browser_page.locator('p').all_text_contents() == ['before', 'after']


def test_the_page_is_one_piece(ball):
    pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
    sim, reports = ball
    shown = MovingScene(sim.robot, sim.terrain, reports[:2], height=300)._repr_html_()
    frame = re.fullmatch(r'<iframe srcdoc="([^"]*)" ([^>]*)></iframe>', shown)
    page = html.unescape(frame[1])
    assert 'height="300"' in frame[2]
    assert page.lstrip().lower().startswith('<!doctype html>')
    assert not re.search(r'<(script|link)[^>]+(src|href)="https?:', page)


def test_without_viser_it_says_what_to_install(ball, monkeypatch):
    sim, reports = ball
    scene = MovingScene(sim.robot, sim.terrain, reports[:1])
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    assert scene._repr_html_() == MISSING
    with pytest.raises(InvalidInput, match=r"pip install 'contact_sim\[view\]'"):
        scene.page()


def test_a_scene_needs_a_picture(ball):
    sim, _ = ball
    with pytest.raises(InvalidInput, match='one per picture'):
        MovingScene(sim.robot, sim.terrain, [])


def test_a_camera_for_the_whole_run_sees_both_ends():
    first = Camera((0.0, -2.0, 0.0), (0.0, 0.0, 0.0))
    last = Camera((4.0, -2.0, 0.0), (4.0, 0.0, 0.0))
    camera = whole_run([first, last])
    assert camera.look_at == (2.0, 0.0, 0.0)
    np.testing.assert_allclose(camera.position, (2.0, -4.0, 0.0))
    assert whole_run([first]) == first
