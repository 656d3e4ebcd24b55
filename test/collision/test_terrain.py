"""Terrains: what they tell about points, and which values they refuse."""

import numpy as np
import pytest
from terrains import GROUNDS, points_near

from contact_sim.arrays._fields import TERRAIN_DATA
from contact_sim.collision._surface import MAX_FEATURES, PLANES, distance_and_normal
from contact_sim.collision._terrain import (
    TERRAINS,
    CylinderGround,
    GroundSurface,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
    as_terrain,
)
from contact_sim.errors import InvalidInput, UnknownName

NAN = float('nan')
BAD = [
    (lambda: Plane((0, 0, 0)), r'Plane\.normal = \(0, 0, 0\)'),
    (lambda: Plane((0, 0)), r'Plane\.normal = \(0, 0\)'),
    (lambda: Plane('up'), r"Plane\.normal = 'up'"),
    (lambda: Plane((0, 0, 1), NAN), r'Plane\.offset = nan m'),
    (lambda: Plane((0, 0, 1), None), r'Plane\.offset = None m'),
    (lambda: InclinedPlane(1.6), r'InclinedPlane\.angle = 1\.6 rad'),
    (lambda: InclinedPlane(0.1, NAN), r'InclinedPlane\.heading = nan'),
    (lambda: Planes(()), r'Planes\.planes = \(\): expected 1 to 4'),
    (lambda: Planes((((0, 0, 1), 0.0),) * 5), r'Planes\.planes = .*expected 1 to 4'),
    (lambda: Planes(3), r'Planes\.planes = 3: expected 1 to 4'),
    (lambda: Planes((((0, 0, 1), 0.0), ((0, 0, 0), 0.0))), r'Planes\.planes\[1\] normal'),
    (lambda: Planes((((0, 0, 1), 0.0), ((0, 1, 0), NAN))), r'Planes\.planes\[1\] offset = nan'),
    (lambda: Planes(((0, 0, 1),)), r'Planes\.planes\[0\] = .*expected a pair'),
    (lambda: SphereGround((0, 0, NAN)), r'SphereGround\.centre'),
    (lambda: SphereGround((0, 0)), r'SphereGround\.centre = \(0, 0\)'),
    (lambda: SphereGround(radius=0.0), r'SphereGround\.radius = 0\.0 m: expected .*> 0'),
    (lambda: SphereGround(radius=-1.0), r'SphereGround\.radius = -1\.0 m'),
    (lambda: SphereGround(radius=NAN), r'SphereGround\.radius = nan m'),
    (lambda: SphereGround(hollow='yes'), r"SphereGround\.hollow = 'yes': expected True or False"),
    (lambda: CylinderGround(point=(0, NAN, 0)), r'CylinderGround\.point'),
    (lambda: CylinderGround(axis=(0, 0, 0)), r'CylinderGround\.axis = \(0, 0, 0\)'),
    (lambda: CylinderGround(axis=(1, NAN, 0)), r'CylinderGround\.axis'),
    (lambda: CylinderGround(radius=np.inf), r'CylinderGround\.radius = inf m'),
]


@pytest.mark.parametrize(('make', 'words'), BAD, ids=[words for _, words in BAD])
def test_bad_values_are_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.parametrize('name', GROUNDS)
def test_a_terrain_is_a_kind_and_numbers(name):
    ground = GROUNDS[name]
    assert as_terrain(ground) is ground
    assert ground.data.shape == (TERRAIN_DATA,)
    assert 1 <= ground.features <= MAX_FEATURES


@pytest.mark.parametrize('name', GROUNDS)
def test_distance_and_normal_are_those_of_the_nearest_feature(name):
    ground = GROUNDS[name]
    points = points_near(ground, np.random.default_rng(4))
    distances, normals = ground.signed_distance(points), ground.normals(points)
    for p, distance, normal in zip(points, distances, normals, strict=True):
        each = [distance_and_normal(ground.ground, f, *p) for f in range(ground.features)]
        expected, n = min(each)
        # behind planes the nearest point may be on their edge, farther away than each
        behind = ground.kind == PLANES and expected < 0.0 and ground.features > 1
        assert distance <= expected + 1e-15 if behind else distance == expected
        assert tuple(normal) == n


