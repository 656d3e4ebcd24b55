"""Show robots on three generated grounds, each where its own trot took it: docs/worlds.png.

    python benchmarks/worlds_picture.py [docs/worlds.png]

Every panel is the scene of the viewer, rendered by headless Chromium.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from contact_sim import Simulator, load_robot
from contact_sim.control import Trot
from contact_sim.drawing._step_shapes import Arrows
from contact_sim.terrain._generator import ready_made
from contact_sim.view import Camera, Scene
from contact_sim.view._saved import picture_of, quiet_server
from contact_sim.view._scene import ArrowLayer

WORLDS = (
    ('stairs', 0.1, 'go1', 4.5, 1.0),
    ('grid', 0.1, 'anymal_b', 4.2, 1.55),
    ('wave', 0.4, 'a1', 3.0, 1.0),
)
"""Ground, its difficulty, robot, instant [s] and distance of the camera [m] of every panel."""
SPEED = 0.4
"""Forwards [m/s]."""
VIEW = np.array([0.62, -0.66, 0.42])
"""Direction from the robot to the camera."""
ARROW_LENGTH = 0.45
"""Of a force as large as the weight, over the distance of the camera."""
SIZE, MARGIN = (620, 520), 44
"""Of a panel, and the height of its title [pixels]."""


def panel(
    ground: str, difficulty: float, name: str, seconds: float, distance: float
) -> Image.Image:
    """Let a robot trot on a ground, and return its picture then."""
    sim = Simulator(load_robot(name), 'ncp', ready_made(ground, difficulty, 1))
    trot = Trot(sim.robot)
    trot.velocity = (SPEED, 0.0, 0.0)
    while sim.time < seconds:
        sim.step(trot.effort(sim.time, sim.q, sim.v))
    report = sim.last_report
    target = sim.q[:3] - [0.0, 0.0, 0.12 * distance]
    x, y, z = (target + distance * VIEW / np.linalg.norm(VIEW)).tolist()
    a, b, c = target.tolist()
    with quiet_server() as server:
        scene = Scene(server, sim.robot, sim.terrain)
        for layer in scene.visible:
            scene.visible[layer] = layer in ('meshes', 'ground')
        scene.show(report)
        along = ARROW_LENGTH * distance / (9.81 * sim.robot.total_mass) * report.contacts.force
        ArrowLayer(server.scene, scene.path, 'force').show(Arrows(report.contacts.position, along))
        return Image.fromarray(picture_of(server, Camera((x, y, z), (a, b, c)), SIZE))


def main() -> None:
    """Make the picture."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else 'docs/worlds.png')
    width, height = SIZE
    picture = Image.new('RGB', (len(WORLDS) * width, height + MARGIN), 'white')
    text, font = ImageDraw.Draw(picture), ImageFont.load_default(size=26)
    for k, world in enumerate(WORLDS):
        picture.paste(panel(*world), (k * width, MARGIN))
        title = f'{world[2]}, terrain:={world[0]}'
        text.text(((k + 0.5) * width, 0.5 * MARGIN), title, 'black', font, 'mm')
    picture.save(path, optimize=True)


if __name__ == '__main__':
    main()
