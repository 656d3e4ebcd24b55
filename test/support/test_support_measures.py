"""The numbers of every step are those of the analysis."""

from itertools import chain, combinations

import numpy as np
import pytest

from contact_sim import InclinedPlane, load_robot
from contact_sim.collision._terrain import Planes, as_terrain
from contact_sim.support import analyse_support
from contact_sim.support._analysis import distance_inside, support_polygon
from contact_sim.support._measures import MEASURES, SupportMeasures

GROOVE = Planes((((0.3, 0.0, 1.0), 0.0), ((-0.3, 0.0, 1.0), 0.0)))


def expected(robot, q, feet, terrain):
    """Return the numbers by the analysis, which checks and computes everything anew."""
    support = analyse_support(robot, q, feet, terrain=terrain)
    numbers = [getattr(support, name) for name in MEASURES[:7]]
    numbers.append(support.margin if feet else 0.0)
    if not (feet and robot.floating_base and support.uncontrollable_base_dof):
        return [*numbers, *[0.0] * 7]
    motion = support.uncontrollable_base_directions[0]
    return [*numbers, *motion.direction, *motion.point, float(np.isfinite(motion.pitch))]


@pytest.mark.parametrize('terrain', ['plane', InclinedPlane(0.2), GROOVE])
@pytest.mark.parametrize(
    'name', ['go1', 'solo8', 'anymal_b', 'four_bar_quadruped', 'cart_pendulum']
)
def test_measures_are_those_of_the_analysis(name, terrain):
    robot, rng = load_robot(name), np.random.default_rng(3)
    ground = as_terrain(terrain)
    measures = SupportMeasures(robot, ground)
    count = len(robot.contact_points)
    sets = chain.from_iterable(combinations(range(count), k) for k in range(count + 1))
    for feet in sets:
        for spread in (0.0, 0.3):
            q = robot.reference_configuration().copy()
            q[-robot.n_joints :] += spread * rng.normal(size=robot.n_joints)
            found = measures.of(q, feet)
            assert found == pytest.approx(expected(robot, q, feet, ground), rel=1e-8, abs=1e-9)


def test_polygons_of_random_points():
    """Every point lies inside the hull, the hull is convex, and its corners are points."""
    rng = np.random.default_rng(0)
    for count in range(1, 12):
        for _ in range(20):
            points = rng.normal(size=(count, 3)).round(1)
            normal = rng.normal(size=3)
            normal /= np.linalg.norm(normal)
            normal[2] = abs(normal[2])
            corners = support_polygon(points, np.tile(normal, (count, 1)))
            assert {tuple(corner) for corner in corners} <= {tuple(point) for point in points}
            middle = points.mean(axis=0)
            for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
                left = np.cross(normal, b - a)
                if len(corners) > 2:
                    assert ((points - a) @ left >= -1e-9).all()
                    assert (middle - a) @ left >= -1e-9


def test_distance_inside_a_square():
    square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    points = {
        (1.0, 1.0): 1.0,
        (0.5, 1.2): 0.5,
        (3.0, 1.0): -1.0,
        (5.0, 6.0): -5.0,
        (2.0, 1.0): 0.0,
    }
    for point, distance in points.items():
        assert distance_inside(square, np.array(point)) == pytest.approx(distance)
    assert distance_inside(square[:2], np.array([1.0, 0.5])) == -0.5
    assert distance_inside(square[:0], np.zeros(2)) == -np.inf
