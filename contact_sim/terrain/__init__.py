"""Ground as data: height fields, meshes, regions, and generators."""

from contact_sim.terrain._generator import GeneratedTerrain, Region, TerrainGenerator
from contact_sim.terrain._grid import ScanGrid
from contact_sim.terrain._height_field import HeightField
from contact_sim.terrain._sub_terrains import SUB_TERRAINS, SubTerrain, sub_terrain
from contact_sim.terrain._terraces import Terraces, blocks_on
from contact_sim.terrain._triangle_mesh import SEAM, TriangleMesh, boxes, concatenate, united

__all__ = [
    'SEAM',
    'SUB_TERRAINS',
    'GeneratedTerrain',
    'HeightField',
    'Region',
    'ScanGrid',
    'SubTerrain',
    'Terraces',
    'TerrainGenerator',
    'TriangleMesh',
    'blocks_on',
    'boxes',
    'concatenate',
    'sub_terrain',
    'united',
]
