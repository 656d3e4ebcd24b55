"""Files of robot descriptions: share folders, packages, meshes, and xacro."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from contact_sim import _reading
from contact_sim.errors import InvalidInput, MissingMesh, RobotDescriptionError, shown


def share_path(*parts: str) -> Path:
    """Return the path of a file or folder that contact_sim ships, e.g. ('urdf', 'x.urdf.xacro').

    Looked for in the ament index, then in share/contact_sim of the Python environment, then in
    the source tree.

    Raises:
        InvalidInput: it is in none of them; the message lists the folders.
    """
    roots = [Path(sys.prefix) / 'share' / 'contact_sim', Path(__file__).resolve().parents[2]]
    try:
        from ament_index_python.packages import get_package_share_directory

        roots.insert(0, Path(get_package_share_directory('contact_sim')))
    except (ImportError, LookupError, OSError):
        pass  # no ROS here, or not installed into it
    path = next((path for root in roots if (path := root.joinpath(*parts)).exists()), None)
    if path is None:
        searched = ', '.join(str(root) for root in roots)
        raise InvalidInput(f'contact_sim has no file {"/".join(parts)!r}; searched in {searched}')
    return path


def share_folders() -> tuple[Path, ...]:
    """Return the folders that hold installed packages (<prefix>/share), most specific first."""
    folders = [Path(p) / 'share' for p in _path_list('AMENT_PREFIX_PATH')]
    folders += [Path(p) for p in _path_list('ROS_PACKAGE_PATH')]
    folders.append(Path(sys.prefix) / 'share')
    folders += [Path(p) / 'cmeel.prefix' / 'share' for p in sys.path if p]
    return tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))


def package_folder(name: str, file: Path | None) -> Path | None:
    """Return the folder of package `name`: above `file`, or where packages are installed."""
    above: Iterable[Path] = ()
    if file is not None:  # as installed first, then where a symbolic link leads to
        above = dict.fromkeys([*file.absolute().parents, *file.resolve().parents])
    candidates = [folder if folder.name == name else folder / name for folder in above]
    candidates += [folder / name for folder in share_folders()]
    return next((folder for folder in candidates if folder.is_dir()), None)


def _path_list(variable: str) -> list[str]:
    return [part for part in os.environ.get(variable, '').split(os.pathsep) if part]


def mesh_prefixes() -> str:
    """Return AMENT_PREFIX_PATH with the prefixes of everything that `load_robot` finds."""
    found = [str(share.parent) for share in share_folders() if (share / 'ament_index').is_dir()]
    return os.pathsep.join(dict.fromkeys([*_path_list('AMENT_PREFIX_PATH'), *found]))


# ------------------------------------------------------------------------------------------ meshes


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
    """Return the folders in which `mesh_file` finds the meshes of a URDF."""
    uris = [mesh.uri for mesh in meshes(robot)]
    names = sorted({_package_and_path(uri)[0] for uri in uris} - {''})
    packages = {name: package_folder(name, file) for name in names}
    folders = [str(folder.parent) for folder in packages.values() if folder is not None]
    if file is not None and any(_relative(uri) for uri in uris):
        folders.append(str(file.absolute().parent))
    return tuple(dict.fromkeys(folders))


def mesh_file(uri: str, folders: Iterable[str]) -> Path:
    """Return the file of a mesh: a package:// or file:// URI, or a path; relative in `folders`."""
    folders = tuple(folders)
    scheme, _, path = uri.rpartition('://')
    above = {'package': folders, 'file': ('',), '': (*folders, '') if _relative(uri) else ('',)}
    names = dict.fromkeys([path, unquote(path)])
    candidates = (Path(folder, name) for folder in above.get(scheme, ()) for name in names)
    found = next((file for file in candidates if file.is_file()), None)
    if found is None:
        raise MissingMesh(f'mesh {shown(uri)} not found in {", ".join(folders) or "any folder"}')
    return found


def _relative(uri: str) -> bool:
    return bool(uri) and not urlparse(uri).scheme and not uri.startswith('/')


