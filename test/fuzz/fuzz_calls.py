"""Odd arguments of every public call: functions, classes, their methods and settable properties.

What is public is found by looking: `__all__` of contact_sim and of its rooms, and what the pages
in docs/ import besides. A call added tomorrow is tried tomorrow.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_good import Good
from fuzz_values import odd, shown
from fuzz_workers import Unlawful

import contact_sim
from contact_sim import ContactProblem, Simulator
from contact_sim.collision._terrain import GroundSurface
from contact_sim.compare._scenarios import Scenario
from contact_sim.control import Balance, Stance, Trot
from contact_sim.errors import ContactSimError
from contact_sim.maximal import MaximalSimulator
from contact_sim.robot._model import RobotModel
from contact_sim.terrain import HeightField, Region, Terraces, TriangleMesh
from contact_sim.testing import TrajectoryFailure
from contact_sim.view._session import LiveSession

DOCS = Path(__file__).resolve().parents[2] / 'docs'
README = DOCS.with_name('README.md')
IMPORT = re.compile(r'^ *from (contact_sim[\w.]*) import ([\w, ]+)$', re.MULTILINE)
NOT_FOR_USERS = {
    'pytest_addoption': 'hook of pytest', 'pytest_runtest_makereport': 'hook of pytest',
    'trial': 'fixture of pytest', 'lockstep_trial': 'fixture of pytest',
    'bind': 'called by the simulator', 'sized': 'called by the simulator',
    'reach': 'called by the simulator', 'settings': 'called by the simulator',
    'law_numbers': 'called by the simulator', 'check_fits': 'called by the simulator',
    'before_step': 'called by the simulator', 'after_step': 'called by the simulator',
    'sample': 'called by a DelayedSensor', 'measure': 'called by a DelayedSensor',
    'bias': 'called by a DelayedSensor',
    'execute': 'called by the commands of a session, which check',
    'ground': 'called by build, which checks', 'check_room': 'called by build',
    'Page': 'opens a port', 'page_server': 'opens a port',
    'count': 'of a tuple', 'index': 'of a tuple', 'effort_at': 'called by the simulator',
}  # fmt: skip
"""Names that are public for another reason than that users call them."""


NOWHERE = ('height', 'limit', 'first_beyond')
"""Methods that answer NaN where there is nothing, as they say."""


NOT_CALLED = {
    'arrays', 'collision', 'compare', 'contact_models', 'dynamics', 'identify', 'reality', 'robot',
    'ros', 'simulation', 'solvers', 'step', 'view',
}  # fmt: skip
"""Rooms of programs, and rooms whose types are made by the package and by authors of models.

