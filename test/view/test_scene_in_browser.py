"""What Chromium sees of a scene: the right colours at the right places of the picture."""

import numpy as np
import pinocchio as pin
import pytest
from robots import stand

from contact_sim import Simulator, load_robot

pytest.importorskip('viser', reason="no viser: pip install 'contact_sim[view]'")

from contact_sim.view._process import address_of
from contact_sim.view._saved import client_of, quiet_server
from contact_sim.view._scene import Scene

WIDTH, HEIGHT = 640, 480
SKY = 255.0
"""White, behind all."""


def on_picture(camera, point):
    """Return row and column of a point of the world, by the pinhole model."""
    w, x, y, z = camera.wxyz
    right, down, forward = pin.Quaternion(w, x, y, z).matrix().T @ (point - camera.position)
    focal = 0.5 * HEIGHT / np.tan(0.5 * camera.field_of_view)
    row, column = 0.5 * HEIGHT + focal * down / forward, 0.5 * WIDTH + focal * right / forward
    return round(row), round(column)


def patch(picture, camera, point):
    """Return the mean colour of 5 x 5 pixels about a point of the world."""
    row, column = on_picture(camera, np.asarray(point))
    around = picture[row - 2 : row + 3, column - 2 : column + 3, :3]
    return around.reshape(-1, 3).mean(axis=0)


def is_blue(colour):
    """Return whether a colour is that of the ghost, in whatever light."""
    red, green, blue = colour
    return blue > max(red, green) + 60.0


def is_grey(colour):
    """Return whether a colour is that of the ground and of its lines: light, and no colour."""
    return np.ptp(colour) < 8.0 and colour.min() > 120.0


def standing():
    robot = load_robot('quadruped')
    sim = Simulator(robot)
    stand(sim, 300)
    return robot, sim


def test_robot_forces_and_ground_are_where_they_belong(browser_page):
    robot, sim = standing()
    report = sim.last_report
    with quiet_server() as server:
        scene = Scene(server, robot, sim.terrain, tint=(0.1, 0.2, 0.9))
        scene.visible['normals'] = scene.visible['friction_cones'] = False
        scene.show(report)
        camera = scene.framing(report)
        browser_page.goto(address_of('localhost', server.get_port()))
        client = client_of(server)

        def look():
            seen = client.get_render(
                HEIGHT, WIDTH, position=camera.position, wxyz=camera.wxyz,
                fov=camera.field_of_view, transport_format='png', timeout=60.0,
            )  # fmt: skip
            flat = np.full((*seen.shape[:2], 3), SKY)
            opacity = seen[..., 3:] / 255.0
            return flat * (1.0 - opacity) + seen[..., :3] * opacity

        before = look()
        while np.ptp(patch(before, camera, sim.q[:3])) < 5.0:  # until the meshes are there
            before = look()
        scene.visible['meshes'] = False
        without = look()
    trunk, foot = sim.q[:3], report.contacts.position[0]
    beside = [foot[0] + 0.25, foot[1] + 0.03, 0.0]
    middle = foot + 0.5 * 0.01 * report.contacts.force[0]
    assert is_blue(patch(before, camera, trunk))
    assert is_grey(patch(without, camera, trunk))  # the ground behind it
    for picture in (before, without):
        assert is_grey(patch(picture, camera, beside))
    assert is_blue(patch(without, camera, middle))  # the force on the foot, seen without the leg
    assert before[3, 3] == pytest.approx([SKY] * 3, abs=3.0)
