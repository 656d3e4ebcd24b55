"""The picture of the demo: the robot with its contact forces, forces and height over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.robot._contact_points import Foot
from contact_sim.robot._model import RobotModel
from contact_sim.ros.demo._run import Track

COLOURS = ('#0072B2', '#E69F00', '#009E73', '#CC79A7', '#D55E00', '#56B4E9')
INK, GREY, GROUND = '#222222', '#8a8a8a', '#d9d6d0'
AZIMUTH, ELEVATION = np.radians(-62.0), np.radians(18.0)
"""Direction of view, as angles about and above the ground [rad]."""
CONE_SIDES = 40
LARGEST_SHOWN = 2.5
"""Upper end of the force axis over the weight: an impact within one step is far above."""


def draw(
    robot: RobotModel, track: Track, friction: float, facts: Sequence[str], path: Path
) -> None:
    """Write the figure as PNG, with a title and lines of text, `facts`.

    `friction` is the coefficient of the cones.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    plt.rcParams.update({'font.size': 10, 'axes.spines.top': False, 'axes.spines.right': False})
    figure = plt.figure(figsize=(10.0, 5.0))
    scene = figure.add_axes((0.01, 0.01, 0.43, 0.68))
    forces = figure.add_axes((0.52, 0.43, 0.33, 0.53))
    height = figure.add_axes((0.52, 0.11, 0.33, 0.25), sharex=forces)
    figure.text(0.02, 0.96, facts[0], va='top', fontsize=16, fontweight='bold', color=INK)
    figure.text(0.02, 0.87, '\n'.join(facts[1:]), va='top', color=INK, linespacing=1.6)
    draw_scene(scene, robot, track, friction)
    draw_forces(forces, robot, track)
    draw_height(height, track)
    figure.savefig(path, dpi=150, facecolor='white')
    plt.close(figure)


