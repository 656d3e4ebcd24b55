"""Find files and packages: our own share folder, and packages that other people installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from contact_sim.errors import InvalidInput


def share_path(*parts: str) -> Path:
    """Return the path of a file or folder that contact_sim ships, e.g. ('urdf', 'x.urdf.xacro').

    Looked for in the ament index, then in share/contact_sim of the Python environment, then in
    the source tree.

    Raises:
        InvalidInput: it is in none of them; the message lists the folders.
    """
    roots = list(_own_roots())
    for root in roots:
        path = root.joinpath(*parts)
        if path.exists():
            return path
    searched = ', '.join(str(root) for root in roots)
    raise InvalidInput(f'contact_sim has no file {"/".join(parts)!r}; searched in {searched}')


def share_folders() -> tuple[Path, ...]:
    """Return the folders that hold installed packages (<prefix>/share), most specific first.

    ROS workspaces (AMENT_PREFIX_PATH, ROS_PACKAGE_PATH), the Python environment, and the
    cmeel.prefix of pip packages on sys.path.
    """
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


def _own_roots() -> Iterator[Path]:
    try:
        from ament_index_python.packages import get_package_share_directory

        yield Path(get_package_share_directory('contact_sim'))
    except (ImportError, LookupError, OSError):
        pass  # no ROS here, or not installed into it
    yield Path(sys.prefix) / 'share' / 'contact_sim'
    yield Path(__file__).resolve().parents[2]


def _path_list(variable: str) -> list[str]:
    return [part for part in os.environ.get(variable, '').split(os.pathsep) if part]


def mesh_prefixes() -> str:
    """Return AMENT_PREFIX_PATH with the prefixes of everything that `load_robot` finds."""
    sourced = [path for path in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if path]
    found = [str(share.parent) for share in share_folders() if (share / 'ament_index').is_dir()]
    return os.pathsep.join(dict.fromkeys([*sourced, *found]))
