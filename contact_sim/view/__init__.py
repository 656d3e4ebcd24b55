"""The viewer in the browser: a live simulation, a recording, or the simulation of a node.

Its names are loaded on first use: the viewer needs viser, a simulation does not.
"""

import importlib
from typing import TYPE_CHECKING, Any

from contact_sim._deprecated import renamed

if TYPE_CHECKING:
    from contact_sim.view._page import Page
    from contact_sim.view._process import address_of, page_server
    from contact_sim.view._saved import MovingScene, film, render, save_clip, save_page
    from contact_sim.view._scene import Camera, Scene, Switches
    from contact_sim.view._session import (
        Capabilities,
        DisplayedStep,
        LiveSession,
        Motions,
        Running,
        Session,
        Settings,
    )

__all__ = [
    'Camera',
    'Capabilities',
    'DisplayedStep',
    'LiveSession',
    'Motions',
    'MovingScene',
    'Page',
    'Running',
    'Scene',
    'Session',
    'Settings',
    'Switches',
    'address_of',
    'film',
    'page_server',
    'render',
    'save_clip',
    'save_page',
]

_PLACES = {
    '_page': ('Page',),
    '_process': ('address_of', 'page_server'),
    '_saved': ('MovingScene', 'film', 'render', 'save_clip', 'save_page'),
    '_scene': ('Camera', 'Scene', 'Switches'),
    '_session': (
        'Capabilities', 'DisplayedStep', 'LiveSession', 'Motions', 'Running', 'Session',
        'Settings',
    ),
}  # fmt: skip
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f'{__name__}.{_MODULES[name]}'), name)
    return renamed('view')(name)
