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

MOVED = {
    'arrays': 'fields step_data',
    'collision': 'ground kinds terrain',
    'compare': 'runs scenarios',
    'constraints': 'gauss resolved',
    'contact_models': (
        'hybrid.model protocol time_stepping time_stepping.anitescu time_stepping.compliant '
        'time_stepping.lcp time_stepping.model time_stepping.ncp time_stepping.null_space '
        'time_stepping.sap time_stepping.stepper time_stepping.todorov'
    ),
    'control': 'base_motion controller inverse_dynamics stance trot',
    'dynamics': 'energy',
    'maximal': 'bodies contact mechanism report rows simulator',
    'replay': 'export export.run player recorder recording repeat series survey timeline',
    'robot': (
        'actuation actuators body_points catalogue closed_loops contact_point coordinates feet '
        'joined loose model parts position_limits share solids urdf xacro_program'
    ),
    'sensors': 'contact_flags encoders foot_forces imu line noise part_report',
    'simulation': (
        'constraint_report contact_report foot_report observer pair_report report simulator '
        'snapshot worlds'
    ),
    'solvers': 'jit springs',
    'support': 'analysis stance',
    'terrain': 'generator height_field region sub_terrain sub_terrains terraces triangle_mesh',
    'testing': 'trajectory trial',
    'view': 'camera embedded layers live motions page saved scene server session',
}
"""Room: its modules that are private now; it has their public names itself."""
MODULES = {
    **{f'{room}.{name}': room for room, names in MOVED.items() for name in names.split()},
    'arguments': '_validation',
    'contact': 'step',
    'contact.blocks': 'step',
    'contact.problem': 'step',
    'contact.residuals': 'step',
    'contact.solution': 'step',
    'contact.workspace': 'step',
    'numbers': '_validation',
    'robot.constraints': 'constraints',
    'robot.stabilisation': 'constraints',
    'ros.controllers.base': 'ros.controllers',
    'testing.lockstep': 'testing._lockstep_trial',
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


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        name = fullname.removeprefix('contact_sim.')
        if name not in MODULES or name == fullname:
            return None
        return ModuleSpec(fullname, self, is_package=name in PACKAGES)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = _OldModule(spec.name)
        room, _, name = spec.name.rpartition('.')
        hidden = getattr(sys.modules[room], name, None)
        vars(module)['_function'] = hidden
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are read when they are asked for."""


def install() -> None:
    """Make the old modules importable. A second call does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
