"""The ground, and contacts of a robot with it and of bodies with each other."""

from contact_sim.collision._surface import Ground
from contact_sim.collision._terrain import (
    CylinderGround,
    InclinedPlane,
    Plane,
    Planes,
    SphereGround,
    Terrain,
)

__all__ = [
    'CylinderGround',
    'Ground',
    'InclinedPlane',
    'Plane',
    'Planes',
    'SphereGround',
    'Terrain',
]
