"""A client of a page without a browser: it hears what the page is told, and clicks.

It decodes messages as a browser does, and draws nothing.
"""

from __future__ import annotations

import struct
import threading
import time
from collections import defaultdict
from typing import Any

import msgspec
import viser
import zstandard
from viser import _messages
from websockets.sync.client import connect

CAMERA = _messages.ViewerCameraMessage(
    (1.0, 0.0, 0.0, 0.0), (2.0, 2.0, 2.0), 1.0, 0.01, 1000.0, 600, 800, (0.0, 0.0, 0.0),
    (0.0, 0.0, 1.0),
)  # fmt: skip
"""What a browser sends first."""
Place = tuple[float, float, float]
PATIENCE = 20.0
"""Wall seconds until what is waited for has happened."""


class PageClient:
    """One connection to a page.

    Args:
        address: of the page, with its token.
        options: of `connect`, such as other headers.

    Attributes:
        inputs: properties of the inputs of the panel by label, kept up to date.
        commands: uuid and key of what keys do, by label.
        notes: title and text of the notifications so far.
        places: positions of nodes of the scene by name [m]; zero until they are moved.
    """

    def __init__(self, address: str, **options: Any) -> None:
        self.inputs: dict[str, dict[str, Any]] = {}
        self.commands: dict[str, tuple[str, str | None]] = {}
        self.notes: list[tuple[str, str]] = []
        self.places: defaultdict[str, tuple[float, float, float]] = defaultdict(
            lambda: (0.0, 0.0, 0.0)
        )
        self._labels: dict[str, str] = {}
        protocol: Any = f'viser-v{viser.__version__}'
        place = address.replace('http://', 'ws://').rstrip('/')
        self._socket = connect(place, subprotocols=[protocol], max_size=None, **options)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        self._send(CAMERA)

    def close(self) -> None:
        """Leave the page."""
        self._socket.close()
        self._thread.join()

    def set(self, label: str, value: Any) -> None:
        """Change an input, or click a button, as somebody in a browser does."""
        self._send(_messages.GuiUpdateMessage(self.uuid_of(label), {'value': value}))

    def click(self, label: str) -> None:
        """Click a button."""
        self.set(label, True)

    def press(self, label: str) -> None:
        """Press the key of a command."""
        self._send(_messages.CommandTriggerMessage(self.commands[label][0]))

    def drag(self, gizmo: str, position: tuple[float, float, float]) -> None:
        """Seize a gizmo and draw it to a position [m]."""
        turn = 1.0, 0.0, 0.0, 0.0
        self._send(_messages.TransformControlsDragStartMessage(gizmo))
        self._send(_messages.TransformControlsUpdateMessage(gizmo, turn, position))

    def let_go(self, gizmo: str) -> None:
        """Let go of a gizmo."""
        self._send(_messages.TransformControlsDragEndMessage(gizmo))

    def click_scene(self, origin: Any, direction: Any) -> None:
        """Click at the scene: what a ray of the page meets, from `origin` [m], (3,)."""
        ray = [tuple(float(x) for x in vector) for vector in (origin, direction)]
        self._send(_messages.ScenePointerMessage('click', ray[0], ray[1], ((0.5, 0.5),), None))

    def uuid_of(self, label: str) -> str:
        """Return the identifier of an input."""
        found = [uuid for uuid, name in self._labels.items() if name == label]
        if len(found) != 1:
            raise KeyError(f'{len(found)} inputs {label!r} among {sorted(self.inputs)}')
        return found[0]

    def value(self, label: str) -> Any:
        """Return what an input shows."""
        return self.inputs[self.uuid_of(label)]['value']

    def _send(self, message: Any) -> None:
        self._socket.send(msgspec.msgpack.encode(message.as_serializable_dict()))

    def _listen(self) -> None:
        decompress = zstandard.ZstdDecompressor().decompress
        for data in self._socket:
            assert isinstance(data, bytes)
            length, packed = struct.unpack('<QQ', data[:16])
            told = msgspec.msgpack.decode(decompress(data[16 : 16 + packed], length))
            for message in told['messages']:
                self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        kind = message['type']
        if kind == 'GuiUpdateMessage':
            self.inputs.setdefault(message['uuid'], {}).update(message['updates'])
            if 'label' in message['updates']:
                self._labels[message['uuid']] = message['updates']['label']
        elif kind == 'RegisterCommandMessage':
            said = message['props']
            self.commands[said['label']] = message['uuid'], said['hotkey']
        elif kind == 'SetPositionMessage':
            self.places[message['name']] = message['position']
        elif kind == 'NotificationShowMessage':
            self.notes.append((message['props']['title'], message['props']['body']))
        elif kind.startswith('Gui') and 'label' in message.get('props', {}):
            known = self.inputs.setdefault(message['uuid'], {})
            known |= {'value': message.get('value')} | message['props']
            self._labels[message['uuid']] = message['props']['label']


def wait_until(true: Any, what: str = 'nothing has happened') -> None:
    """Wait until `true()`.

    Raises:
        TimeoutError: it is not in PATIENCE.
    """
    end = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.005)