def nearest_in_room(point, planes):
    """Return the point of a room nearest to a point, by the projections of Dykstra (1983)."""
    x, corrections = np.array(point), np.zeros((len(planes), 3))
    for _ in range(5000):
        for k, (*n, offset) in enumerate(planes):
            before = x + corrections[k]
            x = before - min(before @ n - offset, 0.0) * np.array(n)
            corrections[k] = before - x
    return x


@pytest.mark.parametrize('name', ['groove', 'pit'])
def test_behind_planes_the_distance_is_that_of_the_room_in_front_of_all(name):
    ground = GROUNDS[name]
    planes = ground.data[: 4 * ground.features].reshape(-1, 4)
    corners = 0
    for point in np.random.default_rng(5).uniform(-1.0, 1.0, (60, 3)):
        (distance,) = ground.signed_distance(point[None])
        least = (planes[:, :3] @ point - planes[:, 3]).min()
        depth = np.linalg.norm(point - nearest_in_room(point, planes))
        assert distance == pytest.approx(least if least >= 0.0 else -depth, abs=1e-9)
        corners += distance < least - 1e-3
    assert corners > 5
    above_and_below = Planes((((0, 0, 1), 0.5), ((0, 0, -1), 0.5)))  # z ≥ 0.5 and z ≤ −0.5
    assert above_and_below.signed_distance([[0.0, 0.0, 0.2]]) == pytest.approx([-0.7])


def test_distance_by_hand():
    points = [[0.0, 0.0, 0.3], [0.5, 2.0, 0.3]]
    assert Plane(offset=0.1).signed_distance(points) == pytest.approx([0.2, 0.2])
    groove = Planes()
    assert groove.signed_distance(points) == pytest.approx([0.3 / np.sqrt(2), -0.2 / np.sqrt(2)])
    assert groove.normals(points)[1] == pytest.approx([-np.sqrt(0.5), 0.0, np.sqrt(0.5)])
    bowl = SphereGround((0.0, 0.0, 1.0), 1.0, hollow=True)
    assert bowl.signed_distance(points[:1]) == pytest.approx([0.3])
    pipe = CylinderGround((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), 1.0, hollow=True)
    assert pipe.signed_distance(points) == pytest.approx([0.3, 1.0 - np.hypot(0.5, 0.7)])


@pytest.mark.parametrize('points', [[0.0, 0.0, 1.0], [[0.0, 1.0]], 3.0])
def test_points_have_three_coordinates(points):
    with pytest.raises(InvalidInput, match=r'points: shape .* expected \(n, 3\)'):
        Plane().signed_distance(points)


def test_planes_are_kept_as_they_were():
    assert Plane((0, 0, 2.0), 0.5).plane.tolist() == [0.0, 0.0, 1.0, 0.5]
    slope = InclinedPlane(0.3, 0.2)
    assert slope.data[:4].tobytes() == slope.plane.tobytes()
    assert not slope.data[4:].any()


def test_names_stand_for_terrains():
    for name, make in TERRAINS.items():
        ground, made = as_terrain(name), make()
        assert type(ground) is type(made)
        assert ground.data.tobytes() == made.data.tobytes()
    with pytest.raises(UnknownName, match='moon'):
        as_terrain('moon')
    with pytest.raises(InvalidInput, match=r'expected a name \(plane, .*, a file, a Terrain'):
        as_terrain(3)


class Strange(GroundSurface):
    def __init__(self, kind=0, data=None, features=1):
        self._values = kind, np.zeros(TERRAIN_DATA) if data is None else data, features

    kind = property(lambda self: self._values[0])
    data = property(lambda self: self._values[1])
    features = property(lambda self: self._values[2])


@pytest.mark.parametrize(
    ('ground', 'words'),
    [
        (Strange(kind=7), r'terrain\.kind = 7'),
        (Strange(features=0), r'terrain\.features = 0'),
        (Strange(features=5), r'terrain\.features = 5'),
        (Strange(data=np.zeros(4)), r'terrain\.data = .*expected 16 finite numbers'),
        (Strange(data=np.full(TERRAIN_DATA, NAN)), r'(?s)terrain\.data = .*expected 16 finite'),
    ],
)
def test_a_terrain_of_ones_own_is_checked(ground, words):
    with pytest.raises(InvalidInput, match=words):
        as_terrain(ground)
