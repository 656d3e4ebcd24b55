"""Grounds that are loaded and unloaded while the node runs: the worlds of simulation_interfaces.

The world is the ground. It is that of the parameters `terrain.*`, which follow what is loaded, or
that of a text. Loading begins anew with the robots of the start, as the standard says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contact_sim import _reading
from contact_sim.collision._terrain import Terrain, as_terrain
from contact_sim.errors import ContactSimError, shortened, shown
from contact_sim.ros._factory import chosen_terrain
from contact_sim.ros._inputs import StateControl
from contact_sim.ros._parameters import GROUNDS
from contact_sim.ros._population import Population, Refused, world_of
from contact_sim.ros._spawning import files_in, is_file, path_of
from contact_sim.simulation._state import standing_on
from contact_sim.terrain._generator import GROUND_FILES, READY_MADE, TerrainGenerator

FILE = 'file'
"""Kind of ground that has a file."""
UNLOADED = 'no world is loaded: call load_world'
GENERATED, ANALYTIC = 'generated', 'analytic'
"""Tags of grounds."""


@dataclass(frozen=True)
class World:
    """A ground that can be loaded."""

    name: str
    uri: str
    text: str = ''
    tags: tuple[str, ...] = ()
    description: str = ''


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A ground that was read, and the parameters that name it; {} for none."""

    world: World
    terrain: Terrain
    parameters: Mapping[str, Any]


class WorldLoading:
    """Loads and unloads grounds.

    Attributes:
        loading: whether one is being loaded.
    """

    def __init__(self, control: StateControl, population: Population) -> None:
        self._control, self._population = control, population
        self._of_text: _Loaded | None = None
        self.loading = False

    @property
    def current(self) -> World | None:
        """The ground that is loaded, None where none is."""
        if self._control.loop.inactive:
            return None
        terrain = self._control.sim.terrain
        if self._of_text is not None and self._of_text.terrain is terrain:
            return self._of_text.world
        settings = self._control.parameters.settings['terrain']
        uri = Path(settings.file).absolute().as_uri() if settings.file else ''
        tags = (GENERATED if settings.type in READY_MADE else ANALYTIC,)
        of_file = settings.type == FILE
        return World(
            settings.type, uri if of_file else '', tags=(FILE,) if of_file else tags,
            description=shortened(repr(terrain)),
        )  # fmt: skip

    def available(self, sources: Iterable[str] = ()) -> tuple[list[World], list[str]]:
        """Return the grounds that can be loaded, and the sources that are no folders."""
        worlds = [_named(name) for name in GROUNDS if name != FILE]
        now, unknown = self.current, []
        if now is not None and (now.uri or now.text):
            worlds.append(now)
        for source in sources:
            files = files_in(source, lambda path: path.suffix.lower() in GROUND_FILES)
            if files is None:
                unknown.append(source)
            else:
                worlds += [_of_file(path) for path in files]
        return worlds, unknown

    async def load(self, uri: str, text: str) -> World:
        """Load a ground, begin anew on it and stand still; raise ContactSimError to refuse."""

        async def change() -> World:
            self.loading = True
            try:
                loaded = await self._population.apart(lambda: self._read(uri, text))
                await self._begin_on(loaded, inactive='')
            finally:
                self.loading = False
            return loaded.world

        return await self._population.in_turn(change)

    async def unload(self) -> None:
        """Unload the ground: the robots stand on a plane, and no steps are taken."""

        async def change() -> None:
            if self._control.loop.inactive:
                raise Refused('NO_WORLD_LOADED', UNLOADED)
            await self._begin_on(self._read('plane', ''), inactive=UNLOADED)

        await self._population.in_turn(change)

    async def _begin_on(self, loaded: _Loaded, inactive: str) -> None:
        """Begin anew with the robots of the start, paused; undo everything where that fails."""
        control, loop = self._control, self._control.loop
        was_paused, ground_before = loop.paused, control.next_ground
        before = self._parameters()
        pose = control.parameters.settings[''].reference_pose
        standing_on(world_of(self._population.at_start, control.parameters.settings),
                    loaded.terrain, pose)  # fmt: skip
        loop.between_steps(lambda: loop.set_paused(True))
        try:
            if loaded.parameters:
                control.parameters.change(loaded.parameters)
            await self._population.restore()
            control.next_ground = loaded.terrain
            control.reset(time_too=True)
        except ContactSimError:
            if loaded.parameters:
                control.parameters.change(before)
            control.next_ground = ground_before
            loop.between_steps(lambda: loop.set_paused(was_paused))
            raise
        loop.inactive = inactive
        self._of_text = None if loaded.parameters else loaded

    def _parameters(self) -> dict[str, Any]:
        settings = self._control.parameters.settings['terrain']
        return {'terrain.type': settings.type, 'terrain.file': settings.file}

    def _read(self, uri: str, text: str) -> _Loaded:
        """Return the ground of a resource; raise Refused."""
        settings = self._control.parameters.settings
        if not uri:
            return _of_text(text)
        if uri in GROUNDS and uri != FILE:
            ground = replace(settings['terrain'], type=uri)
            terrain = chosen_terrain(settings | {'terrain': ground})
            return _Loaded(_named(uri), terrain, {'terrain.type': uri})
        path = path_of(uri)
        if path.suffix.lower() not in GROUND_FILES:
            names, files = ', '.join(GROUNDS[:-1]), ', '.join(GROUND_FILES)
            reason = f'world {shown(uri)}: expected one of {names}, or a file {files}'
            raise Refused('UNSUPPORTED_FORMAT', reason)
        if not is_file(path):
            raise Refused('RESULT_NOT_FOUND', f'world {shown(uri)}: there is no file {path}')
        ground = replace(settings['terrain'], type=FILE, file=str(path))
        terrain = _parsed(lambda: chosen_terrain(settings | {'terrain': ground}))
        return _Loaded(_of_file(path), terrain, {'terrain.type': FILE, 'terrain.file': str(path)})


def _of_text(text: str) -> _Loaded:
    """Return the ground of a text, the YAML of a generator."""
    if not text.strip():
        raise Refused('NO_RESOURCE', 'both uri and resource_string are empty')
    if text.lstrip().startswith('<'):
        raise Refused(
            'UNSUPPORTED_FORMAT', 'resource_string: XML; expected YAML of a terrain generator'
        )
    values = _parsed(lambda: _reading.yaml_text_value(text, 'resource_string'))
    if not isinstance(values, Mapping):
        raise Refused(
            'UNSUPPORTED_FORMAT', f'resource_string {shown(text)}: expected YAML of a terrain '
            'generator, parameters by name',
        )  # fmt: skip
    terrain = _parsed(lambda: as_terrain(TerrainGenerator.from_dict(values).generate()))
    world = World('resource_string', '', text, (GENERATED,), shortened(repr(terrain)))
    return _Loaded(world, terrain, {})


def _parsed(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except ContactSimError as error:
        raise Refused('RESOURCE_PARSE_ERROR', error) from error


def _named(name: str) -> World:
    generated = name in READY_MADE
    tags = (GENERATED if generated else ANALYTIC,)
    numbers = 'difficulty, terrain.seed' if generated else 'angle, heading, radius, hollow'
    return World(name, name, '', tags, f'{name}, see the parameters terrain.{numbers}')


def _of_file(path: Path) -> World:
    return World(FILE, path.absolute().as_uri(), '', (FILE,), path.name)
