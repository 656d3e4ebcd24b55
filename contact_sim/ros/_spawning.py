"""Entities that come and go, as simulation_interfaces asks for them; its types are looked up.

What a request names is found here: a robot of the catalogue, a loose body, a file or a text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pinocchio as pin
from rclpy.node import Node

from contact_sim._types import Array
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    MissingMesh,
    RobotDescriptionError,
    shown,
)
from contact_sim.parameters import Settings
from contact_sim.robot._catalogue import CATALOGUE, in_catalogue, robot_file, robots
from contact_sim.robot._files import package_folder
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import STANDING
from contact_sim.robot._urdf import is_xml, parse_xml
from contact_sim.ros._conversions import quaternion_values, vector_values
from contact_sim.ros._inputs import StateControl, bounded, unit_quaternion, yaw_of
from contact_sim.ros._population import Member, Population, Refused, above_ground
from contact_sim.ros._robots import LOOSE, NAME, driven_as, spawned_robot
from contact_sim.simulation._state import standing_on

ENDINGS = {'.urdf': 'urdf', '.xacro': 'xacro', '.sdf': 'sdf', '.xml': 'mjcf', '.mjcf': 'mjcf'}
"""Formats of files by their ending."""
ROOTS = {'robot': 'urdf', 'sdf': 'sdf', 'mujoco': 'mjcf'}
"""Formats of texts by their root."""
BODIES = {
    'box:0.4:0.3:0.2:5.0': 'loose box, box:x:y:z:mass [m, kg]',
    'ball:0.1:1.0': 'loose ball, ball:radius:mass [m, kg]',
}
"""Loose bodies as examples of their form."""
WORLD = 'world'
"""Name that the standard has for the frame of the world."""
TOKEN = re.compile('[A-Za-z_][A-Za-z0-9_]*')
"""Part of a namespace."""
LONGEST_NAME = 100
"""Characters of a name or a namespace: topics may have 255."""
NAME_FORM = f'expected a letter, then letters, digits and _, at most {LONGEST_NAME}'
ALLOW = 'or set allow_renaming'
MOST_FILES = 1000
"""Files of one folder that are listed."""
FREE = 6
"""Degrees of freedom of one loose body."""


def spawn_formats() -> list[str]:
    """Return the formats of robots that can be read here."""
    formats = dict.fromkeys(ENDINGS.values())
    missing = {'mjcf': 'mujoco', 'xacro': 'xacro'}
    return [name for name in formats if find_spec(missing.get(name, 'xml')) is not None]


@dataclass(frozen=True)
class Request:
    """A request to spawn an entity, of any release."""

    name: str
    allow_renaming: bool
    uri: str
    text: str
    namespace: str
    frame: str
    position: tuple[float, float, float]
    quaternion: tuple[float, float, float, float]

    @classmethod
    def from_message(cls, message: Any) -> Request:
        """Return the contents of a message."""
        resource = getattr(message, 'entity_resource', message)  # before 2.0 its fields alone
        pose = message.initial_pose
        return cls(
            message.name, message.allow_renaming, resource.uri, resource.resource_string,
            message.entity_namespace, pose.header.frame_id, vector_values(pose.pose.position),
            quaternion_values(pose.pose.orientation),
        )  # fmt: skip


class Spawning:
    """Lets entities come and go as requests say."""

    def __init__(self, node: Node, control: StateControl, population: Population) -> None:
        self._node, self._control, self._population = node, control, population

    async def spawn(self, requests: Sequence[Request]) -> list[Member | Refused]:
        """Return what came of each request; all that can come at once do."""

        async def change() -> list[Member | Refused]:
            outcomes: list[Member | Refused] = []
            for request in requests:
                there = [one for one in outcomes if isinstance(one, Member)]
                try:
                    outcomes.append(await self._member(request, there))
                except ContactSimError as error:
                    outcomes.append(_refused(error))
            arriving = [one for one in outcomes if isinstance(one, Member)]
            if arriving:
                try:
                    await self._population.add(arriving)
                except ContactSimError as error:
                    failed = _refused(error)
                    return [one if isinstance(one, Refused) else failed for one in outcomes]
            return outcomes

        return await self._population.in_turn(change)

    async def delete(self, entity: str) -> None:
        """Let an entity go; raise Refused or InvalidInput where it has to stay."""

        async def change() -> None:
            known = [member.entity for member in self._population.members]
            if entity not in known:
                reason = f'no entity {shown(entity)}; there are {", ".join(known)}'
                raise Refused('RESULT_NOT_FOUND', reason)
            await self._population.remove([entity])

        await self._population.in_turn(change)

    async def _member(self, request: Request, also: Sequence[Member]) -> Member:
        """Return the entity of a request; raise Refused."""
        self._population.check_may_change()
        settings = self._control.parameters.settings
        members = (*self._population.members, *also)
        if request.name and not is_name(request.name):
            raise Refused('NAME_INVALID', f'name {shown(request.name)}: {NAME_FORM}')
        taken = {name for one in members for name in (one.entity, one.name) if name}
        if request.name in taken and not request.allow_renaming:  # before anything is read
            raise Refused('NAME_NOT_UNIQUE', f'name {request.name!r} is taken; {ALLOW}')
        source = source_of(request.uri, request.text)
        position, quaternion = self._pose(request, settings)
        robot = await self._population.apart(lambda: _loaded(source, settings))
        name = name_of(request, robot, taken)
        namespace = self._namespace(request.namespace or name, members)
        settings = self._population.declare(name, robot)

        def started() -> Member:
            driven = driven_as(name, robot, settings)
            place = place_of(driven, position, quaternion)
            return Member(
                name, driven, place, namespace, spawned=True,
                q=self._start(driven, position, quaternion, place),
            )  # fmt: skip

        return await self._population.apart(started)

    def _pose(self, request: Request, settings: Settings) -> tuple[Array, Array]:
        common = settings['']
        frames = ('', WORLD, common.world_frame, common.odom_frame)
        if request.frame not in frames:
            expected = ', '.join(dict.fromkeys(filter(None, frames)))
            raise Refused(
                'INVALID_POSE', f'frame {shown(request.frame)}: expected that of the world, '
                f'{expected}',
            )  # fmt: skip
        try:
            quaternion = unit_quaternion(np.array(request.quaternion))
            return bounded('position', np.array(request.position)), quaternion
        except InvalidInput as error:
            raise Refused('INVALID_POSE', error) from error

    def _start(
        self, robot: RobotModel, position: Array, quaternion: Array, place: Sequence[float]
    ) -> Array:
        """Return q (nq,) of a robot at a pose, raised where it would be in the ground."""
        terrain = self._control.sim.terrain
        q = robot.reference_configuration().copy()
        if not robot.floating_base:
            return q
        try:
            standing_on(robot, terrain, STANDING, *place)
        except InvalidInput as error:
            raise Refused('INVALID_POSE', error) from error
        q[:3], q[3:7] = position, quaternion
        return above_ground(robot, terrain, q)

    def _namespace(self, namespace: str, members: Iterable[Member]) -> str:
        """Return the namespace of a new robot's topics, or raise Refused."""
        tokens = namespace.removeprefix('/').removesuffix('/').split('/')
        if not all(TOKEN.fullmatch(token) for token in tokens) or len(namespace) > LONGEST_NAME:
            raise Refused(
                'NAMESPACE_INVALID', f'namespace {shown(namespace)}: expected words of letters, '
                'digits and _ with / between them',
            )  # fmt: skip
        chosen = ('/' if namespace.startswith('/') else '') + '/'.join(tokens)
        for member in members:
            if self._absolute(member.namespace) == self._absolute(chosen):
                raise Refused(
                    'NAMESPACE_INVALID', f'namespace {shown(chosen)}: the topics of '
                    f'{member.entity} are there; every robot needs one of its own',
                )  # fmt: skip
        return chosen

    def _absolute(self, namespace: str) -> str:
        own = self._node.get_namespace().rstrip('/')
        return namespace if namespace.startswith('/') else f'{own}/{namespace}'.rstrip('/')


