"""Mesh files as surfaces in colours: COLLADA is read here, all else by trimesh."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np

from contact_sim.drawing.collada import Part, collada_parts
from contact_sim.drawing.style import Colour
from contact_sim.drawing.surfaces import Surface, thinned, without_slivers
from contact_sim.errors import shown
from contact_sim.robot.meshes import mesh_path

Parts = tuple[tuple[Surface, Colour | None], ...]
MOST_TRIANGLES = 5_000
"""Triangles of a mesh of which more is not seen: those of go1's trunk are 351 394."""


def mesh_file(uri: str, folders: tuple[str, ...]) -> Path:
    """Return the file of a mesh of a description.

    Args:
        uri: as the description has it.
        folders: those of packages, and where relative meshes are.

    Raises:
        ValueError: it is not on this machine; the message says where it was looked for.
    """
    path = mesh_path(uri, folders)
    if path.startswith('package://'):
        below = unquote(path.removeprefix('package://'))
        files = [Path(folder, below) for folder in folders]
    else:
        files = [Path(unquote(urlparse(path).path))]
    found = next((file for file in files if file.is_file()), None)
    if found is None:
        raise ValueError(f'mesh {shown(uri)} not found in {", ".join(folders) or "any folder"}')
    return found


def mesh_parts(file: Path, scale: tuple[float, float, float]) -> Parts:
    """Return the surfaces in a mesh file, with fewer triangles where there are very many.

    Args:
        file: its path; .dae, or any format that trimesh reads.
        scale: along x, y and z [-].

    Raises:
        ValueError: it cannot be read, or has no triangles.
    """
    return _read(file, scale, file.stat().st_mtime_ns)


@lru_cache(maxsize=128)
def _read(file: Path, scale: tuple[float, float, float], changed: int) -> Parts:
    """Return the same objects every time, until the file is changed."""
    try:
        parts = collada_parts(file) if file.suffix.lower() == '.dae' else list(_others(file))
    except Exception as error:  # trimesh passes on whatever its readers raise
        raise ValueError(f'mesh {shown(str(file))} cannot be read: {error}') from error
    total = sum(len(triangles) for _, triangles, _ in parts)
    if not total:
        raise ValueError(f'mesh {shown(str(file))} has no triangles')
    found = []
    for vertices, triangles, colour in parts:
        order = triangles if np.prod(scale) > 0.0 else triangles[:, ::-1]
        surface = without_slivers(vertices * scale, order)
        most = max(MOST_TRIANGLES * len(triangles) // total, 12)
        found.append((thinned(surface, most), colour))
    return tuple(found)


def _others(file: Path) -> Iterator[Part]:
    try:
        import trimesh
    except ImportError as error:
        raise ValueError("trimesh is not installed: pip install 'contact_sim[view]'") from error
    for mesh in trimesh.load_scene(file).dump(concatenate=False):
        if len(mesh.faces):
            yield np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces), _colour(mesh)


def _colour(mesh: Any) -> Colour | None:
    visual = mesh.visual
    source = getattr(visual, 'material', visual if visual.defined else None)
    if source is None:
        return None
    r, g, b = (float(part) / 255.0 for part in source.main_color[:3])
    return r, g, b, 1.0
