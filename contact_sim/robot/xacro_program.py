"""Run a xacro: a program that writes a URDF.

Its expressions are Python, and reach the system as any program does. Nothing here makes them
safe: a xacro runs only where somebody named a .xacro file or asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from xml.etree.ElementTree import Element

from contact_sim.errors import InvalidInput, RobotDescriptionError, shown
from contact_sim.robot.share import package_folder

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
    """Return the URDF that a xacro writes.

    Args:
        text: the program, if it has no file.
        file: its file, which its includes are relative to.
        place: what to call it in messages.
        arguments: values of its arguments; the others have their defaults.

    Raises:
        InvalidInput: arguments that are no mapping of names.
        RobotDescriptionError: the xacro package is missing, or refuses the program.
    """
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
        with _packages_found_above(file):
            if file is not None:
                document = xacro.process_file(str(file.resolve()), mappings=mappings)
            else:
                xacro.init_stacks(None)  # else it remembers the file of the last call
                document = xacro.parse(text)
                xacro.process_doc(document, mappings=mappings)
        return str(document.documentElement.toxml())
    except Exception as error:  # xacro evaluates Python: anything can come out
        raise RobotDescriptionError(f'{place}: xacro failed: {_reason(error)}') from error


@contextmanager
def _packages_found_above(file: Path | None) -> Iterator[None]:
    """Let $(find package) find what package:// finds; xacro asks the ament index alone."""
    from xacro import substitution_args

    installed = substitution_args._eval_find

    def find(package: str) -> str:
        folder = package_folder(package, file)
        return str(folder) if folder is not None else str(installed(package))

    substitution_args._eval_find = find
    try:
        yield
    finally:
        substitution_args._eval_find = installed


def _reason(error: Exception) -> str:
    reason = str(error).strip() or type(error).__name__
    if 'AMENT_PREFIX_PATH' in reason or 'ament_index_python' in reason:
        return f'$(find package) needs ROS 2: source the workspace that has the package ({reason})'
    if 'Undefined substitution argument' in reason:
        return f'{reason}: it has no default, give its value in xacro_arguments'
    return reason
