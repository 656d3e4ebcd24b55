"""Robots are put on every ground so that their lowest foot touches it."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from robots import ball
from terrains import GROUNDS

from contact_sim import load_robot
from contact_sim.collision._terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
)
from contact_sim.errors import InvalidInput
from contact_sim.simulation._state import standing_on

WIDE = {
    'bowl': SphereGround((0.3, 0.2, 4.0), 4.5, hollow=True),
    'dome': SphereGround((0.3, -0.4, -4.0), 4.1),
    'pipe': CylinderGround((0.0, 0.3, 2.0), (1.0, 0.2, 0.1), 2.5, hollow=True),
    'log': CylinderGround((0.0, 0.3, -2.0), (1.0, 0.2, 0.1), 2.5),
    'groove': Planes(),
    'corner': Planes((((0, 0, 1), 0.1), ((1, 0, 0), -2.0))),
    'slope': InclinedPlane(0.3, 0.4),
    'plane': Plane((0.1, 0.2, 1.0), 0.3),
}

load_robot = cache(load_robot)


def gaps(robot, terrain, q):
    """Gaps of all feet, by the distances of their centres."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    centres = [data.oMi[model.getJointId(p.joint)].act(p.offset) for p in robot.contact_points]
    return terrain.signed_distance(centres) - [p.radius for p in robot.contact_points]


@pytest.mark.parametrize('where', [(0.0, 0.0, 0.0), (0.2, -0.3, 0.7)])
@pytest.mark.parametrize('ground', WIDE)
@pytest.mark.parametrize('name', ['go1', 'solo12'])
def test_the_lowest_foot_touches(name, ground, where):
    robot, terrain = load_robot(name), WIDE[ground]
    q = standing_on(robot, terrain, 'standing', *where)
    assert gaps(robot, terrain, q).min() == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(q[3:7]) == pytest.approx(1.0, abs=1e-12)
    base = pin.Quaternion(*q[[6, 3, 4, 5]]).matrix()
    reference = robot.reference_configuration()
    upright = pin.Quaternion(*reference[[6, 3, 4, 5]]).matrix()[2, 2]
    if terrain.features == 1:  # turned with the ground
        assert terrain.normals(q[None, :3])[0] @ base[:, 2] == pytest.approx(upright, abs=1e-6)
    else:
        assert base[2, 2] == pytest.approx(upright)
        assert q[:2] == pytest.approx(where[:2] + reference[:2], abs=1e-9)


@pytest.mark.parametrize('ground', ['slope', 'plane'])
def test_on_a_plane_all_feet_keep_their_height(ground):
    robot, terrain = load_robot('go1'), WIDE[ground]
    flat = gaps(robot, Plane(), standing_on(robot, Plane()))
    assert gaps(robot, terrain, standing_on(robot, terrain)) == pytest.approx(flat, abs=1e-12)


def test_a_ball_at_the_bottom_by_hand():
    small = ball(radius=0.1)
    bowl = SphereGround((0.0, 0.0, 1.0), 1.0, hollow=True)
    assert standing_on(small, bowl)[:3] == pytest.approx([0.0, 0.0, 0.1], abs=1e-15)
    groove = standing_on(small, Planes())
    assert groove[:3] == pytest.approx([0.0, 0.0, 0.1 * np.sqrt(2.0)], abs=1e-15)
    dome = SphereGround((0.0, 0.0, 0.0), 1.0)
    side = standing_on(small, dome, 'standing', 0.6, 0.0)[:3]
    assert side == pytest.approx([0.66, 0.0, 0.88], abs=1e-14)


@pytest.mark.parametrize('name', GROUNDS)
def test_height_is_where_the_ground_begins_from_above(name):
    ground = GROUNDS[name]
    for x, y in np.random.default_rng(8).uniform(-0.3, 0.3, (20, 2)):
        z = ground.height(x, y)
        assert np.isfinite(z)
        below, here, above = ground.signed_distance(
            [[x, y, z - 1e-4], [x, y, z], [x, y, z + 1e-4]]
        )
        assert here == pytest.approx(0.0, abs=1e-12)
        assert below < here < above


def test_where_there_is_no_ground():
    dome = SphereGround((0.0, 0.0, -1.0), 1.0)
    assert np.isnan(dome.height(1.1, 0.0))
    assert np.isnan(Plane((1.0, 0.0, 0.0)).height(0.0, 0.0))
    assert np.isnan(CylinderGround((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 1.0).height(0.0, 0.0))
    with pytest.raises(InvalidInput, match=r'no ground to stand on at x = 2 m, y = 0 m: Sphere'):
        standing_on(ball(), dome, 'standing', 2.0, 0.0)
    with pytest.raises(
        InvalidInput, match=r"robot 'ball' does not fit on SphereGround\(.*standing"
    ):
        standing_on(ball(radius=0.3), SphereGround((0.0, 0.0, 0.2), 0.2, hollow=True))