def _refused(error: ContactSimError) -> Refused:
    return error if isinstance(error, Refused) else Refused('RESULT_OPERATION_FAILED', error)


def _loaded(source: str, settings: Settings) -> RobotModel:
    try:
        return spawned_robot(source, settings)
    except MissingMesh as error:
        raise Refused('MISSING_ASSETS', error) from error
    except (RobotDescriptionError, InvalidInput) as error:
        raise Refused('RESOURCE_PARSE_ERROR', error) from error
    except ContactSimError as error:
        raise Refused('RESULT_OPERATION_FAILED', error) from error


def source_of(uri: str, text: str) -> str:
    """Return what `spawned_robot` loads for a resource: a name, a path or a text.

    Raises:
        Refused: no resource, one of a format that is not read, a file that is not there.
    """
    if not uri:
        return _checked_text(text)
    if uri.partition(':')[0] in LOOSE or in_catalogue(uri):
        return uri
    path = path_of(uri)
    ending = path.suffix.lower()
    if not ending and path == Path(uri) and len(path.parts) == 1:
        known = ', '.join((*robots(), *BODIES))
        raise Refused('RESULT_NOT_FOUND', f'no robot {shown(uri)}; there are {known}, and files')
    if ENDINGS.get(ending) not in spawn_formats():
        listed = ', '.join(name for name, kind in ENDINGS.items() if kind in spawn_formats())
        raise Refused('UNSUPPORTED_FORMAT', f'uri {shown(uri)}: expected a file {listed}')
    if not is_file(path):
        raise Refused('RESULT_NOT_FOUND', f'uri {shown(uri)}: there is no file {path}')
    return str(path)


