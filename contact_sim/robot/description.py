"""Read a robot description: URDF or xacro, from a file or as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from contact_sim.errors import RobotDescriptionError
from contact_sim.robot.xacro_program import XacroArguments, run_xacro, uses_xacro

_BLANK = '\ufeff \t\r\n'


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
    file: Path,
    corrections: tuple[tuple[str, str], ...] = (),
    xacro_arguments: XacroArguments | None = None,
) -> Description:
    """Read a URDF; every pair (wrong, right) of `corrections` is replaced.

    A file called .xacro is run, and any file where `xacro_arguments` are given.

    Raises:
        RobotDescriptionError: no such file, not text, not XML, xacro refuses it, or it is a xacro
            that is not to be run.
    """
    text = read_text(file)
    for wrong, right in corrections:
        text = text.replace(wrong, right)
    if xacro_arguments is None and file.suffix == '.xacro':
        xacro_arguments = {}
    return _description(text, file, xacro_arguments)


def description_from_text(text: str, xacro_arguments: XacroArguments | None = None) -> Description:
    """Return the description in `text`: a URDF, or a xacro where `xacro_arguments` are given.

    Raises:
        RobotDescriptionError: not XML, xacro refuses it, or it is a xacro that is not to be run.
    """
    return _description(text.strip(_BLANK), None, xacro_arguments)


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
    except (ElementTree.ParseError, LookupError, ValueError) as error:  # encodings of no name
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


def _description(
    text: str, file: Path | None, xacro_arguments: XacroArguments | None
) -> Description:
    place = str(file) if file is not None else 'URDF text'
    root = parse_xml(text, place)
    if xacro_arguments is not None:
        text = run_xacro(text, file, place, xacro_arguments)
        root = parse_xml(text, f'{place} (after xacro)')
    if uses_xacro(root):
        raise RobotDescriptionError(
            f'{place} is a xacro, a program that can do anything on this machine: it is run only '
            'if its file is called .xacro, or if xacro_arguments are given'
        )
    return Description(text, root, file)
