"""Frames of a Pinocchio model by name."""

from __future__ import annotations

import pinocchio as pin

from contact_sim.errors import UnknownName


def frame_called(model: pin.Model, name: str, what: str = 'frame') -> pin.Frame:
    """Return the frame of this name; where a joint and its link share it they are one place.

    Raises:
        UnknownName: there is none; `what` says of what kind in the message.
    """
    found = next((frame for frame in model.frames if frame.name == name), None)
    if found is None:
        raise UnknownName(what, name, [frame.name for frame in model.frames])
    return found
