"""What Chromium sees of a scene: the right colours at the right places of the picture."""

import numpy as np
import pinocchio as pin
import pytest
from robots import stand

from contact_sim import Simulator, load_robot
from contact_sim.drawing._body_meshes import DEFAULT_COLOUR

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


def is_ground(colour):
    """Return whether a colour is that of the ground or of its lines, in light or shadow."""
    red, green, blue = colour
    return red < green < blue < red + 40.0 and blue < 190.0


def shaded_pixels(picture, bright):
    """Return how many pixels are the same colour in both, but darker in the first."""
    share = picture / np.maximum(bright, 1.0)
    return np.sum((share.max(axis=2) < 0.8) & (np.ptp(share, axis=2) < 0.06))


def centre_of_mass(sim):
    """Return the centre of mass by Pinocchio [m], (3,)."""
    model = sim.robot.pinocchio_model
    return pin.centerOfMass(model, model.createData(), sim.q)


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
    foot, trunk = report.contacts.position[0], centre_of_mass(sim)
    beside = [foot[0] + 0.25, foot[1] + 0.03, 0.0]
    middle = foot + 0.5 * 0.01 * report.contacts.force[0]
    assert is_blue(patch(before, camera, trunk))
    red, green, blue = patch(without, camera, trunk)
    assert min(green, blue) > red + 60.0  # the centre of mass, which the trunk hides
    for picture in (before, without):
        assert is_ground(patch(picture, camera, beside))
    assert shaded_pixels(before, without) > 1000  # the ground under the robot
    robot_grey = 255.0 * np.array(DEFAULT_COLOUR[:3])  # as most robots are
    assert np.abs(patch(without, camera, beside) - robot_grey).min() > 40.0
    assert is_blue(patch(without, camera, middle))  # the force on the foot, seen without the leg
    assert before[3, 3] == pytest.approx([SKY] * 3, abs=3.0)
