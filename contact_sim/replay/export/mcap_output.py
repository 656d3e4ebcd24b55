"""A recorded run as messages, the ones that the node publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import BinaryIO

from contact_sim.constraints.words import from_words
from contact_sim.errors import InvalidInput
from contact_sim.messages.frames import recorded_settings
from contact_sim.messages.stamps import nanoseconds
from contact_sim.messages.topics import OPTIONAL
from contact_sim.replay.archive import understood
from contact_sim.replay.export.robot_topics import AT_THE_ORIGIN, RobotTopics, transform
from contact_sim.replay.export.sink import Sink, Topic
from contact_sim.replay.export.world_topics import WorldTopics
from contact_sim.replay.player import Player
from contact_sim.replay.recording import Recording
from contact_sim.robot.constraints import Constraint
from contact_sim.robot.parts import parts_of
from contact_sim.simulation.report import StepReport

TF = Topic('/tf', OPTIONAL['/tf'])
TF_STATIC = Topic('/tf_static', OPTIONAL['/tf_static'], kept=True)
DIAGNOSTICS_PERIOD = 1.0
"""Simulated seconds between two /diagnostics messages."""


class McapOutput:
    """Writes steps into an MCAP file.

    Args:
        file: opened for writing.
        recording: of the run.
        player: takes its steps.
        periods: steps between two messages, 0 for none, by the names of `publish_rate`.
        ground_truth: write what is true beside what sensors tell.

    Raises:
        InvalidInput: the package mcap is missing, or a recorded parameter that is not allowed.
        RecordingError: parameters or constraints that are none.
    """

    def __init__(
        self, file: BinaryIO, recording: Recording, player: Player, periods: Mapping[str, int],
        ground_truth: bool,
    ) -> None:  # fmt: skip
        sim = player.sim
        self._sink, self._player, self._periods = Sink(file), player, periods
        with understood(f'{recording.path}: parameters or constraints'):
            settings = recorded_settings(recording.header.get('parameters', {}))
            constraints = constraints_of(recording, player)
        self._settings = settings
        self._recording, self._last = recording, sim.last_report
        self._robots = [
            RobotTopics(part, sim.last_report, settings, ground_truth)
            for part in parts_of(sim.robot)
        ]
        self._world = WorldTopics(sim, settings, constraints)
        self._diagnosed = max(1, round(DIAGNOSTICS_PERIOD / sim.time_step))
        self._begin(stamp_of(sim.last_report))

    def _begin(self, time: int) -> None:
        """Write what is said once."""
        common, sink = self._settings[''], self._sink
        fixed = [one for robot in self._robots for one in robot.fixed_transforms(time)]
        if common.world_frame and common.world_frame != common.odom_frame:
            world, odom = common.world_frame, common.odom_frame
            fixed.insert(0, transform(time, world, odom, AT_THE_ORIGIN))
        sink.write(TF_STATIC, time, {'transforms': fixed})
        for robot in self._robots:
            robot.write_description(sink, time)
        self._world.write_ground(sink, time)

    def add(self, report: StepReport) -> None:
        """Write what is due after a step."""
        player, sink, world = self._player, self._sink, self._world
        time, tick = stamp_of(report), round(report.time / player.sim.time_step)
        due = {name for name, steps in self._periods.items() if steps and tick % steps == 0}
        self._last = report
        world.observe(report)
        world.write_new_ground(sink, time)
        for robot in self._robots:
            robot.observe(report)
        if due:
            world.write_clock(sink, time)
            self._write_transforms(due, time)
        if 'odom' in due:
            for robot in self._robots:
                robot.write_odometry(sink, time)
        for robot in self._robots:
            robot.write(sink, due, time)
        if 'wrenches' in due:
            world.write_constraints(sink, report, time)
        if 'markers' in due:
            world.write_markers(sink, report, player.wrenches, time)
        if 'solver_state' in due:
            world.write_solver_state(sink, report, time)
        if tick % self._diagnosed == 0:
            world.write_diagnostics(sink, report, time)

    def _write_transforms(self, due: set[str], time: int) -> None:
        transforms = []
        if 'odom' in due and self._settings[''].publish_odom_tf:
            transforms += [robot.base_transform(time) for robot in self._robots]
        if 'joint_states' in due:
            transforms += [one for robot in self._robots for one in robot.link_transforms(time)]
        if transforms:
            self._sink.write(TF, time, {'transforms': transforms})

    def finish(self) -> None:
        """Write the last diagnostics and complete the file."""
        self._world.write_diagnostics(self._sink, self._last, stamp_of(self._last))
        header = self._recording.header
        self._sink.finish('contact_sim', {
            'robot': header['robot']['name'],
            'contact_model': self._player.sim.contact_model,
            'time_step': repr(header['time_step']),
            'contact_sim': header['versions']['contact_sim'],
        })  # fmt: skip

    def abandon(self) -> None:
        """Write no more, whatever is missing."""


def stamp_of(report: StepReport) -> int:
    """Return the stamp of a step [ns].

    Raises:
        InvalidInput: simulated time is below 0, which MCAP does not have.
    """
    time = nanoseconds(report.time)
    if time < 0:
        raise InvalidInput(f'a step at t = {report.time:.9g} s: MCAP has no times below 0')
    return time


def constraints_of(recording: Recording, player: Player) -> Sequence[Constraint]:
    """Return all constraints that ever hold in a recording, but those of the robot itself."""
    own = {one.name for one in player.sim.robot.constraints}
    said = [event['constraints'] for event in recording.events if event['kind'] == 'constraints']
    listed = [*player.sim.constraints, *(from_words(words) for one in said for words in one)]
    named = {one.name: one for one in reversed(listed) if one.name not in own}
    return list(reversed(named.values()))
