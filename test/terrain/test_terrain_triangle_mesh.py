"""Triangle meshes: what is a surface is kept, what is none is refused with its place."""

import sys

import numpy as np
import pytest
from ground_checks import areas, edge_counts, volume
from hypothesis import given, settings
from hypothesis import strategies as st

from contact_sim.errors import InvalidInput
from contact_sim.terrain import TriangleMesh, boxes, concatenate

SQUARE = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0]]


def test_neighbours_and_normals_of_a_square():
    mesh = TriangleMesh(SQUARE, [[0, 1, 2], [0, 2, 3]])
    assert mesh.neighbours.tolist() == [[-1, -1, 1], [0, -1, -1]]
    assert mesh.normals.tolist() == [[0, 0, 1], [0, 0, 1]]
    assert mesh.dropped == 0


def test_vertices_at_one_place_are_one():
    corners = np.array(SQUARE)[[0, 1, 2, 0, 2, 3]]
    corners[3] += 1e-12  # where rounding put it
    mesh = TriangleMesh(corners, [[0, 1, 2], [3, 4, 5]])
    assert len(mesh.vertices) == 4
    assert mesh.neighbours.max() == 1


def test_vertices_without_triangle_go():
    mesh = TriangleMesh([*SQUARE, [9.0, 9.0, 9.0]], [[0, 1, 2]])
    assert len(mesh.vertices) == 3


def test_triangles_without_area_are_dropped_and_counted():
    middle = [0.5, 0.5, 0.0]
    mesh = TriangleMesh([*SQUARE, middle], [[0, 1, 2], [0, 2, 4], [1, 1, 2], [0, 2, 3]])
    assert mesh.dropped == 2
    assert len(mesh.triangles) == 2


def test_arrays_are_copied_and_fixed():
    vertices = np.array(SQUARE)
    mesh = TriangleMesh(vertices, [[0, 1, 2]])
    vertices[:] = 7.0
    assert mesh.vertices.max() == 1.0
    for values in (mesh.vertices, mesh.triangles):
        with pytest.raises(ValueError, match='read-only'):
            values[0] = 0


@pytest.mark.parametrize(
    ('vertices', 'triangles', 'message'),
    [
        (np.empty((0, 3)), np.empty((0, 3), dtype=int), 'at least one triangle'),
        (SQUARE, np.empty((0, 3), dtype=int), 'at least one triangle'),
        (SQUARE, [[0, 1, 1]], 'at least one triangle with an area'),
        (SQUARE, [[0, 1, 4]], 'indices 0 to 4, expected 0 to 3'),
        (SQUARE, [[0, 1, -1]], 'indices -1 to 1'),
        (SQUARE, [[0, 1]], r'shape \(1, 2\), expected integers'),
        (SQUARE, [[0.0, 1.0, 2.0]], 'expected integers'),
        ([[0.0, 0.0], [1.0, 0.0]], [[0, 1, 1]], r'vertices: .*shape \(2, 2\)'),
        ([*SQUARE[:2], [np.nan, 0.0, 0.0]], [[0, 1, 2]], r'vertices\[2\].*not finite'),
    ],
)
def test_bad_numbers_are_refused(vertices, triangles, message):
    with pytest.raises(InvalidInput, match=message):
        TriangleMesh(vertices, triangles)


def test_neighbours_that_face_opposite_ways_are_refused():
    with pytest.raises(InvalidInput, match='triangles 0, 1 face opposite ways at the edge from'):
        TriangleMesh(SQUARE, [[0, 1, 2], [0, 3, 2]])


def test_an_edge_of_three_triangles_is_refused():
    with pytest.raises(InvalidInput, match=r'triangles 0, 1, 2 share the edge .*at most two'):
        TriangleMesh([*SQUARE, [0.0, 0.0, 1.0]], [[0, 1, 2], [0, 2, 3], [2, 0, 4]])


def test_faces_that_pass_through_each_other_are_refused():
    """Two sheets that cross in a line, both seen from above: no outside of anything."""
    x = [[0, 0, 0], [1, 0, 0], [0.5, 1, 0.1], [0.5, 1, -0.1], [0.5, -1, 0.1], [0.5, -1, -0.1]]
    with pytest.raises(InvalidInput, match='pass through each other at the edge from'):
        TriangleMesh(x, [[0, 1, 2], [0, 1, 3], [1, 0, 4], [1, 0, 5]])


def test_boxes_are_closed_and_face_outwards():
    mesh = boxes([[0.0, 0.0, 0.0], [5.0, 0.0, -1.0]], [[1.0, 2.0, 3.0], [6.0, 1.0, 1.0]])
    assert volume(mesh) == pytest.approx(6.0 + 2.0)
    assert mesh.neighbours.min() == 0
    assert (edge_counts(mesh)[0] == 2).all()
    assert (len(mesh.vertices), len(mesh.triangles)) == (16, 24)


