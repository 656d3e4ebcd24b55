"""A moving scene in one file: a page that any browser opens offline, or a clip."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from contact_sim.collision.terrain import Terrain
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.report import StepReport


def save_page(
    path: str | Path,
    robot: RobotModel,
    ground: Terrain,
    reports: Iterable[StepReport],
    fps: float = 30.0,
) -> Path:
    """Write a page with the moving scene, one picture per report; return its path.

    Args:
        path: of the file, .html.
        robot: what is shown.
        ground: `Simulator.terrain`.
        reports: one per picture, as many as are shown.
        fps: pictures per second.
    """
    raise NotImplementedError


def save_clip(
    path: str | Path,
    robot: RobotModel,
    ground: Terrain,
    reports: Iterable[StepReport],
    fps: float = 30.0,
) -> Path:
    """Write a clip, .mp4 or .gif, by a headless Chromium, else as `save_page`."""
    raise NotImplementedError
