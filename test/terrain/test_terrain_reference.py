"""docs/terrain.md says what the code says."""

import re

import numpy as np
import pytest
from PIL import Image

from contact_sim import load_robot
from contact_sim.ros.generate import SOURCE_TREE, TERRAIN_PAGE, terrain_tables
from contact_sim.terrain import SUB_TERRAINS

PAGE = SOURCE_TREE / TERRAIN_PAGE


def test_every_kind_and_parameter_is_in_the_tables():
    text = terrain_tables()
    for name, cls in SUB_TERRAINS.items():
        assert f'### `{name}`' in text
        assert all(f'| `{field}` |' in text for field in cls.__dataclass_fields__)


def test_the_code_on_the_page_runs(tmp_path, monkeypatch):
    trimesh = pytest.importorskip('trimesh')
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.zeros((5, 5), dtype=np.uint16)).save('hill.png')
    trimesh.creation.box().export('site.stl')
    (tmp_path / 'ground.yaml').write_text('size: [4, 4]\nsub_terrains: {plane: {}}\n')
    names = {
        'robot': load_robot('go1'),
        'vertices': [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
        'triangles': [[0, 1, 2]],
    }
    blocks = re.findall(r'```python\n(.*?)```', PAGE.read_text(encoding='utf-8'), re.DOTALL)
    for block in blocks:
        exec(compile(block, PAGE.name, 'exec'), names)
    assert len(blocks) == 4
    assert len(names['ground'].fields) > 0
    assert {region.friction for region in names['ground'].regions} == {0.5}