def test_boxes_that_touch_in_an_edge_keep_an_edge_each():
    mesh = boxes([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]], [[1.0, 1.0, 1.0], [2.0, 2.0, 1.0]])
    assert (edge_counts(mesh)[0] == 2).all()
    assert len(mesh.vertices) == 16
    corners = mesh.vertices[mesh.triangles]
    first = set(np.flatnonzero((corners[..., :2] <= 1.0).all(axis=(1, 2))))
    assert len(first) == 12
    assert all(set(mesh.neighbours[t]) <= first for t in first)  # each joined to its own box


@settings(max_examples=50, deadline=None)
@given(st.sets(st.tuples(*3 * [st.integers(0, 2)]), min_size=1, max_size=12))
def test_cubes_that_touch_anyhow_stay_solids(cells):
    """Also where cubes share faces: twice as many faces there, but each edge in two triangles."""
    low = np.array(sorted(cells), dtype=float)
    mesh = boxes(low, low + 1.0)
    assert volume(mesh) == pytest.approx(len(cells))
    assert areas(mesh).sum() == pytest.approx(6.0 * len(cells))
    count, forward = edge_counts(mesh)
    assert (count == 2).all()
    assert (forward == 1).all()


@pytest.mark.parametrize(
    ('low', 'high', 'message'),
    [
        ([0.0, 0.0, 0.0], [1.0, 0.0, 1.0], 'has no volume'),
        ([0.0, 0.0, 0.0], [1.0, 1.0, np.nan], 'not finite'),
        ([0.0, 0.0], [1.0, 1.0], 'expected'),
        ([0.0, 0.0, 0.0], [[1.0] * 3, [2.0] * 3], 'expected'),
    ],
)
def test_bad_boxes_are_refused(low, high, message):
    with pytest.raises(InvalidInput, match=message):
        boxes(low, high)


def test_meshes_that_share_an_edge_become_one():
    left = TriangleMesh(SQUARE, [[0, 1, 2], [0, 2, 3]])
    right = TriangleMesh(np.array(SQUARE) + [1.0, 0.0, 0.0], [[0, 1, 2], [0, 2, 3]])
    both = concatenate([left, right])
    assert len(both.vertices) == 6
    assert (both.neighbours >= 0).sum() == 2 * 3
    with pytest.raises(InvalidInput, match='at least one triangle'):
        concatenate([])


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r'none\.stl: No such file'):
        TriangleMesh.from_file(tmp_path / 'none.stl')


def test_without_trimesh_the_error_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / 'a.stl').write_text('solid')
    monkeypatch.setitem(sys.modules, 'trimesh', None)
    with pytest.raises(InvalidInput, match='pip install trimesh'):
        TriangleMesh.from_file(tmp_path / 'a.stl')


@pytest.mark.parametrize('scale', [0.0, -1.0, np.nan])
def test_a_scale_that_is_not_positive_is_refused(tmp_path, scale):
    with pytest.raises(InvalidInput, match='scale'):
        TriangleMesh.from_file(tmp_path / 'a.stl', scale)


@pytest.mark.parametrize('suffix', ['stl', 'obj', 'ply', 'glb'])
def test_files_give_the_mesh_that_was_written(tmp_path, suffix):
    trimesh = pytest.importorskip('trimesh')
    cube = boxes([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])
    path = tmp_path / f'cube.{suffix}'
    trimesh.Trimesh(1000.0 * cube.vertices, cube.triangles).export(path)
    read = TriangleMesh.from_file(path, scale=1e-3)
    assert volume(read) == pytest.approx(6.0)
    assert (len(read.vertices), len(read.triangles)) == (8, 12)
    assert np.allclose(np.ptp(read.vertices, axis=0), [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ('name', 'text', 'message'),
    [
        ('broken.stl', 'this is no mesh', 'trimesh cannot read it|no triangles'),
        ('a.mesh3', 'x', 'trimesh cannot read it'),
        ('points.obj', 'v 0 0 0\nv 1 0 0\nv 0 1 0\n', 'no triangles|cannot read'),
        (
            'twisted.obj',
            'v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 1 4 3\n',
            r'twisted\.obj: .*face opposite ways',
        ),
        (
            'equal.obj',
            'v 0 0 0\nv 1 0 0\nv 0 1 0\n' + 'f 1 2 3\n' * 1000,
            r'triangles 0, 1, 2, 3, 4, 5 and 994 others share the edge from [^;]{1,200}$',
        ),
    ],
)
def test_bad_files_are_refused(tmp_path, name, text, message):
    pytest.importorskip('trimesh')
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=message):
        TriangleMesh.from_file(tmp_path / name)


def test_building_the_mesh_of_a_file_takes_no_more_memory_than_the_limit(tmp_path, monkeypatch):
    pytest.importorskip('trimesh')
    (tmp_path / 'a.obj').write_text('v 0 0 0\nv 1 0 0\nv 0 1 0\n' + 'f 1 2 3\n' * 300)
    monkeypatch.setenv('CONTACT_SIM_READING', 'bytes=30e6')

    def build(mesh):
        bytearray(2_000_000_000)  # more than a process can have free, which is under no limit

    monkeypatch.setattr(TriangleMesh, '__post_init__', build)
    with pytest.raises(InvalidInput, match=r'a\.obj: reading it takes more memory'):
        TriangleMesh.from_file(tmp_path / 'a.obj')
