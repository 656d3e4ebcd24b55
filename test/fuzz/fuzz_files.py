"""Damaged files of every other kind: heights, images, YAML, meshes, bags, tables, policies.

Each is a sound file with some bytes or words changed; what is read has to hold finite numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attacks
import numpy as np
from fuzz_bytes import cut, damaged, flip, odd_member
from fuzz_values import NUMBERS, shown
from fuzz_workers import Unlawful
from PIL import Image

from contact_sim import Simulator, load_robot
from contact_sim.replay import Recorder, Recording, Targets, export

GROUND = """
size: [4.0, 4.0]
num_rows: 1
num_cols: 2
seed: 3
sub_terrains:
  gap: {proportion: 0.5, gap_width_range: [0.1, 0.3], platform_width: 2}
  random_rough: {proportion: 0.5, noise_range: [0.0, 0.02], noise_step: 0.01}
"""
SCENARIO = 'seconds: 4.0\nspeed: 0.3\npatch: [0.5, 1.5]\npatch_friction: 0.1\nleast_speed: 0.15\n'
POLICY = """
network: none.onnx
layout: legged_gym
joints: {joints}
pose: standing
gains: {{kp: 20.0, kd: 0.5}}
action: {{scale: 0.25, clip: 100.0}}
period: 0.02
"""
SRDF = (
    '<robot name="quadruped"><group_state name="standing" group="all">'
    '<joint name="LF_HAA" value="0.1"/></group_state>'
    '<end_effector name="f" parent_link="y" group="g"/>'
    '<disable_collisions link1="a" link2="b"/></robot>'
)
OBJ = 'mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 3 4\nf 1 4 2\nf 2 4 3\n'
PLY = (
    'ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n'
    'property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n'
    '0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n'
)
DAE = (
    '<COLLADA><asset><unit meter="0.1"/></asset><library_geometries><geometry id="g"><mesh>'
    '<source id="s"><float_array>0 0 0 1 0 0 0 1 0</float_array></source><vertices id="v">'
    '<input semantic="POSITION" source="#s"/></vertices><triangles count="1"><input '
    'semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles></mesh></geometry>'
    '</library_geometries><library_visual_scenes><visual_scene><node><translate>0 0 1</translate>'
    '<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes></COLLADA>'
)
WORDS = ('nan', '.inf', '-1', '1e308', '1e-310', '99999999999', '[]', '{}', '*x', '&x', '!!python',
         'null', '""', '2001-99-99', '0x', '-', ':', '1:2:3', 'ä', '\0')  # fmt: skip


class Files:
    """Inputs of the kind `files`."""

    def __init__(self, folder: Path) -> None:
        self.said: str | Callable[[], str] = ''
        self._folder = folder
        robot = load_robot('quadruped')
        sim = Simulator(robot)
        with Recorder(sim, folder / 'run.npz'):
            for _ in range(6):
                sim.step(np.zeros(robot.n_joints))
        export(Recording(folder / 'run.npz'), Targets(mcap=folder / 'run.mcap'))
        heights = np.random.default_rng(0).uniform(0.0, 0.1, (5, 6))
        np.save(folder / 'a.npy', heights)
        Image.fromarray((heights * 1e4).astype(np.uint16)).save(folder / 'a.png')
        np.savez(
            folder / 'steps.npz', time=np.arange(3.0) * 1e-3, q=np.zeros((3, robot.nq)),
            v=np.zeros((3, robot.nv)),
        )  # fmt: skip
        attacks.table(folder, 1.0)
        read = {
            'a.npy': attacks.read_heights, 'a.png': attacks.read_heights,
            'ground.yaml': attacks.read_ground, 'scenario.yaml': attacks.read_scenario,
            'policy.yaml': attacks.read_policy, 'a.srdf': attacks.read_srdf,
            'run.mcap': attacks.read_bag, 'steps.npz': attacks.read_steps,
            'a.obj': attacks.read_mesh, 'a.ply': attacks.read_mesh, 'a.stl': attacks.read_mesh,
            'drawn.obj': attacks.read_drawn_mesh, 'drawn.dae': attacks.read_drawn_mesh,
            'drawn.stl': attacks.read_drawn_mesh, 'solid.stl': attacks.read_collision_mesh,
            'solid.dae': attacks.read_collision_mesh,
        }  # fmt: skip
        texts = {
            'ground.yaml': GROUND, 'scenario.yaml': SCENARIO,
            'policy.yaml': POLICY.format(joints=list(robot.joint_names)),
            'a.srdf': SRDF, 'a.obj': OBJ, 'drawn.obj': OBJ, 'a.ply': PLY, 'drawn.dae': DAE,
            'solid.dae': DAE,
        }  # fmt: skip
        stl = _stl(*_cube())
        binary = dict.fromkeys(('a.stl', 'drawn.stl', 'solid.stl'), stl)
        self._texts = texts
        self._whole = {name: text.encode() for name, text in texts.items()} | binary
        for name in ('a.npy', 'a.png', 'run.mcap', 'steps.npz'):
            self._whole[name] = (folder / name).read_bytes()
        self._whole['part'] = (folder / 'table' / 'part-000000.parquet').read_bytes()
        self._read = {**read, 'part': attacks.read_table}
        (folder / 'odd').mkdir()
        (folder / 'odd' / 'table').mkdir()

    def content(self, name: str, chance: random.Random) -> bytes:
        """Return a damaged file."""
        whole = self._whole[name]
        if name == 'steps.npz':
            return damaged(whole, chance)
        if name == 'a.npy' and chance.random() < 0.6:
            return odd_member(chance, whole)
        if name in self._texts and chance.random() < 0.6:
            words = self._texts[name].split(' ')
            for _ in range(chance.choice((1, 1, 2, 3))):
                odd = chance.choice((*WORDS, str(chance.choice(NUMBERS))))
                words[chance.randrange(len(words))] = odd
            return ' '.join(words).encode(errors='replace')
        data = bytearray(whole)
        what = chance.randrange(4)
        if what == 0:
            cut(data, chance)
        elif what == 1:
            flip(data, chance)
        elif what == 2:
            place = chance.randrange(len(data))
            data[place : place + 8] = chance.choice((bytes(8), b'\xff' * 8, chance.randbytes(8)))
        return bytes(data)

    def run(self, chance: random.Random) -> None:
        """Read one damaged file."""
        name = chance.choice(sorted(self._whole))
        content = self.content(name, chance)
        self.said = partial(shown, (name, content), 600)
        place = 'table/part-000000.parquet' if name == 'part' else name
        path = self._folder / 'odd' / place
        path.write_bytes(content)
        read = self._read[name](path)
        for value in _numbers_of(read):
            if not np.isfinite(value).all():
                raise Unlawful(f'{name}: numbers that are not finite')


def _numbers_of(read: Any) -> list[np.ndarray]:
    """Return heights, corners and states of what was read."""
    found = [getattr(read, name, None) for name in ('heights', 'vertices', 'q', 'v', 'time')]
    return [value for value in found if isinstance(value, np.ndarray)]


def _cube() -> tuple[np.ndarray, np.ndarray]:
    """Return the corners (8, 3) and triangles (12, 3) of a cube."""
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], dtype=float)
    faces = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return corners, np.array([t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))])


def _stl(corners: np.ndarray, triangles: np.ndarray) -> bytes:
    """Return a binary STL."""
    records = np.zeros(len(triangles), dtype=[('n', '<f4', 3), ('p', '<f4', 9), ('a', '<u2')])
    records['p'] = corners[triangles].reshape(-1, 9)
    return bytes(80) + np.uint32(len(triangles)).tobytes() + records.tobytes()