def is_file(path: Path) -> bool:
    """Return whether there is a file; not for a name that none can have."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def path_of(uri: str) -> Path:
    """Return the path of a file:// or package:// URI, or of a path; raise Refused for others."""
    if '://' not in uri and not uri.startswith('file:'):
        return Path(uri)
    try:
        parsed = urlparse(uri)
    except ValueError as error:
        raise Refused('UNSUPPORTED_FORMAT', f'uri {shown(uri)}: {error}') from error
    if parsed.scheme == 'file' and parsed.netloc in ('', 'localhost'):
        return Path(unquote(parsed.path))
    if parsed.scheme == 'package':
        folder = package_folder(parsed.netloc, None)
        if folder is None:
            reason = f'uri {shown(uri)}: no package {parsed.netloc!r} on this machine'
            raise Refused('RESULT_NOT_FOUND', reason)
        return folder / unquote(parsed.path).lstrip('/')
    reason = f'uri {shown(uri)}: expected a path, file:// or package://'
    raise Refused('UNSUPPORTED_FORMAT', reason)


def _checked_text(text: str) -> str:
    if not text.strip():
        raise Refused('NO_RESOURCE', 'both uri and resource_string are empty')
    expected = ', '.join(f'<{name}>' for name, kind in ROOTS.items() if kind in spawn_formats())
    if not is_xml(text):
        reason = f'resource_string {shown(text)}: expected XML that begins with {expected}'
        raise Refused('UNSUPPORTED_FORMAT', reason)
    try:
        root = parse_xml(text.strip(), 'resource_string').tag
    except ContactSimError as error:
        raise Refused('RESOURCE_PARSE_ERROR', error) from error
    if ROOTS.get(root) not in spawn_formats():
        reason = f'resource_string: its root is <{root}>, expected {expected}'
        raise Refused('UNSUPPORTED_FORMAT', reason)
    return text


def is_name(text: str) -> bool:
    """Return whether a text can be the name of an entity: part of topics and frames."""
    return NAME.fullmatch(text) is not None and len(text) <= LONGEST_NAME


def name_of(request: Request, robot: RobotModel, taken: set[str]) -> str:
    """Return the name of a new entity: that of the request, or of the robot, perhaps numbered.

    Raises:
        Refused: a name that is taken or cannot be, where it may not be changed.
    """
    wanted = request.name or robot.name
    if not is_name(wanted):
        if not request.allow_renaming:
            raise Refused('NAME_INVALID', f'name {shown(wanted)}: {NAME_FORM}; {ALLOW}')
        wanted = re.sub('[^A-Za-z0-9_]', '_', wanted[:LONGEST_NAME]).lstrip('_0123456789')
        wanted = wanted or 'entity'
    if wanted not in taken:
        return wanted
    if not request.allow_renaming:
        raise Refused('NAME_NOT_UNIQUE', f'name {wanted!r} is taken; {ALLOW}')
    numbered = (f'{wanted}_{k}' for k in itertools.count(1))
    return next(name for name in numbered if name not in taken)


def place_of(robot: RobotModel, position: Array, quaternion: Array) -> tuple[float, ...]:
    """Return the place of a robot among others: x, y, yaw, of a fixed base z, roll, pitch too."""
    x, y, z = position.tolist()
    if robot.floating_base:
        return x, y, yaw_of(quaternion)
    roll, pitch, yaw = pin.rpy.matrixToRpy(pin.Quaternion(quaternion).matrix()).tolist()
    return x, y, yaw, z, roll, pitch


def is_loose(robot: RobotModel) -> bool:
    """Return whether a robot is a single body that moves freely."""
    return robot.floating_base and robot.nv == FREE


def spawnables() -> dict[str, str]:
    """Return the URIs that are known without a file, with their descriptions."""
    return BODIES | {
        name: f'robot of the catalogue, {name}' for name in robots() if _is_here(name)
    }


def _is_here(name: str) -> bool:
    try:
        return is_file(robot_file(CATALOGUE[name], CATALOGUE[name].urdf))
    except ContactSimError:
        return False


def spawnables_in(sources: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the URIs of robots in folders, and the sources that are none."""
    found: dict[str, str] = {}
    unknown: list[str] = []
    for source in sources:
        files = files_in(source, lambda path: ENDINGS.get(path.suffix) in spawn_formats())
        if files is None:
            unknown.append(source)
        else:
            found |= {path.as_uri(): f'{ENDINGS[path.suffix]}, {path.name}' for path in files}
    return found, unknown


def files_in(source: str, wanted: Callable[[Path], bool]) -> list[Path] | None:
    """Return some files of a folder, at most MOST_FILES, None where the source is no folder."""
    try:
        folder = path_of(source).absolute()
        if not folder.is_dir():
            return None
        return sorted(itertools.islice(filter(wanted, folder.iterdir()), MOST_FILES))
    except (Refused, OSError):
        return None
