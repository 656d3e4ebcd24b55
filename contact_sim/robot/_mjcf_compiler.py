"""Compile an MJCF with MuJoCo, within the limits of what reading may cost.

Before MuJoCo opens a file or repeats an element, its text and the files that it names are checked.
Pictures are left out, and so is the memory that the file asks for its simulation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter
from xml.etree.ElementTree import Element

import numpy as np

from contact_sim import _reading
from contact_sim.errors import MissingMesh, RobotDescriptionError, shown
from contact_sim.robot._urdf import Description, parse_xml, read_text

MEMORY = 1 << 26
"""Memory that MuJoCo has for the stack and contacts of its compiler [bytes]."""


def compiled(
    description: Description, check_meshes: bool, notes: list[str]
) -> tuple[Any, Any, Any, dict[str, Path | None]]:
    """Return the module mujoco, its MjSpec and MjModel, and the meshes that were not compiled.

    Those only draw a robot whose masses do not depend on them, or are not on this machine, which
    is allowed without `check_meshes`: their files by name, None where there is none. What is left
    out, and what MuJoCo warns of, is added to `notes`.
    """
    file, place = description.file, description.place
    try:
        import mujoco
    except ImportError as error:
        raise RobotDescriptionError(
            f'{place} is an MJCF, which MuJoCo reads: pip install "contact_sim[mjcf]"'
        ) from error
    _check_expansion(description.root, file, place)
    warnings: list[str] = []
    with _without_log(mujoco, warnings):
        with _errors_of(mujoco, place):
            if file is not None:
                spec = mujoco.MjSpec.from_file(str(file))
            else:
                spec = mujoco.MjSpec.from_string(description.text)
        for skin in spec.skins:
            notes.append(f'skins are left out: skin {shown(skin.name)}')
            spec.delete(skin)
        drawn = _checked_files(mujoco, spec, file, place, check_meshes)
        with _errors_of(mujoco, place), catch_warnings(record=True) as caught:
            simplefilter('always')
            model = spec.compile()
    warnings += [str(warning.message) for warning in caught]
    notes += [f'MuJoCo warns: {" ".join(warning.split())}' for warning in warnings]
    return mujoco, spec, model, drawn


def _check_expansion(root: Element, file: Path | None, place: str) -> None:
    """Refuse includes that are no plain files, and elements that repeat beyond the limits."""
    seen: set[str] = set()
    total = 0.0

    def expanded(element: Element) -> float:
        nonlocal total
        size = 1.0 + sum(map(expanded, element))
        if element.tag in ('replicate', 'composite', 'flexcomp'):
            for word in element.get('count', '1').split():
                size *= max(_float(word), 1.0)
        if element.tag == 'hfield':
            size += max(_float(element.get('nrow', '0')), 0.0) * _float(element.get('ncol', '0'))
        if element.tag == 'include' or (element.tag == 'model' and element.get('file')):
            size += included(element.get('file', ''))
        return size

    def included(name: str) -> float:
        folder = file.parent if file is not None else Path()
        other = folder / name
        if not name or str(other) in seen or not other.exists():
            return 0.0  # MuJoCo says what is wrong
        seen.add(str(other))
        return expanded(parse_xml(read_text(other), str(other)))

    with _reading.reading(place, RobotDescriptionError):
        total = expanded(root)
        if total > _reading.limits().entries:
            raise _reading.beyond(place, f'{total:g} elements after repetition', 'entries')


def _float(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return 0.0


def _checked_files(
    mujoco: Any, spec: Any, file: Path | None, place: str, check_meshes: bool
) -> dict[str, Path | None]:
    """Check the files of assets, and leave out what only draws; see `compiled`."""
    spec.memory = MEMORY
    _leave_out_textures(mujoco, spec, file, place, check_meshes)
    folder = (Path() if file is None else file.parent) / spec.meshdir
    meshes: dict[str, Path | None] = {}
    for kind, assets in (('mesh', spec.meshes), ('hfield', spec.hfields)):
        for asset in assets:
            if not asset.file:
                continue
            name = asset.name or Path(asset.file).stem
            where = f'{place}: {kind} {shown(name)}'
            if file is None:
                raise MissingMesh(
                    f'{where}: file {shown(asset.file)}: text has no folder where it could be; '
                    'give load_robot the path of the MJCF'
                )
            named = os.path.basename(asset.file) if spec.strippath else asset.file
            path = folder / named
            if path.exists():
                with _reading.reading(where, RobotDescriptionError):
                    _reading.mesh_file(path) if kind == 'mesh' else _reading.regular_file(path)
                if kind == 'mesh':
                    meshes[name] = path
            elif kind == 'mesh' and not check_meshes:
                meshes[name] = None
            else:
                raise MissingMesh(
                    f'{where}: no file {path}; where check_meshes is false, a robot is loaded '
                    'without the meshes that only draw it'
                )
    needed = _needed_meshes(mujoco, spec)
    for name, use in needed.items():
        if name in meshes and meshes[name] is None and use != 'contacts':
            raise RobotDescriptionError(
                f'{place}: mesh {shown(name)} is not on this machine, and {use} needs it'
            )
    drawn = {name: path for name, path in meshes.items() if path is None or name not in needed}
    corners = [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    for mesh in spec.meshes:
        name = mesh.name or Path(mesh.file).stem
        if name in drawn:  # a small box in its place
            mesh.name, mesh.file, mesh.content_type = name, '', ''
            mesh.uservert = (0.01 * np.array(corners, float)).ravel().tolist()
    return drawn


def _leave_out_textures(
    mujoco: Any, spec: Any, file: Path | None, place: str, check_files: bool
) -> None:
    """Put one colour in the place of pictures, which play no part here; check that they exist."""
    beside = Path() if file is None else file.parent
    for k, texture in enumerate(spec.textures):
        where = f'{place}: texture {shown(texture.name)}'
        files = [name for name in (texture.file, *texture.cubefiles) if name]
        if files:
            for name in files if check_files and file is not None else ():
                named = os.path.basename(name) if spec.strippath else name
                if not (beside / spec.texturedir / named).is_file():
                    raise MissingMesh(f'{where}: no file {shown(name)}')
            texture.name = texture.name or Path(files[0]).stem or f'texture {k}'
            texture.file, texture.cubefiles = '', [''] * 6
            texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT
            texture.type = mujoco.mjtTexture.mjTEXTURE_2D
            texture.width = texture.height = 1
        elif 18.0 * texture.width * max(texture.height, 1) > _reading.limits().bytes:
            raise _reading.beyond(where, f'{texture.width} x {texture.height} pixels', 'bytes')


def _needed_meshes(mujoco: Any, spec: Any) -> dict[str, str]:
    """Return what needs a mesh besides pictures, by its name: contacts, a shape or an inertia."""
    of_geoms = int(spec.compiler.inertiafromgeom) == 1
    paired = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
    needed: dict[str, str] = {}
    mesh = int(mujoco.mjtGeom.mjGEOM_MESH)

    def visit(body: Any, moving: bool) -> None:
        moving = moving or len(body.joints) > 0
        massive = moving and (of_geoms or not body.explicitinertial)
        for geom in body.geoms:
            if not geom.meshname:
                continue
            if int(geom.type) != mesh:
                needed[geom.meshname] = f'the shape of a geom of body {shown(body.name)}'
            elif massive:
                needed[geom.meshname] = f'the inertia of body {shown(body.name)}'
            elif geom.contype or geom.conaffinity or geom.name in paired:
                needed.setdefault(geom.meshname, 'contacts')
        for child in body.bodies:
            visit(child, moving)

    visit(spec.worldbody, False)
    return needed


@contextmanager
def _errors_of(mujoco: Any, place: str) -> Iterator[None]:
    """Turn what MuJoCo raises into RobotDescriptionError."""
    try:
        yield
    except (ValueError, RuntimeError, TypeError, IndexError, KeyError, mujoco.FatalError) as error:
        if 'unknown exception' in str(error):  # of C++: no memory
            raise _reading.beyond(place, 'MuJoCo takes more memory', 'bytes') from error
        reason = '; '.join(line.strip() for line in str(error).splitlines() if line.strip())
        raise RobotDescriptionError(f'{place}: MuJoCo: {reason}') from error


@contextmanager
def _without_log(mujoco: Any, warnings: list[str]) -> Iterator[None]:
    """Collect the warnings of MuJoCo, which else writes them to a file in this folder."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(warnings.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
