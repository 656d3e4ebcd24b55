"""Descriptions of real ground as data: height fields, meshes, regions, and what generates them."""

from contact_sim.terrain.generator import GeneratedTerrain, TerrainGenerator
from contact_sim.terrain.height_field import HeightField
from contact_sim.terrain.region import Region
from contact_sim.terrain.sub_terrain import SubTerrain
from contact_sim.terrain.sub_terrains import SUB_TERRAINS, sub_terrain
from contact_sim.terrain.terraces import Terraces, blocks_on
from contact_sim.terrain.triangle_mesh import TriangleMesh, boxes, concatenate

__all__ = [
    'SUB_TERRAINS',
    'GeneratedTerrain',
    'HeightField',
    'Region',
    'SubTerrain',
    'Terraces',
    'TerrainGenerator',
    'TriangleMesh',
    'blocks_on',
    'boxes',
    'concatenate',
    'sub_terrain',
]
