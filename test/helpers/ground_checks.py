"""What a surface is, found by brute force: the ground under a point, walls, borders."""

import numpy as np


def heights_under(mesh, x, y):
    """Return the heights of all triangles above or below each point, level or sloped, sorted."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    found = []
    for px, py in zip(x, y, strict=True):
        area = cross(b - a, c - a)
        u = cross(b - a, [px, py, 0.0] - a)
        v = cross([px, py, 0.0] - a, c - a)
        with np.errstate(divide='ignore', invalid='ignore'):
            u, v = u / area, v / area
        inside = (np.abs(area) > 1e-12) & (u >= 0) & (v >= 0) & (u + v <= 1)
        z = a[:, 2] + v * (b - a)[:, 2] + u * (c - a)[:, 2]
        found.append(np.sort(z[inside]))
    return found


def cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def areas(mesh):
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


def volume(mesh):
    """Return the volume inside a closed mesh; negative if it faces inwards."""
    a, b, c = np.moveaxis(mesh.vertices[mesh.triangles], 1, 0)
    return (a * np.cross(b, c)).sum() / 6.0


def level(mesh):
    return mesh.normals[:, 2] > 1.0 - 1e-9


def upright(mesh):
    return np.abs(mesh.normals[:, 2]) < 1e-9


def border_ends(mesh):
    """Return the ends of the edges that belong to one triangle only, shape (n, 2, 3)."""
    ends = np.stack([mesh.triangles, np.roll(mesh.triangles, -1, axis=1)], axis=2)
    return mesh.vertices[ends[mesh.neighbours < 0]]


def edge_counts(mesh):
    """Return in how many triangles each edge is, and how often it is passed upward in index."""
    ends = np.stack([mesh.triangles, np.roll(mesh.triangles, -1, axis=1)], axis=2).reshape(-1, 2)
    ordered = np.sort(ends, axis=1)
    _, number, count = np.unique(ordered, axis=0, return_inverse=True, return_counts=True)
    return count, np.bincount(number.ravel(), weights=ends[:, 0] < ends[:, 1])


def vertices_inside_edges(mesh):
    """Return the number of vertices that lie inside an edge of a triangle."""
    begin = mesh.vertices[mesh.triangles]
    end = np.roll(begin, -1, axis=1)
    along = (end - begin).reshape(-1, 1, 3)
    offset = mesh.vertices - begin.reshape(-1, 1, 3)
    square = (along**2).sum(axis=2)
    share = (offset * along).sum(axis=2) / square
    distance = np.linalg.norm(offset - share[..., None] * along, axis=2)
    return int(((distance < 1e-9) & (share > 1e-9) & (share < 1.0 - 1e-9)).sum())


def assert_walkable(mesh):
    """Level tops and vertical walls, joined without gaps; open only at height 0."""
    assert (level(mesh) | upright(mesh)).all()
    count, forward = edge_counts(mesh)
    assert count.max() <= 2
    assert (forward[count == 2] == 1).all()
    assert np.all(border_ends(mesh)[..., 2] == 0.0)
