"""Support analysis of a step, as numbers for ~/solver_state and shapes for RViz."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from contact_sim.collision.terrain import Terrain
from contact_sim.drawing.style import CENTRE_SIZE, FALLING, PLUMB_WIDTH, POLYGON_WIDTH
from contact_sim.drawing.support import SupportShapes
from contact_sim.robot.model import RobotModel
from contact_sim.ros.conversions import set_stamp, set_vector
from contact_sim.ros.outputs.markers import marker_of, point_of
from contact_sim.sensors.part_report import Report
from contact_sim.support.analysis import Support, analyse_support

Array = NDArray[np.float64]
AXES = 'xyz'


def support_of(robot: RobotModel, terrain: Terrain, report: Report) -> Support:
    """Return the support of the feet that carried a force in a step, at its end."""
    slots = np.flatnonzero(report.contacts.mode)
    standing = np.unique(slots // terrain.features).tolist()
    return analyse_support(robot, report.q, standing, terrain=terrain)


def support_numbers(support: Support) -> dict[str, float]:
    """Return the support as labelled numbers, the same labels for every set of feet.

    `support_free_*` is the first motion of a floating base that the feet cannot act on: its
    direction, a point of its axis [m], and whether it turns; zeros where there is none, all of
    them in flight. The margin [m] is 0 in flight.
    """
    numbers = {
        'rank': support.rank,
        'base_rank': support.base_rank,
        'internal_constraints': support.internal_constraints,
        'uncontrollable_base_dof': support.uncontrollable_base_dof,
        'base_mobility': support.base_mobility,
        'conditioning': support.conditioning,
        'base_conditioning': support.base_conditioning,
        'margin': support.margin if support.feet else 0.0,
    }
    direction, point, turns = np.zeros(3), np.zeros(3), 0.0
    if support.feet and support.robot.floating_base and support.uncontrollable_base_dof:
        motion = support.uncontrollable_base_directions[0]
        direction, point, turns = motion.direction, motion.point, float(np.isfinite(motion.pitch))
    numbers |= {f'free_direction_{axis}': direction[k] for k, axis in enumerate(AXES)}
    numbers |= {f'free_point_{axis}': point[k] for k, axis in enumerate(AXES)}
    numbers['free_rotation'] = turns
    return {f'support_{name}': float(number) for name, number in numbers.items()}


class SupportMarkers:
    """The support polygon, the centre of mass, and the plumb line between them.

    Args:
        robot: whose support.
        terrain: what it stands on.
        odom_frame: frame id of the world.
        number: of the robot among those that are shown.
    """

    def __init__(
        self, robot: RobotModel, terrain: Terrain, odom_frame: str, number: int = 0
    ) -> None:
        self._shapes = SupportShapes(robot, terrain)
        self._polygon = marker_of('support_polygon', number, Marker.LINE_STRIP, odom_frame)
        self._polygon.scale.x = POLYGON_WIDTH
        self._centre = marker_of('centre_of_mass', 2 * number, Marker.SPHERE, odom_frame)
        self._centre.scale.x = self._centre.scale.y = self._centre.scale.z = CENTRE_SIZE
        self._plumb = marker_of('centre_of_mass', 2 * number + 1, Marker.LINE_STRIP, odom_frame)
        self._plumb.scale.x = PLUMB_WIDTH
        self._safe = self._centre.color

    def fill(self, report: Report) -> list[Marker]:
        """Return the markers of a step; no polygon where no foot stands.

        The centre of mass turns red where it is not over the polygon.
        """
        shape = self._shapes.of(report)
        self._polygon.points = [point_of(corner) for corner in shape.outline]
        self._polygon.action = Marker.ADD if len(shape.outline) > 1 else Marker.DELETE
        set_vector(self._centre.pose.position, shape.centre)
        self._plumb.points = [point_of(shape.centre), point_of(shape.below)]
        r, g, b, a = FALLING
        colour = self._safe if shape.over else ColorRGBA(r=r, g=g, b=b, a=a)
        self._centre.color = self._plumb.color = colour
        markers = [self._polygon, self._centre, self._plumb]
        for marker in markers:
            set_stamp(marker.header.stamp, report.time)
        return markers
