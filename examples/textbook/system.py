"""The systems that there are: every module of this package with a SOURCE."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

from matplotlib.figure import Figure

import textbook
from textbook.quantity import Quantity


@dataclass(frozen=True)
class System:
    """One system, see the docstring of the package."""

    name: str
    """Of its module."""
    text: str
    """Docstring of its module."""
    source: str
    """Text and section."""
    robot: str
    """Its robot, as `load_robot` knows it."""
    compute: Callable[[], list[Quantity]]
    """Compute what the text derives."""
    draw: Callable[[Figure], None]
    """Draw what there is to see."""

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """What the text derives, beside ours."""
        return tuple(self.compute())


def systems() -> dict[str, System]:
    """Return all systems by name."""
    names = [module.name for module in pkgutil.iter_modules(textbook.__path__)]
    modules = [importlib.import_module(f'textbook.{name}') for name in sorted(names)]
    found = [_system(module) for module in modules if hasattr(module, 'SOURCE')]
    return {system.name: system for system in found}


def _system(module: ModuleType) -> System:
    name, text = module.__name__.rpartition('.')[2], inspect.getdoc(module) or ''
    return System(name, text, module.SOURCE, module.ROBOT, module.quantities, module.figure)
