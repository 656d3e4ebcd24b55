"""Surface functions: distance, normal and curvature of every kind of ground."""

import numpy as np
import pytest
from terrains import GROUNDS, points_near

from contact_sim.collision._surface import curvature, distance_and_normal, tangent_rates, tangents
from contact_sim.collision._terrain import CylinderGround, SphereGround

EACH = [(name, f) for name, ground in GROUNDS.items() for f in range(ground.features)]


def surface(name, feature):
    ground = GROUNDS[name].ground

    def phi(p):
        return distance_and_normal(ground, feature, *p)[0]

    def normal(p):
        return np.array(distance_and_normal(ground, feature, *p)[1])

    def hessian(p):
        xx, xy, xz, yy, yz, zz = curvature(ground, feature, *p)
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    return phi, normal, hessian


def difference(function, p, direction, step=1e-2):
    """Derivative of a function along a direction, central differences of order 8."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    total = 0.0
    for k, weight in weights.items():
        shift = k * step * direction
        total = total + weight * (function(p + shift) - function(p - shift))
    return total / step


@pytest.mark.parametrize(('name', 'feature'), EACH)
def test_normal_is_the_gradient_of_distance_and_curvature_that_of_the_normal(name, feature):
    phi, normal, hessian = surface(name, feature)
    for p in points_near(GROUNDS[name], np.random.default_rng(1)):
        n, H = normal(p), hessian(p)
        assert n @ n == pytest.approx(1.0, abs=1e-14)
        slopes = [difference(phi, p, e) for e in np.eye(3)]
        assert np.abs(n - slopes).max() < 1e-9
        turn = np.array([difference(normal, p, e) for e in np.eye(3)]).T
        assert np.abs(H - turn).max() < 1e-8
        assert np.abs(H @ n).max() < 1e-12


@pytest.mark.parametrize(('name', 'feature'), EACH)
def test_a_point_goes_down_to_the_ground_along_its_normal(name, feature):
    phi, normal, _ = surface(name, feature)
    for p in points_near(GROUNDS[name], np.random.default_rng(2)):
        foot = p - phi(p) * normal(p)
        assert phi(foot) == pytest.approx(0.0, abs=1e-12)
        assert np.abs(normal(foot) - normal(p)).max() < 1e-12


def test_a_sphere_by_numbers():
    """theory T9: sphere of radius 1 about the origin, foot at (0.6, 0, 0.9)."""
    ground = SphereGround((0.0, 0.0, 0.0), 1.0)
    point = [[0.6, 0.0, 0.9]]
    assert ground.signed_distance(point) == pytest.approx([0.08166538264], abs=1e-11)
    assert ground.normals(point)[0] == pytest.approx([0.5547002, 0.0, 0.83205029], abs=1e-8)
    bend = curvature(ground.ground, 0, *point[0])
    assert bend[3] == pytest.approx(1.0 / np.hypot(0.6, 0.9))


@pytest.mark.parametrize('hollow', [False, True])
@pytest.mark.parametrize('radius', [1.5, 10.0, 1000.0])
def test_a_sphere_has_a_height_wherever_it_is(radius, hollow):
    """With a large radius, rounding of the distance is more than that of the height."""
    side = -1.0 if hollow else 1.0
    ground = SphereGround((0.1, 0.2, -side * radius), radius, hollow)
    for x, y in np.random.default_rng(5).uniform(-0.65 * radius, 0.65 * radius, (300, 2)):
        expected = -side * radius + side * np.sqrt(radius**2 - x**2 - y**2)
        assert ground.height(0.1 + x, 0.2 + y) == pytest.approx(expected, abs=1e-15 * radius)


def test_curvature_tells_ground_from_hollow_and_axis_from_girth():
    pipe = CylinderGround((0.0, 0.0, 1.0), (0.0, 5.0, 0.0), 1.0, hollow=True)
    phi, n = distance_and_normal(pipe.ground, 0, 0.0, 3.0, 0.1)
    assert (phi, *n) == pytest.approx((0.1, 0.0, 0.0, 1.0))
    expected = [-1.0 / 0.9, 0.0, 0.0, 0.0, 0.0, 0.0]  # n turns against x, and not along the axis
    assert curvature(pipe.ground, 0, 0.0, 3.0, 0.1) == pytest.approx(expected)
    log = CylinderGround((0.0, 0.0, -1.0), (0.0, 5.0, 0.0), 1.0)
    assert curvature(log.ground, 0, 0.0, 3.0, 0.0)[0] == pytest.approx(1.0)


@pytest.mark.parametrize('name', ['ball', 'bowl', 'log', 'pipe'])
def test_normal_points_up_where_it_has_no_direction(name):
    ground = GROUNDS[name]
    centre, axis = ground.data[:3], ground.data[5:8]
    phi, n = distance_and_normal(ground.ground, 0, *centre)
    assert abs(phi) == pytest.approx(ground.radius)
    assert np.linalg.norm(n) == pytest.approx(1.0)
    assert n[2] > 0.5
    assert np.dot(n, axis) == pytest.approx(0.0, abs=1e-15)
    assert np.all(np.isfinite(curvature(ground.ground, 0, *centre)))


@pytest.mark.parametrize('name', ['ball', 'bowl', 'log', 'pipe'])
def test_tangents_turn_with_the_normal(name):
    _, normal, hessian = surface(name, 0)
    random = np.random.default_rng(3)
    for p in points_near(GROUNDS[name], random):
        if abs(abs(normal(p)[0]) - 0.9) < 0.2:  # t1 jumps where |n_x| = 0.9
            continue
        velocity = random.uniform(-1.0, 1.0, 3)
        n = normal(p)
        frame = np.array([*tangents(*n), n])
        assert np.abs(frame @ frame.T - np.eye(3)).max() < 1e-14
        assert np.linalg.det(frame) == pytest.approx(1.0)
        rates = tangent_rates(tuple(n), tuple(frame[0]), tuple(hessian(p) @ velocity))
        turn = difference(lambda x: np.array(tangents(*normal(x))), p, velocity)
        assert np.abs(np.array(rates) - turn).max() < 1e-7
