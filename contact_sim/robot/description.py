"""Read a robot description: URDF or xacro, from a file or as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from contact_sim.errors import RobotDescriptionError

_BLANK = '\ufeff \t\r\n'
_XACRO_NAMESPACES = ('{http://www.ros.org/wiki/xacro}', '{http://ros.org/wiki/xacro}')


@dataclass(frozen=True)
class Description:
    """A URDF after xacro."""

    text: str
    root: ElementTree.Element
    """The <robot> element."""
    file: Path | None
    """File it was read from; None for text."""

    @property
    def place(self) -> str:
        """Name of the description in messages."""
        return str(self.file) if self.file is not None else 'URDF text'

    @property
    def name(self) -> str:
        """Name of the robot in the URDF."""
        return self.root.get('name') or 'robot'


def description_from_file(
    file: Path, corrections: tuple[tuple[str, str], ...] = ()
) -> Description:
    """Read a .urdf or .xacro file; every pair (wrong, right) of `corrections` is replaced.

    Raises:
        RobotDescriptionError: no such file, not text, not XML, or xacro refuses it.
    """
    text = read_text(file)
    for wrong, right in corrections:
        text = text.replace(wrong, right)
    return _description(text, file)


def description_from_text(text: str) -> Description:
    """Return the description in `text`, URDF or xacro.

    Raises:
        RobotDescriptionError: not XML, or xacro refuses it.
    """
    return _description(text.strip(_BLANK), None)


def is_xml(source: str) -> bool:
    """Return whether `source` is XML text and not a name or a path."""
    return source.lstrip(_BLANK).startswith('<')


def read_text(file: Path) -> str:
    """Return the text of `file`, or raise RobotDescriptionError."""
    try:
        return file.read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise RobotDescriptionError(f'cannot read {file}: it is not UTF-8 text') from error
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        reason = getattr(error, 'strerror', None) or str(error)
        raise RobotDescriptionError(f'cannot read {file}: {reason}') from error


def parse_xml(text: str, place: str) -> ElementTree.Element:
    """Return the root element of `text`, or raise RobotDescriptionError."""
    parser = ElementTree.XMLParser(target=_WithoutDoctype(place))
    try:
        return ElementTree.fromstring(text.encode(), parser)
    except (ElementTree.ParseError, UnicodeEncodeError) as error:
        raise RobotDescriptionError(f'{place} is not well-formed XML: {error}') from error


class _WithoutDoctype(ElementTree.TreeBuilder):
    """Refuses <!DOCTYPE>: its entities are text that every parser reads otherwise."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Raise RobotDescriptionError."""
        raise RobotDescriptionError(
            f'{self._place}: <!DOCTYPE {name}> is not allowed in a robot description'
        )


def _description(text: str, file: Path | None) -> Description:
    place = str(file) if file is not None else 'URDF text'
    root = parse_xml(text, place)
    if _uses_xacro(root) or (file is not None and file.suffix == '.xacro'):
        text = _run_xacro(text, file, place)
        root = parse_xml(text, f'{place} (after xacro)')
    return Description(text, root, file)


def _uses_xacro(root: ElementTree.Element) -> bool:
    return any(isinstance(e.tag, str) and e.tag.startswith(_XACRO_NAMESPACES) for e in root.iter())


def _run_xacro(text: str, file: Path | None, place: str) -> str:
    try:
        import xacro
    except ImportError as error:
        raise RobotDescriptionError(
            f'{place} is a xacro file and the xacro package is missing: pip install xacro, '
            'or install the ROS package xacro'
        ) from error
    try:
        if file is not None:
            document = xacro.process_file(str(file.resolve()))
        else:
            xacro.init_stacks(None)  # else it remembers the file of the last call
            document = xacro.parse(text)
            xacro.process_doc(document)
        return str(document.documentElement.toxml())
    except Exception as error:  # xacro evaluates Python: anything can come out
        raise RobotDescriptionError(f'{place}: xacro failed: {_reason(error)}') from error


def _reason(error: Exception) -> str:
    reason = str(error).strip() or type(error).__name__
    if 'AMENT_PREFIX_PATH' in reason or 'ament_index_python' in reason:
        return f'$(find package) needs ROS 2: source the workspace that has the package ({reason})'
    return reason
