"""Where messages go: one MCAP file, in the form in which `ros2 bag` writes it."""

from __future__ import annotations

from typing import Any, BinaryIO, NamedTuple

from contact_sim.errors import InvalidInput
from contact_sim.messages.topics import absolute
from contact_sim.replay.export.cdr import encoder
from contact_sim.replay.export.definitions import schema_text

try:
    import mcap.writer as mcap_writer
except ImportError:  # an extra
    mcap_writer = None  # type: ignore[assignment]

PROFILE, ENCODING, SCHEMA_ENCODING = 'ros2', 'cdr', 'ros2msg'
_FOREVER = '{sec: 9223372036, nsec: 854775807}'
_QUALITY = f"""\
- history: keep_last
  depth: %d
  reliability: reliable
  durability: %s
  deadline: {_FOREVER}
  lifespan: {_FOREVER}
  liveliness: automatic
  liveliness_lease_duration: {_FOREVER}
  avoid_ros_namespace_conventions: false
"""
EVERY, KEPT = _QUALITY % (1000, 'volatile'), _QUALITY % (1, 'transient_local')
"""Quality of service in the words of rosbag2: of what comes often, and of what is said once."""


class Topic(NamedTuple):
    """A topic of which messages are written."""

    name: str
    """As in `messages.topics`, with `~` for the node."""
    type: str
    """As there, `package/msg/Name`."""
    kept: bool = False
    """Whether the last message is there for who comes late."""


class Sink:
    """Writes messages into an MCAP file; `finish` completes it.

    Args:
        file: opened for writing.

    Raises:
        InvalidInput: the package mcap is missing.
    """

    def __init__(self, file: BinaryIO) -> None:
        if mcap_writer is None:
            raise InvalidInput(
                "MCAP files need the package mcap: pip install 'contact_sim[export]'"
            )
        self._writer: Any = mcap_writer.Writer(file)
        self._writer.start(profile=PROFILE, library='contact_sim')
        self._channels: dict[Topic, tuple[int, Any]] = {}
        self._schemas: dict[str, int] = {}
        self._count = 0

    def write(self, topic: Topic, time: int, message: Any) -> None:
        """Write a message, as `cdr` takes it, of simulated time [ns]."""
        if topic not in self._channels:
            self._channels[topic] = self._register(topic)
        channel, encode = self._channels[topic]
        self._count += 1
        self._writer.add_message(channel, time, encode(message), time, self._count % 2**32)

    def finish(self, name: str, words: dict[str, str]) -> None:
        """Write what else is known of the run, then summary and end of the file."""
        self._writer.add_metadata(name, words)
        self._writer.finish()

    def _register(self, topic: Topic) -> tuple[int, Any]:
        package, _, name = topic.type.split('/')
        short = f'{package}/{name}'
        if topic.type not in self._schemas:
            text = schema_text(short).encode()
            self._schemas[topic.type] = self._writer.register_schema(
                topic.type, SCHEMA_ENCODING, text
            )
        channel = self._writer.register_channel(
            absolute(topic.name), ENCODING, self._schemas[topic.type],
            {'offered_qos_profiles': KEPT if topic.kept else EVERY},
        )  # fmt: skip
        return channel, encoder(short)
