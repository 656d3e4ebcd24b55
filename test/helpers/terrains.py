"""Grounds of every kind, and points near them."""

from contact_sim.collision._terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
)

GROUNDS = {
    'plane': Plane((0.2, -0.3, 1.0), 0.1),
    'steep_plane': Plane((2.0, 0.1, 0.3), -0.2),
    'inclined_plane': InclinedPlane(0.3, 1.0),
    'groove': Planes(((( 1.0, 0.2, 1.0), 0.1), ((-1.0, 0.0, 2.0), -0.1))),
    'pit': Planes(
        (((0, 0, 1), 0.0), ((1, 0, 0.2), -0.5), ((-1, 0.3, 0), -0.6), ((0, 1, 0.1), -0.4))
    ),
    'ball': SphereGround((0.1, 0.2, -1.0), 0.9),
    'bowl': SphereGround((0.1, -0.2, 1.0), 1.1, hollow=True),
    'log': CylinderGround((0.1, 0.2, -1.0), (1.0, 0.4, 0.3), 0.9),
    'pipe': CylinderGround((0.1, 0.2, 0.7), (0.3, 2.0, -0.4), 0.8, hollow=True),
}  # fmt: skip


def points_near(ground, random, n=50):
    """Return points (n, 3) within 0.2 m of the ground."""
    points = random.uniform(-1.0, 1.0, (n, 3))
    points -= ground.signed_distance(points)[:, None] * ground.normals(points)
    return points + random.uniform(-0.2, 0.2, (n, 1)) * ground.normals(points)
