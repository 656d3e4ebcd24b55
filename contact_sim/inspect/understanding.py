"""A description loaded with everything that was noticed on the way."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import Element

from contact_sim.errors import RobotDescriptionError
from contact_sim.inspect.proposed_feet import proposed_feet
from contact_sim.robot.catalogue import in_catalogue
from contact_sim.robot.checks import link_mass
from contact_sim.robot.description import parse_xml
from contact_sim.robot.meshes import missing_meshes
from contact_sim.robot.model import RobotModel
from contact_sim.robot.urdf import load_robot
from contact_sim.robot.xacro_program import XacroArguments


@dataclass(frozen=True)
class Source:
    """What to load, in the words of `load_robot`."""

    source: str
    feet: tuple[str, ...] | None = None
    srdf: str | None = None
    floating_base: bool = True
    xacro_arguments: XacroArguments | None = None


@dataclass(frozen=True, eq=False)
class Understanding:
    """A robot and what was noticed while it was loaded."""

    asked: Source
    robot: RobotModel
    why_feet: str
    """Where its feet are from."""
    proposed: bool
    """Whether the feet are a proposal, which `load_robot` wants to be told."""
    meshes_missing: tuple[str, ...]
    """Meshes that are not on this machine."""
    warnings: tuple[str, ...]

    @property
    def root(self) -> Element:
        """The <robot> element."""
        return parse_xml(self.robot.description, self.robot.name)

    @property
    def massless(self) -> tuple[str, ...]:
        """Links without mass that carry geometry."""
        return tuple(
            link.get('name', '')
            for link in self.root.iterfind('link')
            if link_mass(link) == 0.0 and link.find('collision') is not None
        )


def understood(asked: Source) -> Understanding:
    """Return a robot with feet: those asked for, known, or proposed.

    Raises:
        ContactSimError: see `load_robot`.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        robot = _loaded(asked, asked.feet)
        why, proposed = _why(asked), False
        if asked.feet is None and not robot.feet and robot.floating_base:
            proposal = proposed_feet(robot)
            proposed = bool(proposal.links)
            why = f'proposed: {proposal.why}'
            robot = _loaded(asked, proposal.links)
    said = dict.fromkeys(str(one.message) for one in caught if one.category is UserWarning)
    without = [text for text in said if 'no feet are known' not in text]
    missing = () if in_catalogue(asked.source) else _missing(robot, asked.source)
    return Understanding(asked, robot, why, proposed, missing, tuple(without))


def _loaded(asked: Source, feet: Sequence[str] | None) -> RobotModel:
    return load_robot(
        asked.source, asked.floating_base, feet, srdf=asked.srdf, check_meshes=False,
        xacro_arguments=asked.xacro_arguments,
    )  # fmt: skip


def _why(asked: Source) -> str:
    if asked.feet is not None:
        return 'as given'
    return 'of the catalogue' if in_catalogue(asked.source) else 'end effectors of the SRDF'


def _missing(robot: RobotModel, source: str) -> tuple[str, ...]:
    file = Path(source) if not source.lstrip().startswith('<') else None
    try:
        root = parse_xml(robot.description, source)
    except RobotDescriptionError:
        return ()
    return tuple(dict.fromkeys(mesh.uri for mesh, _ in missing_meshes(root, file)))
