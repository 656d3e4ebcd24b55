"""A recorded run as an MCAP file: the messages of the node, in the form of `ros2 bag`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from contact_sim.constraints._constraint_rows import constraint_from_dict
from contact_sim.errors import InvalidInput
from contact_sim.replay._archive import understood
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Replayer
from contact_sim.robot._constraints import Constraint
from contact_sim.simulation._report import StepReport
from contact_sim.step._problem import STATUSES
from contact_sim.topics._cdr import schema_text
from contact_sim.topics._sensor_set import recorded_settings
from contact_sim.topics._sinks import Channel, Step, diagnostics
from contact_sim.topics._solver_numbers import status_counts, troubles
from contact_sim.topics._table import DIAGNOSTICS, GRID_MAP, NODE, Topic, absolute, nanoseconds
from contact_sim.topics._world_topics import OK, WARN, SimulationTopics

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
VOLATILE, LATCHED = _QUALITY % (1000, 'volatile'), _QUALITY % (1, 'transient_local')
"""Quality of service as rosbag2 writes it."""
DIAGNOSTICS_PERIOD = 1.0
"""Simulated seconds between two /diagnostics messages."""


class McapSink:
    """Writes messages into an MCAP file; `finish` completes it.

    Args:
        file: opened for writing.

    Attributes:
        time: simulated time of the messages [ns].

    Raises:
        InvalidInput: the package mcap is missing.
    """

    def __init__(self, file: BinaryIO) -> None:
        if mcap_writer is None:
            raise InvalidInput(
                "MCAP files need the package mcap: pip install 'contact_sim[export]'"
            )
        self.time = 0
        self._writer: Any = mcap_writer.Writer(file)
        self._writer.start(profile=PROFILE, library='contact_sim')
        self._schemas: dict[str, int] = {}
        self._count = 0

    def channel(self, topic: Topic) -> McapChannel | None:
        """Return a channel for a topic; ~/grid_map, which RViz draws, is left out."""
        return None if topic == GRID_MAP else McapChannel(self, topic)

    def register(self, topic: Topic) -> int:
        """Write schema and channel of a topic; return the number of the channel."""
        if topic.type not in self._schemas:
            text = schema_text(topic.type.replace('/msg/', '/')).encode()
            self._schemas[topic.type] = self._writer.register_schema(
                topic.type, SCHEMA_ENCODING, text
            )
        number: int = self._writer.register_channel(
            absolute(topic.name), ENCODING, self._schemas[topic.type],
            {'offered_qos_profiles': LATCHED if topic.latched else VOLATILE},
        )  # fmt: skip
        return number

    def write(self, channel: int, data: bytes) -> None:
        """Write a serialised message."""
        self._count += 1
        self._writer.add_message(channel, self.time, data, self.time, self._count % 2**32)

    def finish(self, name: str, metadata: dict[str, str]) -> None:
        """Write metadata, the summary, and the end of the file."""
        self._writer.add_metadata(name, metadata)
        self._writer.finish()


class McapChannel(Channel):
    """A topic of an MCAP file; it is in the file from its first message on."""

    def __init__(self, sink: McapSink, topic: Topic) -> None:
        super().__init__(topic)
        self._sink, self._topic = sink, topic
        self._number: int | None = None

    def send(self, data: bytes) -> None:
        """Write a serialised message at the time of the sink."""
        if self._number is None:
            self._number = self._sink.register(self._topic)
        self._sink.write(self._number, data)


class McapOutput:
    """Writes steps into an MCAP file.

    Args:
        file: opened for writing.
        recording: of the run.
        replayer: replays its steps.
        periods: steps between two messages, 0 for none, by the names of `publish_rate`.
        ground_truth: write exact values beside what the sensors measure.

    Raises:
        InvalidInput: the package mcap is missing, or a recorded parameter that is not allowed.
        RecordingError: invalid parameters or constraints.
    """

    def __init__(
        self, file: BinaryIO, recording: Recording, replayer: Replayer, periods: Mapping[str, int],
        ground_truth: bool,
    ) -> None:  # fmt: skip
        sim = replayer.sim
        self._sink, self._replayer, self._periods = McapSink(file), replayer, periods
        with understood(f'{recording.path}: parameters or constraints'):
            settings = recorded_settings(recording.header.get('parameters', {}))
            constraints = constraints_of(recording, replayer)
        self._recording, self._last = recording, sim.last_report
        self._topics = SimulationTopics(
            sim, settings, constraints, self._sink, truth=ground_truth, links=True
        )
        self._diagnostics = McapChannel(self._sink, DIAGNOSTICS)
        self._diagnosed = max(1, round(DIAGNOSTICS_PERIOD / sim.time_step))
        self._counts = [0] * len(STATUSES)
        self._reported = tuple(self._counts)
        self._model, self._switches, self._last_switch = sim.contact_model, 0, 'none'
        time = self._sink.time = stamp_of(sim.last_report)
        self._topics.publish_static_transforms(time)
        self._topics.publish_descriptions()
        self._topics.publish_ground(time)

    def add(self, report: StepReport) -> None:
        """Write what is due after a step."""
        sim = self._replayer.sim
        time, tick = stamp_of(report), round(report.time / sim.time_step)
        self._sink.time, self._last = time, report
        due = {name for name, steps in self._periods.items() if steps and tick % steps == 0}
        self._count(report)
        if sim.terrain is not self._topics.ground:
            self._topics.clear_markers(time)
            self._topics.publish_ground(time)
        if due:
            self._topics.publish_clock(time)
        wrenches = {
            frame: np.asarray(wrench, dtype=float)
            for frame, wrench in self._replayer.wrenches.items()
        }
        self._topics.publish(Step(report, due, wrenches))
        if tick % self._diagnosed == 0:
            self._write_diagnostics(report)

    def finish(self) -> None:
        """Write the last diagnostics and complete the file."""
        self._sink.time = stamp_of(self._last)
        self._write_diagnostics(self._last)
        header = self._recording.header
        self._sink.finish('contact_sim', {
            'robot': header['robot']['name'],
            'contact_model': self._replayer.sim.contact_model,
            'time_step': repr(header['time_step']),
            'contact_sim': header['versions']['contact_sim'],
        })  # fmt: skip

    def _count(self, report: StepReport) -> None:
        """Count solver statuses and switches of the contact model."""
        sim = self._replayer.sim
        self._counts[int(report.record.solver[0])] += 1
        if sim.contact_model != self._model:
            start = report.time - sim.time_step
            self._last_switch = f'from {self._model} to {sim.contact_model} at t = {start:.9g} s'
            self._model, self._switches = sim.contact_model, self._switches + 1

    def _write_diagnostics(self, report: StepReport) -> None:
        """Write the part of /diagnostics that a recording determines."""
        sim = self._replayer.sim
        warnings = '; '.join(troubles(self._reported, self._counts, report))
        self._reported = tuple(self._counts)
        status = {
            'level': WARN if warnings else OK, 'name': f'{NODE}: simulation',
            'message': warnings or 'running', 'hardware_id': NODE,
        }  # fmt: skip
        values = {
            'contact_model': self._model,
            'contact_model_switches': self._switches,
            'last_contact_model_switch': self._last_switch,
            'constraints': ' '.join(constraint.name for constraint in sim.constraints),
            'steps_since_reset': sim.step_count,
            **status_counts(self._counts),
        }
        self._diagnostics.publish(diagnostics(stamp_of(report), status, values))


def stamp_of(report: StepReport) -> int:
    """Return the stamp of a step [ns].

    Raises:
        InvalidInput: simulated time is below 0, which MCAP does not have.
    """
    time = nanoseconds(report.time)
    if time < 0:
        raise InvalidInput(f'a step at t = {report.time:.9g} s: MCAP has no times below 0')
    return time


def constraints_of(recording: Recording, replayer: Replayer) -> Sequence[Constraint]:
    """Return all constraints that are ever in force in a recording, but those of the robot."""
    own = {constraint.name for constraint in replayer.sim.robot.constraints}
    changes = [
        words
        for event in recording.events
        if event['kind'] == 'constraints'
        for words in event['constraints']
    ]
    listed = [*replayer.sim.constraints, *map(constraint_from_dict, changes)]
    # of several with one name the first counts
    named = {one.name: one for one in reversed(listed) if one.name not in own}
    return list(reversed(named.values()))