def draw_forces(axes: Any, robot: RobotModel, track: Track) -> None:
    """Stack the normal forces of the feet: together they carry the weight."""
    weight = robot.total_mass * 9.81
    names = [foot.name for foot in robot.feet]
    normal = track.force[:, :, 2].T
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    axes.stackplot(track.time, normal, colors=colours, alpha=0.75, linewidth=0.0)
    for upper in np.cumsum(normal, axis=0):
        axes.plot(track.time, upper, color='white', linewidth=0.4)
    axes.axhline(weight, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
    end, levels = track.time[-1], np.cumsum(normal[:, -1])
    for name, colour, level, force in zip(names, colours, levels, normal[:, -1], strict=True):
        axes.annotate(
            f'{name}  {force:.1f} N', (end, level - 0.5 * force), (6, 0), va='center',
            textcoords='offset points', color=colour, fontsize=9, annotation_clip=False,
        )  # fmt: skip
    axes.annotate(
        f'm g = {weight:.1f} N', (end, weight), (6, 1), textcoords='offset points', va='bottom',
        color=INK, fontsize=9, annotation_clip=False,
    )  # fmt: skip
    axes.set_ylim(0.0, LARGEST_SHOWN * weight)
    axes.set_ylabel('normal force of each foot [N]')
    axes.tick_params(labelbottom=False)


def draw_height(axes: Any, track: Track) -> None:
    """Draw the height of the base over time."""
    axes.plot(track.time, 1e3 * track.height, color=INK, linewidth=1.6)
    axes.set_ylabel('base height [mm]')
    axes.set_xlabel('simulated time [s]')
    axes.set_xlim(0.0, track.time[-1])
    axes.locator_params(axis='x', nbins=6)


def projected(points: Array) -> tuple[Array, Array]:
    """Return points (..., 3) as seen by the viewer: (..., 2) on the picture, (...) the depth."""
    right = np.array([-np.sin(AZIMUTH), np.cos(AZIMUTH), 0.0])
    towards = np.array(
        [np.cos(ELEVATION) * np.cos(AZIMUTH), np.cos(ELEVATION) * np.sin(AZIMUTH),
         np.sin(ELEVATION)]
    )  # fmt: skip
    picture = np.stack([points @ right, points @ np.cross(towards, right)], axis=-1)
    return picture, points @ towards


def draw_scene(axes: Any, robot: RobotModel, track: Track, friction: float) -> None:
    """Draw the robot at the end, its contact forces and their friction cones."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, track.configuration[-1])
    joints = np.array([data.oMi[j].translation for j in range(model.njoints)])
    legs = [leg(robot, data, joints, foot) for foot in robot.feet]
    size = np.ptp(np.vstack(legs), axis=0).max()
    draw_ground(axes, joints[1], size)
    hips = np.array([line[0] for line in legs])
    order = np.argsort([projected(line)[1].mean() for line in legs])
    half = len(order) // 2
    for k in order[:half]:
        draw_leg(axes, legs[k], COLOURS[k % len(COLOURS)])
    corners = projected(hips)[0]
    around = np.argsort(np.arctan2(*(corners - corners.mean(axis=0)).T))
    axes.fill(*corners[around].T, color='#4a4a4a', linewidth=14, joinstyle='round', zorder=4)
    for k in order[half:]:
        draw_leg(axes, legs[k], COLOURS[k % len(COLOURS)], zorder=5)
    scale = 1.8 * size / (robot.total_mass * 9.81)
    for k in order:
        contact, force = track.foot[-1, k], track.force[-1, k]
        if force.any():  # not of a foot in the air
            draw_force(axes, contact, scale * force, friction, COLOURS[k % len(COLOURS)])
    axes.set_aspect('equal', anchor='S')
    axes.axis('off')


def leg(robot: RobotModel, data: pin.Data, joints: Array, foot: Foot) -> Array:
    """Return the joint origins from the base to a foot, and the centre of its points, (n, 3)."""
    model = robot.pinocchio_model
    joint = model.getJointId(foot.joint)
    centre = np.mean([robot.contact_points[k].offset for k in foot.points], axis=0)
    line = [data.oMi[joint].act(centre)]
    while joint > 1:
        line.append(joints[joint])
        joint = model.parents[joint]
    return np.array(line[::-1])


def draw_leg(axes: Any, line: Array, colour: str, zorder: int = 3) -> None:
    """Draw the links of a leg and a dot for the foot."""
    picture, _ = projected(line)
    axes.plot(*picture.T, color='#5f5f5f', linewidth=5, solid_capstyle='round',
              solid_joinstyle='round', zorder=zorder)  # fmt: skip
    axes.plot(*picture[:-1].T, 'o', color='#8d8d8d', markersize=4, zorder=zorder)
    axes.plot(*picture[-1], 'o', color=colour, markersize=9, zorder=zorder)


def draw_ground(axes: Any, under: Array, size: float) -> None:
    """Draw a grid on z = 0 around the robot."""
    span = np.linspace(-0.8 * size, 0.8 * size, 7)
    for s in span:
        for ends in ([[s, span[0]], [s, span[-1]]], [[span[0], s], [span[-1], s]]):
            line = np.column_stack([np.array(ends) + under[:2], np.zeros(2)])
            axes.plot(*projected(line)[0].T, color=GROUND, linewidth=0.9, zorder=0)


def draw_force(axes: Any, contact: Array, arrow: Array, friction: float, colour: str) -> None:
    """Draw the friction cone at a contact, and the force inside it."""
    height = 0.5 * np.linalg.norm(arrow)
    angles = np.linspace(0.0, 2.0 * np.pi, CONE_SIDES)
    rim = height * np.column_stack(
        [friction * np.cos(angles), friction * np.sin(angles), np.ones(CONE_SIDES)]
    )
    tip, circle = projected(contact)[0], projected(contact + rim)[0]
    outline = np.vstack([circle, tip])
    axes.fill(*hull(outline).T, color=colour, alpha=0.16, linewidth=0.0, zorder=6)
    axes.plot(*circle.T, color=colour, alpha=0.6, linewidth=0.8, zorder=6)
    head = projected(contact + arrow)[0]
    axes.annotate(
        '', head, tip, zorder=7, annotation_clip=False,
        arrowprops={'arrowstyle': '-|>,head_width=0.22,head_length=0.45', 'color': colour,
                    'linewidth': 2.2, 'shrinkA': 0.0, 'shrinkB': 0.0},
    )  # fmt: skip


def hull(points: Array) -> Array:
    """Return the corners of the convex hull of points in the plane, in order."""
    from scipy.spatial import ConvexHull

    return np.asarray(points[ConvexHull(points).vertices])
