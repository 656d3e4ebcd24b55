"""Messages as subscribers get them: bytes of our own writer, read by rclpy."""

from contact_sim.ros._publishers import message_class
from contact_sim.topics._markers import marker_array
from contact_sim.topics._messages import Channel, encoder
from contact_sim.topics._table import MARKERS, SOLVER_STATE


def received(topic, content):
    """Return the content of a message of a topic as a subscriber gets it."""
    return read(topic.type, encoder(topic.type.replace('/msg/', '/'))(content))


def read(kind, data):
    """Return a message from its bytes; of packages without a wheel it is read by rosbags."""
    try:
        kind = message_class(kind)
    except ModuleNotFoundError:
        from rosbags.typesys import Stores, get_typestore

        return get_typestore(Stores.ROS2_KILTED).deserialize_cdr(data, kind)
    from rclpy.serialization import deserialize_message

    return deserialize_message(data, kind)


def received_markers(markers, time=0, frame='odom'):
    """Return markers as messages at simulated time [ns]."""
    return received(MARKERS, marker_array(markers, time, frame)).markers


def received_numbers(content):
    """Return the message of labelled numbers."""
    return received(SOLVER_STATE, content)


class SentMessages(dict):
    """A sink: the messages of each topic as subscribers get them.

    Attributes:
        heard: whether there is a subscriber.
    """

    heard = True

    def channel(self, topic):
        """Return a channel that keeps the messages of a topic."""
        sent = self.setdefault(topic.name, [])
        sink = self

        class Kept(Channel):
            def send(self, data):
                sent.append(read(topic.type, data))

            def has_subscriber(self):
                return sink.heard

        return Kept(topic)
