"""Frames of a Pinocchio model by name."""

from __future__ import annotations

import pinocchio as pin

from contact_sim.errors import UnknownName


def frame_called(model: pin.Model, name: str, what: str = 'frame') -> pin.Frame:
    """Return the frame of this name; the link where a joint shares it.

    Raises:
        UnknownName: there is none; `what` says of what kind in the message.
    """
    found = [frame for frame in model.frames if frame.name == name]
    if not found:
        raise UnknownName(what, name, [frame.name for frame in model.frames])
    return next((frame for frame in found if frame.type == pin.FrameType.BODY), found[0])
