"""Surfaces against closed forms: volumes say both the sizes and which side is outside."""

import numpy as np
import pytest

from contact_sim.drawing import _body_meshes
from contact_sim.drawing._body_meshes import Surface, simplified, without_slivers

SIDES = _body_meshes.SIDES


def volume(surface):
    """Return the volume that a closed surface encloses, negative if it is inside out."""
    a, b, c = np.moveaxis(surface.vertices[surface.triangles], 1, 0)
    return float(np.einsum('ij,ij->', a, np.cross(b, c)) / 6.0)


def is_closed(surface):
    """Return whether every edge is passed once in each direction."""
    edges = np.concatenate([surface.triangles[:, [i, (i + 1) % 3]] for i in range(3)])
    there = {tuple(edge) for edge in edges.tolist()}
    return len(there) == len(edges) and there == {(b, a) for a, b in there}


def test_a_box():
    box = _body_meshes.box((0.2, 0.3, 0.7))
    assert is_closed(box)
    assert volume(box) == pytest.approx(0.2 * 0.3 * 0.7, rel=1e-14)
    assert np.ptp(box.vertices, axis=0) == pytest.approx([0.2, 0.3, 0.7])


def test_a_cylinder_is_a_prism():
    polygon = 0.5 * SIDES * np.sin(2.0 * np.pi / SIDES) * 0.1**2
    cylinder = _body_meshes.cylinder(0.1, 0.5)
    assert is_closed(cylinder)
    assert volume(cylinder) == pytest.approx(0.5 * polygon, rel=1e-13)
    assert np.ptp(cylinder.vertices[:, 2]) == pytest.approx(0.5)


@pytest.mark.parametrize('length', [0.0, 0.4])
def test_spheres_and_capsules(length):
    capsule = _body_meshes.capsule(0.1, length)
    core = np.clip(capsule.vertices[:, 2], -0.5 * length, 0.5 * length)
    away = capsule.vertices - core[:, None] * [0.0, 0.0, 1.0]
    assert is_closed(capsule)
    assert np.linalg.norm(away, axis=1) == pytest.approx(0.1)
    assert capsule.vertices[:, 2].max() == pytest.approx(0.5 * length + 0.1)
    whole = np.pi * 0.1**2 * (4.0 / 3.0 * 0.1 + length)
    assert 0.96 * whole < volume(capsule) < whole  # its corners are on the surface


def test_slivers_go_and_nothing_else():
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]])
    found = without_slivers(corners, np.array([[0, 1, 2], [1, 3, 2], [3, 4, 2]]))
    assert len(found.vertices) == 4
    assert len(found.triangles) == 2
    a, b, c = np.moveaxis(found.vertices[found.triangles], 1, 0)
    assert 0.5 * np.cross(b - a, c - a)[:, 2].sum() == pytest.approx(1.0)


def fine_sphere():
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 1501)
    return _body_meshes.revolved(np.cos(angle), np.sin(angle))


def test_a_thinned_sphere_is_a_sphere():
    sphere = fine_sphere()
    assert len(sphere.triangles) > 70_000
    found = simplified(sphere, 5000)
    assert 1000 < len(found.triangles) <= 5000
    radii = np.linalg.norm(found.vertices, axis=1)
    assert radii.min() > 0.98
    assert radii.max() <= 1.0
    assert volume(found) == pytest.approx(volume(sphere), rel=0.02)


def test_what_is_small_enough_stays():
    box = _body_meshes.box((1.0, 1.0, 1.0))
    assert simplified(box, 12) is box


def test_a_flat_surface_is_thinned_too():
    corners = np.random.default_rng(0).uniform(size=(3000, 3)) * [1.0, 1.0, 0.0]
    found = simplified(Surface(corners, np.arange(3000).reshape(-1, 3)), 100)
    assert 0 < len(found.triangles) <= 100
