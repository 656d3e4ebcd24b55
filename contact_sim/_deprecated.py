"""Old places of public names: they work for one release, with a DeprecationWarning.

A module of `MODULES` is made when somebody imports it, and reads its names from their new place.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

LAWS = ('anitescu', 'compliant', 'lcp', 'ncp', 'null_space', 'sap', 'todorov')

MODULES = {
    'arguments': '_validation',
    'arrays.fields': 'arrays',
    'arrays.step_data': 'arrays',
    'collision.ground': 'collision',
    'collision.kinds': 'collision',
    'collision.terrain': 'collision',
    'compare.runs': 'compare',
    'compare.scenarios': 'compare',
    'constraints.gauss': 'constraints',
    'constraints.resolved': 'constraints',
    'contact': 'step',
    'contact.blocks': 'step',
    'contact.problem': 'step',
    'contact.residuals': 'step',
    'contact.solution': 'step',
    'contact.workspace': 'step',
    'contact_models.hybrid.model': 'contact_models',
    'contact_models.protocol': 'contact_models',
    'contact_models.time_stepping': 'contact_models',
    **{f'contact_models.time_stepping.{law}': 'contact_models' for law in LAWS},
    'contact_models.time_stepping.model': 'contact_models',
    'contact_models.time_stepping.stepper': 'contact_models',
    'control.base_motion': 'control',
    'control.controller': 'control',
    'control.inverse_dynamics': 'control',
    'control.stance': 'control',
    'control.trot': 'control',
    'dynamics.energy': 'dynamics',
    'maximal.bodies': 'maximal',
    'maximal.contact': 'maximal',
    'maximal.mechanism': 'maximal',
    'maximal.report': 'maximal',
    'maximal.rows': 'maximal',
    'maximal.simulator': 'maximal',
    'numbers': '_validation',
    'replay.export': 'replay',
    'replay.export.run': 'replay',
    'replay.player': 'replay',
    'replay.recorder': 'replay',
    'replay.recording': 'replay',
    'replay.repeat': 'replay',
    'replay.series': 'replay',
    'replay.survey': 'replay',
    'replay.timeline': 'replay',
    'robot.actuation': 'robot',
    'robot.actuators': 'robot',
    'robot.body_points': 'robot',
    'robot.catalogue': 'robot',
    'robot.closed_loops': 'robot',
    'robot.constraints': 'constraints',
    'robot.contact_point': 'robot',
    'robot.coordinates': 'robot',
    'robot.feet': 'robot',
    'robot.joined': 'robot',
    'robot.loose': 'robot',
    'robot.model': 'robot',
    'robot.parts': 'robot',
    'robot.position_limits': 'robot',
    'robot.share': 'robot',
    'robot.solids': 'robot',
    'robot.stabilisation': 'constraints',
    'robot.urdf': 'robot',
    'robot.xacro_program': 'robot',
    'ros.controllers.base': 'ros.controllers',
    'sensors.contact_flags': 'sensors',
    'sensors.encoders': 'sensors',
    'sensors.foot_forces': 'sensors',
    'sensors.imu': 'sensors',
    'sensors.line': 'sensors',
    'sensors.noise': 'sensors',
    'sensors.part_report': 'sensors',
    'simulation.constraint_report': 'simulation',
    'simulation.contact_report': 'simulation',
    'simulation.foot_report': 'simulation',
    'simulation.observer': 'simulation',
    'simulation.pair_report': 'simulation',
    'simulation.report': 'simulation',
    'simulation.simulator': 'simulation',
    'simulation.snapshot': 'simulation',
    'simulation.worlds': 'simulation',
    'solvers.jit': 'solvers',
    'solvers.springs': 'solvers',
    'support.analysis': 'support',
    'support.stance': 'support',
    'terrain.generator': 'terrain',
    'terrain.height_field': 'terrain',
    'terrain.region': 'terrain',
    'terrain.sub_terrain': 'terrain',
    'terrain.sub_terrains': 'terrain',
    'terrain.terraces': 'terrain',
    'terrain.triangle_mesh': 'terrain',
    'testing.lockstep': 'testing._lockstep_trial',
    'testing.trajectory': 'testing',
    'testing.trial': 'testing',
    'view.camera': 'view',
    'view.embedded': 'view',
    'view.layers': 'view',
    'view.live': 'view',
    'view.motions': 'view',
    'view.page': 'view',
    'view.saved': 'view',
    'view.scene': 'view',
    'view.server': 'view',
    'view.session': 'view',
}
"""Old module: the room, or the module, that has its public names now."""
PACKAGES = {
    module.rpartition('.')[0] for module in MODULES if module.rpartition('.')[0] in MODULES
}
"""Old modules that had others inside."""
NAMES: dict[tuple[str, str], str] = {
    ('compare', 'Run'): 'ModelRun',
    ('replay', 'Moment'): 'TimelineStep',
    ('replay', 'PlayedStep'): 'ReplayedStep',
    ('replay', 'Survey'): 'EventDetection',
    ('replay', 'survey'): 'detect_events',
    ('robot', 'Coordinates'): 'RobotModel',
    ('ros.controllers', 'Controller'): 'ControllerNode',
    ('sensors', 'Line'): 'DelayedSensor',
    ('sensors', 'PartContacts'): 'ContactsView',
    ('sensors', 'PartPairs'): 'PairsView',
    ('sensors', 'PartRecord'): 'RecordView',
    ('sensors', 'PartReport'): 'RobotView',
    ('support', 'BaseMotion'): 'RigidMotion',
    ('support', 'Stance'): 'StanceDynamics',
    ('view', 'Chosen'): 'Settings',
    ('view', 'Offers'): 'Capabilities',
    ('view', 'Shown'): 'DisplayedStep',
}
"""(place now, old name): new name."""


def renamed(place: str) -> Callable[[str], Any]:
    """Return `__getattr__` of a room of which public names were renamed."""

    def attribute(name: str) -> Any:
        new = NAMES.get((place, name))
        if new is None:
            raise AttributeError(f'module contact_sim.{place} has no attribute {name!r}')
        warn(f'contact_sim.{place}.{name}', f'contact_sim.{place}.{new}')
        return getattr(importlib.import_module(f'contact_sim.{place}'), new)

    return attribute


def warn(old: str, new: str) -> None:
    """Warn that `old` will go."""
    message = f'{old} is deprecated and goes with the next release; use {new}'
    warnings.warn(message, DeprecationWarning, stacklevel=3)


class _OldModule(ModuleType):
    """A module without code of its own.

    Importing it hides a function of the same name in its room, such as `survey`: so it can be
    called in the place of the function.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        old = self.__name__.removeprefix('contact_sim.')
        new = NAMES.get((MODULES[old], name), name)
        place = f'contact_sim.{MODULES[old]}'
        value = getattr(importlib.import_module(place), new)
        if isinstance(value, _OldModule):
            value = value._function
        warn(f'{self.__name__}.{name}', f'{place}.{new}')
        return value

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._function(*arguments, **named)


class _OldLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _OldModule(spec.name)
        room, _, name = spec.name.rpartition('.')
        hidden = getattr(sys.modules[room], name, None)
        vars(module)['_function'] = hidden
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are read when they are asked for."""


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        name = fullname.removeprefix('contact_sim.')
        if name not in MODULES or name == fullname:
            return None
        return ModuleSpec(fullname, _OldLoader(), is_package=name in PACKAGES)


def install() -> None:
    """Make the old modules importable. A second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