def check_meshes_exist(robot: ElementTree.Element, file: Path | None, place: str) -> None:
    """Raise MissingMesh when a mesh of the URDF is not on this machine."""
    for mesh, why in missing_meshes(robot, file):
        raise MissingMesh(
            f'{place}: link {mesh.link!r}: {mesh.use} mesh {mesh.uri!r} not found: {why}; '
            'where check_meshes is false, a robot is loaded without looking for its meshes'
        )


def missing_meshes(robot: ElementTree.Element, file: Path | None) -> Iterator[tuple[Mesh, str]]:
    """Yield the meshes of a URDF that are not on this machine, and why.

    package:// URIs are looked for in the folders above `file`, in ROS workspaces and in pip
    packages; file:// URIs and plain paths as they are, relative ones beside `file`. URIs with any
    other scheme (http://, model://) are not checked.
    """
    reasons = {uri: _why_missing(uri, file) for uri in {mesh.uri for mesh in meshes(robot)}}
    for mesh in meshes(robot):
        why = reasons[mesh.uri]
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


# ------------------------------------------------------------------------------------------- xacro
#
# A xacro is a program that writes a URDF. Its expressions are Python and not safe: it runs only
# for a .xacro file, or where arguments are given.

NAMESPACES = ('{http://www.ros.org/wiki/xacro}', '{http://ros.org/wiki/xacro}')
XacroArguments = Mapping[str, object]
"""Values of <xacro:arg>, by name."""


def xacro_arguments(texts: Iterable[str]) -> XacroArguments | None:
    """Return the arguments in texts like 'mass:=3'; None for none, see `load_robot`.

    Raises:
        InvalidInput: a text without := or without a name.
    """
    arguments = {}
    for text in texts:
        name, given, value = text.partition(':=')
        if not given or not name.strip():
            raise InvalidInput(f'xacro_arguments: {text!r}, expected name:=value')
        arguments[name.strip()] = value
    return arguments or None


def uses_xacro(root: Element) -> bool:
    """Return whether a description has elements of xacro."""
    return any(isinstance(e.tag, str) and e.tag.startswith(NAMESPACES) for e in root.iter())


def run_xacro(text: str, file: Path | None, place: str, arguments: XacroArguments) -> str:
    """Return the URDF that a xacro writes: a file, which its includes are relative to, or text."""
    if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
        raise InvalidInput(f'xacro_arguments = {shown(arguments)}: expected values by name')
    try:
        import xacro
    except ImportError as error:
        raise RobotDescriptionError(
            f'{place} is a xacro file and the xacro package is missing: pip install xacro, '
            'or install the ROS package xacro'
        ) from error
    mappings = {name: str(value) for name, value in arguments.items()}
    try:
        with _packages_found_above(file), _reading.reading(place, RobotDescriptionError):
            if file is not None:
                document = xacro.process_file(str(file.resolve()), mappings=mappings)
            else:
                xacro.init_stacks(None)  # else it remembers the file of the last call
                document = xacro.parse(text)
                xacro.process_doc(document, mappings=mappings)
            return str(document.documentElement.toxml())
    except RobotDescriptionError:
        raise
    except Exception as error:  # xacro evaluates Python: anything can come out
        raise RobotDescriptionError(f'{place}: xacro failed: {_reason(error)}') from error


@contextmanager
def _packages_found_above(file: Path | None) -> Iterator[None]:
    """Let $(find package) find what package:// finds; xacro asks the ament index alone.

    It includes and loads regular files only, as all of this package.
    """
    import xacro
    from xacro import substitution_args

    installed = substitution_args._eval_find

    def find(package: str) -> str:
        folder = package_folder(package, file)
        return str(folder) if folder is not None else str(installed(package))

    def open_regular(name: str, *arguments: Any, **options: Any) -> Any:
        return open(_reading.regular_file(name), *arguments, **options)

    substitution_args._eval_find, xacro.open = find, open_regular
    try:
        yield
    finally:
        substitution_args._eval_find = installed
        del xacro.open


def _reason(error: Exception) -> str:
    reason = str(error).strip() or type(error).__name__
    if 'AMENT_PREFIX_PATH' in reason or 'ament_index_python' in reason:
        return f'$(find package) needs ROS 2: source the workspace that has the package ({reason})'
    if 'Undefined substitution argument' in reason:
        return f'{reason}: it has no default, give its value in xacro_arguments'
    return reason