What users call in them is in `contact_sim` or imported by a page of the documentation.
"""
RETURNED = {
    'Answer', 'BaseGains', 'BaseMotion', 'BaseReference', 'BodyState', 'Chunk', 'ConstraintTable',
    'ContactForces', 'ContactsView', 'Event', 'EventDetection', 'Exported', 'JointRows',
    'MaximalReport', 'Mechanism', 'PairsView', 'PlacedRows', 'RecordView', 'ReplayedStep',
    'Sample', 'Sensor', 'Series', 'Switched', 'TimelineStep', 'TrotTuning',
}  # fmt: skip
"""Types that calls return, or that a call makes of its arguments."""


@dataclass(frozen=True)
class Call:
    """Something public that takes arguments."""

    item: Any
    """A class or a function."""
    parameters: tuple[inspect.Parameter, ...]
    method: str = ''
    """Of a class; '': its constructor."""
    bound: bool = False
    """Whether an object of the class is needed."""
    sets: bool = False
    """Whether it is a property that is set."""

    @property
    def name(self) -> str:
        """Such as 'Simulator.reset'."""
        return f'{self.item.__name__}.{self.method}' if self.method else str(self.item.__name__)


def exported() -> list[Any]:
    """Return everything public, each once, ordered by name."""
    modules = {module.name for module in pkgutil.iter_modules(contact_sim.__path__)}
    rooms = [f'contact_sim.{name}' for name in sorted(modules - NOT_CALLED)]
    places = [
        (room, name)
        for room in ('contact_sim', *rooms)
        for name in getattr(importlib.import_module(room), '__all__', ())
        if name not in RETURNED
    ]
    for page in sorted((*DOCS.rglob('*.md'), README)):
        for room, names in IMPORT.findall(page.read_text(encoding='utf-8')):
            with suppress(ImportError):  # PyTorch or JAX is not installed
                importlib.import_module(room)
                places += [(room, name.split(' as ')[0].strip()) for name in names.split(',')]
    found = (getattr(importlib.import_module(room), name) for room, name in places)
    items = {id(item): item for item in found if inspect.isclass(item) or inspect.isfunction(item)}
    return sorted(items.values(), key=lambda item: (item.__name__, item.__module__))


def calls() -> list[Call]:
    """Return all public calls."""
    found: list[Call] = []
    for item in exported():
        if item.__name__ in NOT_FOR_USERS:
            continue
        if inspect.isclass(item):
            found += of_class(item)
        else:
            found.append(Call(item, tuple(inspect.signature(item).parameters.values())))
    return [call for call in found if call.parameters]


def of_class(cls: type) -> Iterator[Call]:
    """Yield constructor, methods and settable properties of a class."""
    if issubclass(cls, BaseException) or getattr(cls, '_is_protocol', False):
        return
    if not inspect.isabstract(cls) and checks_itself(cls):
        yield Call(cls, tuple(inspect.signature(cls).parameters.values()))
    for name in dir(cls):
        if name.startswith('_') or name in NOT_FOR_USERS:
            continue
        item = inspect.getattr_static(cls, name)
        if not getattr(item, '__module__', 'contact_sim').startswith('contact_sim'):
            continue  # inherited from another package
        if isinstance(item, property):
            if item.fset is not None:
                value = inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)
                yield Call(cls, (value,), name, bound=True, sets=True)
        elif isinstance(item, classmethod | staticmethod) or inspect.isfunction(item):
            free = isinstance(item, classmethod | staticmethod)
            parameters = tuple(inspect.signature(getattr(cls, name)).parameters.values())
            yield Call(cls, parameters if free else parameters[1:], name, bound=not free)


def checks_itself(cls: type) -> bool:
    """Return whether users make objects of a class; a dataclass without checks is a result."""
    if not dataclasses.is_dataclass(cls):
        return '__init__' in vars(cls)
    return hasattr(cls, '__post_init__')


class Calls:
    """Inputs of the kind `calls`."""

    def __init__(self, folder: Path) -> None:
        self.said: str | Callable[[], str] = ''
        self.good = Good(folder)
        self.calls = calls()
        for call in self.calls:  # compiles what there is to compile: that is no hang
            with suppress(Exception):
                self.use_well(call)

    def run(self, chance: random.Random) -> None:
        """Make one call with one odd argument, now and then with two."""
        call = chance.choice(self.calls)
        target = self.target(call)
        good = self.arguments(call, chance)
        spoiled = dict(good)
        for name in chance.sample(sorted(good), min(len(good), chance.choice((1, 1, 1, 1, 2)))):
            spoiled[name] = odd(chance, good[name])
        self.said = partial(words, call.name, spoiled)
        if any(takes_long(call, name, value) for name, value in spoiled.items()):
            return
        try:
            result = self.made(call, target, dict(spoiled))
            self.check(call, target, result)
        except TrajectoryFailure:
            pass  # the answer of an assertion
        finally:
            self.tidy()

    def use_well(self, call: Call) -> None:
        """Make a call with good arguments."""
        chance, target = random.Random(0), self.target(call)
        self.check(call, target, self.made(call, target, self.arguments(call, chance)))
        self.tidy()

    def tidy(self) -> None:
        """Put back what a call may have changed."""
        for observer in self.good.sim._observers:
            self.good.sim.remove_observer(observer)
        self.good.sim.shadow = ()
        self.good.sim.restore(self.good.start)

    def target(self, call: Call) -> Any:
        """Return what is called, or the object whose property is set."""
        owner = self.instance(call.item) if call.bound else call.item
        return getattr(owner, call.method) if call.method and not call.sets else owner

    def instance(self, cls: type) -> Any:
        """Return a good object of a class."""
        if cls in self.good.instances:
            return self.good.instances[cls]()
        if inspect.isabstract(cls):
            cls = next(sub for sub in subclasses(cls) if not inspect.isabstract(sub))
        chance = random.Random(0)
        required = {
            p.name: self.good.argument(cls.__name__, p, chance)
            for p in inspect.signature(cls).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        }
        return cls(**required)

    def arguments(self, call: Call, chance: random.Random) -> dict[str, Any]:
        """Return good arguments, some of those with a default left out."""
        found: dict[str, Any] = {}
        for parameter in call.parameters:
            if parameter.kind is parameter.VAR_KEYWORD:
                found |= self.keywords(call, parameter, chance)
            elif parameter.default is parameter.empty or chance.random() < 0.5:
                found[parameter.name] = self.good.argument(call.name, parameter, chance)
        if not found:
            parameter = chance.choice(call.parameters)
            found[parameter.name] = self.good.argument(call.name, parameter, chance)
        return found

    def keywords(self, call: Call, parameter: inspect.Parameter, chance: random.Random) -> Any:
        """Return values for **arguments: a parameter of a contact model, an actuator, a bound."""
        key = self.good.knows(call.name, parameter.name)
        if key is not None and key != parameter.name:
            return dict(self.good.by_name[key])
        declared = None if call.method else getattr(call.item(), 'parameters', None)
        named = self.good.robot.actuators if declared is None else declared
        names = [item.name for item in dataclasses.fields(named)]
        name = chance.choice(names or ['x'])
        return {name: getattr(named, name, 1.0)}

    def made(self, call: Call, target: Any, arguments: dict[str, Any]) -> Any:
        """Make the call."""
        if call.sets:
            setattr(target, call.method, next(iter(arguments.values())))
            return target
        positional = [
            arguments.pop(p.name) for p in call.parameters
            if p.kind is p.POSITIONAL_ONLY and p.name in arguments
        ]  # fmt: skip
        return target(*positional, **arguments)

    # ---------------------------------------------------------------- what came of it

    def check(self, call: Call, target: Any, result: Any) -> None:
        """Raise Unlawful where what was accepted leads to numbers that are not finite."""
        try:
            self.use(getattr(target, '__self__', None))
            self.use(result)
        except ContactSimError:
            pass  # refused later, in our words
        bad = not_finite(result)
        if bad and call.method not in NOWHERE:
            raise Unlawful(f'{call.name} gives {bad}')

    def use(self, made: Any) -> None:
        """Use an object as users do, for a few steps."""
        robot, sim = self.good.robot, self.good.sim
        if isinstance(made, RobotModel):
            if made is not robot:
                steps(Simulator(made))
        elif isinstance(made, Simulator | MaximalSimulator):
            steps(made)
        elif isinstance(made, LiveSession):
            if made is not self.good.session:
                made.close()
        elif isinstance(made, GroundSurface | HeightField | TriangleMesh | Terraces):
            steps(Simulator(robot, terrain=made))  # type: ignore[arg-type]
        elif isinstance(made, Region):
            steps(Simulator(robot, terrain=contact_sim.Plane().with_regions([made])))
        elif isinstance(made, ContactProblem):
            if not np.isfinite(contact_sim.Ncp().solve(made).impulse).all():
                raise Unlawful('ContactProblem: Ncp answers with impulses that are not finite')
        elif isinstance(made, Stance | Trot | Balance):
            if not np.isfinite(made.effort(0.0, sim.q, sim.v)).all():
                raise Unlawful(f'{type(made).__name__}: efforts that are not finite')
        elif hasattr(made, 'bind') and hasattr(made, 'parameters'):
            sim.contact_model = made
            steps(sim)


def words(name: str, arguments: dict[str, Any]) -> str:
    """Return a call in words."""
    return f'{name}({", ".join(f"{key}={shown(value)}" for key, value in arguments.items())})'


def takes_long(call: Call, name: str, value: Any) -> bool:
    """Return whether an argument asks for much simulated time: who asks for it waits for it."""
    if isinstance(value, Scenario):
        return value.duration > 1.0
    if call.name == 'compare' and name == 'time_step':
        return isinstance(value, int | float) and 0.0 < value < 1e-5
    if name not in ('steps', 'seconds', 'num_rows', 'num_cols'):
        return False
    return isinstance(value, int | float) and 3.0 < value <= 1e7


def subclasses(cls: type) -> list[type]:
    """Return all subclasses, near and far."""
    return [found for sub in cls.__subclasses__() for found in (sub, *subclasses(sub))]


def steps(sim: Simulator | MaximalSimulator) -> None:
    """Take three steps; NonFiniteState is an answer, numbers that are not finite are none."""
    for _ in range(3):
        sim.step(np.zeros(sim.robot.n_joints))
        if not (np.isfinite(sim.q).all() and np.isfinite(sim.v).all() and np.isfinite(sim.time)):
            raise Unlawful('a step ends in a state that is not finite')


PLAIN = (float, np.floating, np.ndarray, complex)


def not_finite(result: Any, depth: int = 0) -> str:
    """Return the name of the first number in a result that is not finite, '' if all are."""
    if isinstance(result, PLAIN):
        numbers = np.asarray(result)
        return 'numbers that are not finite' if _bad(numbers) else ''
    if isinstance(result, tuple | list) and depth < 3:
        return next(filter(None, (not_finite(item, depth + 1) for item in result)), '')
    return ''


def _bad(numbers: np.ndarray) -> bool:
    return numbers.dtype.kind == 'c' or (
        numbers.dtype.kind == 'f' and not bool(np.isfinite(numbers).all())
    )
