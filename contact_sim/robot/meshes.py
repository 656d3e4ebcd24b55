"""Find the mesh files that a robot description names, without ROS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.share import package_folder, share_folders


@dataclass(frozen=True)
class Mesh:
    """A mesh that a link refers to."""

    link: str
    use: str
    """'visual' or 'collision'."""
    uri: str


def meshes(robot: ElementTree.Element) -> Iterator[Mesh]:
    """Yield every mesh of the links of a URDF."""
    for link in robot.iterfind('link'):
        for use in ('visual', 'collision'):
            for mesh in link.iterfind(f'{use}/geometry/mesh'):
                yield Mesh(link.get('name', ''), use, mesh.get('filename', ''))


def mesh_folders(robot: ElementTree.Element, file: Path | None) -> tuple[str, ...]:
    """Return the folders in which `mesh_path` finds the meshes of a URDF."""
    uris = [mesh.uri for mesh in meshes(robot)]
    names = sorted({_package_and_path(uri)[0] for uri in uris} - {''})
    packages = {name: package_folder(name, file) for name in names}
    folders = [str(folder.parent) for folder in packages.values() if folder is not None]
    if file is not None and any(_relative(uri) for uri in uris):
        folders.append(str(file.absolute().parent))
    return tuple(dict.fromkeys(folders))


def mesh_path(uri: str, folders: Iterable[str]) -> str:
    """Return where a mesh with a relative path is, any other URI as it is."""
    if not _relative(uri):
        return uri
    found = (path for path in (Path(folder, unquote(uri)) for folder in folders) if path.is_file())
    return str(next(found, uri))


def _relative(uri: str) -> bool:
    return bool(uri) and not urlparse(uri).scheme and not uri.startswith('/')


def check_meshes_exist(robot: ElementTree.Element, file: Path | None, place: str) -> None:
    """Raise RobotDescriptionError when a mesh of the URDF is not on this machine.

    package:// URIs are looked for in the folders above `file`, in ROS workspaces and in pip
    packages; file:// URIs and plain paths as they are, relative ones beside `file`. URIs with any
    other scheme (http://, model://) are not checked.
    """
    for mesh, why in missing_meshes(robot, file):
        raise RobotDescriptionError(
            f'{place}: link {mesh.link!r}: {mesh.use} mesh {mesh.uri!r} not found: {why}; '
            'where check_meshes is false, a robot is loaded without looking for its meshes'
        )


def missing_meshes(robot: ElementTree.Element, file: Path | None) -> Iterator[tuple[Mesh, str]]:
    """Yield the meshes of a URDF that are not on this machine, and why, see above."""
    known: dict[str, str | None] = {}
    for mesh in meshes(robot):
        if mesh.uri not in known:
            known[mesh.uri] = _why_missing(mesh.uri, file)
        why = known[mesh.uri]
        if why is not None:
            yield mesh, why


def _why_missing(uri: str, file: Path | None) -> str | None:
    package, path = _package_and_path(uri)
    if not uri:
        return 'it has no filename'
    if package:
        folder = package_folder(package, file)
        if folder is None:
            searched = ', '.join(str(folder) for folder in share_folders())
            above = f'the folders above {file}, ' if file is not None else ''
            return f'no package {package!r} in {above}{searched or "no share folder"}'
        return None if (folder / path).is_file() else f'there is no file {folder / path}'
    parsed = urlparse(uri)
    if parsed.scheme not in ('', 'file'):
        return None
    mesh = Path(unquote(parsed.path))
    mesh = mesh if mesh.is_absolute() else (file.parent if file else Path.cwd()) / mesh
    return None if mesh.is_file() else f'there is no file {mesh}'


def _package_and_path(uri: str) -> tuple[str, str]:
    if not uri.startswith('package://'):
        return '', uri
    package, _, path = uri.removeprefix('package://').partition('/')
    return package, path
