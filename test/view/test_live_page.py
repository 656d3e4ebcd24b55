"""The live page in a headless Chromium: what somebody clicks happens in the simulation."""

import re
import threading

import numpy as np
import pytest

from contact_sim import Simulator, load_robot
from contact_sim.view._session import LiveSession

viser = pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")
pytestmark = pytest.mark.timeout(240)
PATIENCE = 60e3
"""Milliseconds in which a browser on a busy machine does what it is told."""
NAME = 'quadruped'
PLOTS = """() => Object.values(window.__viserTestpoints?.uplots ?? {}).map(({chart}) =>
    [Array.from(chart.data[0]), chart.scales.x, chart.scales.y, chart.data.length])"""
"""What a page knows of its plots: times, axes, number of series."""
AXES = """() => Object.values(window.__viserTestpoints?.uplots ?? {}).flatMap(({chart}) =>
    chart.axes.map((axis) => (axis._values ?? []).filter((text) => text !== null)))"""
"""The numbers at the axes of its plots."""
TABS = ['run', 'control', 'push', 'plots', 'layers']


@pytest.fixture
def served(free_port):
    """Return the simulation of a page, its session and its address; time stands still."""
    from contact_sim.view._page import Page
    from contact_sim.view._process import address_of, page_server

    sim = Simulator(load_robot(NAME), 'sap')  # a first start compiles: not while a click waits
    sim.contact_model = 'ncp'
    session = LiveSession(sim, paused=True)
    server = page_server('localhost', free_port, NAME)
    server.scene.configure_default_lights(cast_shadow=False)  # the processor draws
    ended = threading.Event()
    page = Page(server, session)
    drawing = threading.Thread(target=page.run, args=(lambda: not ended.is_set(),))
    drawing.start()
    yield sim, session, address_of('localhost', free_port)
    ended.set()
    drawing.join()
    session.close()
    server.stop()


def input_of(page, label):
    """Return the input beside a label."""
    beside = 'following::input[not(@type="hidden")][1]'
    return page.locator(f'xpath=//label[normalize-space()="{label}"]/{beside}')


def plot_is_filled(times, x, y, series):
    """Return whether a plot has a few points, on axes that show them."""
    shown = [t for t in times if x['min'] <= t <= x['max']]
    return series >= 2 and len(shown) >= 3 and y['min'] is not None and y['min'] < y['max']


def wait_for(page, true):
    for _ in range(int(PATIENCE / 50)):
        if true():
            return
        page.wait_for_timeout(50)
    raise AssertionError('nothing has happened')


def test_clicks_in_the_page_change_the_running_simulation(browser_page, served):
    sim, session, address = served
    page = browser_page
    page.set_default_timeout(PATIENCE)
    page.goto(address)

    page.get_by_role('tab').first.wait_for()
    assert page.get_by_role('tab').all_inner_texts() == TABS
    input_of(page, 'contact model').click()
    page.get_by_role('option', name='sap', exact=True).click()
    wait_for(page, lambda: sim.contact_model == 'sap')

    page.get_by_role('button', name='drop', exact=True).click()
    wait_for(page, lambda: sim.q[2] > 0.3 + sim.standing_configuration()[2] - 1e-9)

    page.get_by_text('push', exact=True).first.click()
    force = input_of(page, 'force x [N]')
    force.fill('20')
    force.press('Enter')
    page.get_by_role('button', name='push', exact=True).click()
    page.get_by_text('run', exact=True).first.click()
    for k in range(1, 4):
        page.get_by_role('button', name='step', exact=True).click()
        wait_for(page, lambda k=k: sim.step_count == k)
    (wrench,) = session.latest().wrenches.values()
    assert wrench[0] == 20.0
    session.step(150)  # it acts for 0.1 s
    momentum = sim.robot.total_mass * centre_velocity(sim)
    np.testing.assert_allclose(momentum[:2], wrench[:2] * 0.1, rtol=2e-3)

    input_of(page, 'restitution [-]').fill('3')
    input_of(page, 'restitution [-]').press('Enter')
    page.get_by_role('button', name='resume', exact=True).click()
    wait_for(page, lambda: sim.time > 0.2)
    page.get_by_role('tab', name='plots').click()
    wait_for(page, lambda: sum(plot_is_filled(*plot) for plot in page.evaluate(PLOTS)) == 4)
    labels = [label for axis in page.evaluate(AXES) for label in axis]
    assert len(labels) > 16
    assert [
        label for label in labels if not re.fullmatch(r'0|-?[1-9]\d{0,2}(,\d{3})*', label)
    ] == []
    assert '--' not in ''.join(page.locator('.u-legend').all_inner_texts())
    box = page.locator('.u-over').first.bounding_box()
    page.mouse.move(box['x'] + 0.4 * box['width'], box['y'] + 20)
    page.mouse.down()
    page.mouse.move(box['x'] + 0.8 * box['width'], box['y'] + 20, steps=4)
    page.mouse.up()
    number = sim.step_count
    wait_for(page, lambda: sim.step_count > number + 500)  # the plots have moved on
    zoomed = page.evaluate(PLOTS)[0][1]
    assert (zoomed['min'], zoomed['max']) == pytest.approx((-18.0, -6.0), abs=1.0)
    page.locator('.u-over').first.dblclick()
    wait_for(page, lambda: page.evaluate(PLOTS)[0][1]['min'] == pytest.approx(-30.0))
    page.get_by_text('run', exact=True).first.click()
    page.get_by_role('button', name='pause', exact=True).click()
    wait_for(page, lambda: session.settings().paused)
    assert 0.0 <= session.settings().restitution <= 1.0


def centre_velocity(sim):
    """Return the velocity of the centre of mass by Pinocchio [m/s], (3,)."""
    import pinocchio as pin

    model = sim.robot.pinocchio_model
    data = model.createData()
    pin.centerOfMass(model, data, sim.q, sim.v)
    return np.array(data.vcom[0])
