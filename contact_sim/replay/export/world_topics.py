"""What is written of the world: clock, markers, solves, constraints, diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.contact.solution import STATUSES
from contact_sim.drawing.arrows import HeldPoint, holds_frame
from contact_sim.messages.held import held_frame_id, held_wrench, joint_efforts
from contact_sim.messages.markers import (
    CLEAR,
    ContactMarkers,
    Marker,
    SupportMarkers,
    ground_markers,
    held_markers,
    support_markers,
)
from contact_sim.messages.solver_numbers import solver_numbers, status_counts, troubles
from contact_sim.messages.topics import NODE, OF_CONSTRAINTS, OF_WORLD, constraint_topic
from contact_sim.parameters import Settings
from contact_sim.replay.export.cdr import Constant
from contact_sim.replay.export.robot_topics import header, layout
from contact_sim.replay.export.sink import Sink, Topic
from contact_sim.robot.constraints import Constraint
from contact_sim.robot.parts import parts_of
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.simulator import Simulator

Array = NDArray[np.float64]
CLOCK, MARKERS, SOLVER_STATE, SOLVER_DIAGNOSTICS, DIAGNOSTICS = (
    Topic(name, OF_WORLD[name])
    for name in (
        '/clock', '~/contact_markers', '~/solver_state', '~/solver_diagnostics', '/diagnostics',
    )
)  # fmt: skip
TERRAIN = Topic('~/terrain', OF_WORLD['~/terrain'], kept=True)
OK, WARN = 0, 1
"""Levels of diagnostic_msgs/DiagnosticStatus."""
FACTOR = 0.0
"""Real-time factor in ~/solver_state: a recording does not know it."""


def marker_array(markers: Sequence[Marker], time: int, frame: str) -> dict[str, Any]:
    """Return a MarkerArray at simulated time [ns] in the frame of the world."""
    about = header(time, frame)
    return {
        'markers': [
            {
                'header': about,
                'ns': one.namespace,
                'id': one.number,
                'type': one.kind,
                'action': one.action,
                'pose': one.pose,
                'scale': one.scale,
                'color': one.colour,
                'points': one.points,
            }
            for one in markers
        ]
    }


def diagnostics(time: int, status: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a DiagnosticArray of one status with these values."""
    said = [{'key': key, 'value': str(value)} for key, value in values.items()]
    return {'header': header(time), 'status': [{**status, 'values': said}]}


class WorldTopics:
    """Everything that is written once, however many robots there are.

    Args:
        sim: the simulation that takes the steps again.
        settings: frames.
        constraints: all that ever hold, but those of the robot itself.
    """

    def __init__(
        self, sim: Simulator, settings: Settings, constraints: Sequence[Constraint]
    ) -> None:
        self._sim, self._frame = sim, settings[''].odom_frame
        self._parts = parts_of(sim.robot)
        self._described = constraints
        self._points = {
            one.name: HeldPoint(sim.robot, one) for one in constraints if holds_frame(one)
        }
        self._held_frames = {one.name: held_frame_id(one, settings) for one in constraints}
        self._layout: Constant | None = None
        self._counts = [0] * len(STATUSES)
        self._told = tuple(self._counts)
        self._model, self._switches, self._last_switch = sim.contact_model, 0, 'none'
        self._follow_ground()

    def _follow_ground(self) -> None:
        self._ground = self._sim.terrain
        self._contacts = ContactMarkers()
        self._support = [
            SupportMarkers(part.robot, self._ground, part.number) for part in self._parts
        ]

    def write_ground(self, sink: Sink, time: int) -> None:
        """Write ~/terrain."""
        sink.write(TERRAIN, time, marker_array(ground_markers(self._ground), time, self._frame))

    def observe(self, report: StepReport) -> None:
        """Count a step, written or not."""
        self._counts[int(report.record.solver[0])] += 1
        model = self._sim.contact_model
        if model != self._model:
            began = report.time - self._sim.time_step
            self._last_switch = f'from {self._model} to {model} at t = {began:.9g} s'
            self._model, self._switches = model, self._switches + 1

    def write_new_ground(self, sink: Sink, time: int) -> None:
        """Write ~/terrain, and clear the markers, where the ground is another one now."""
        if self._sim.terrain is self._ground:
            return
        self._follow_ground()
        sink.write(MARKERS, time, marker_array([CLEAR], time, self._frame))
        self.write_ground(sink, time)

    def write_clock(self, sink: Sink, time: int) -> None:
        """Write /clock."""
        sink.write(CLOCK, time, {'clock': time})

    def write_markers(
        self, sink: Sink, report: StepReport, wrenches: Mapping[str, ArrayLike], time: int
    ) -> None:
        """Write ~/contact_markers; `wrenches` (world axes) are drawn, too."""
        pushes = {frame: np.asarray(wrench, dtype=float) for frame, wrench in wrenches.items()}
        origins = {
            frame: np.array(self._sim.frame_placement(frame).translation) for frame in pushes
        }
        holding = self._holding()
        held = ((point, holding.get(name)) for name, point in self._points.items())
        markers = [
            *self._contacts.of(report, pushes, origins),
            *support_markers(self._support, self._parts, report),
            *held_markers(held, report),
        ]
        sink.write(MARKERS, time, marker_array(markers, time, self._frame))

    def write_solver_state(self, sink: Sink, report: StepReport, time: int) -> None:
        """Write the numbers of a solve in both forms."""
        names = [one.name for one in self._described]
        values = solver_numbers(report, self._parts, self._ground, names, FACTOR)
        self._layout = self._layout or layout(values)
        sink.write(SOLVER_STATE, time, {'layout': self._layout, 'data': list(values.values())})
        status = {'level': OK, 'name': 'solver', 'hardware_id': NODE}
        named = {label: repr(value) for label, value in values.items()}
        sink.write(SOLVER_DIAGNOSTICS, time, diagnostics(time, status, named))

    def write_constraints(self, sink: Sink, report: StepReport, time: int) -> None:
        """Write the wrench or the efforts of every constraint."""
        holding = self._holding()
        for one in self._described:
            kind = 'wrench' if one.name in self._points else 'effort'
            topic = Topic(constraint_topic(one.name, kind), OF_CONSTRAINTS[_PATTERNS[kind]])
            if kind == 'wrench':
                wrench = held_wrench(self._points[one.name], report, holding.get(one.name))
                said = {'header': header(time, self._held_frames[one.name]), 'wrench': wrench}
            else:
                effort = joint_efforts(report, one, holding.get(one.name))
                said = {'header': header(time), 'name': list(one.holds), 'effort': effort}
            sink.write(topic, time, said)

    def write_diagnostics(self, sink: Sink, report: StepReport, time: int) -> None:
        """Write what /diagnostics knows of the simulation itself."""
        found = '; '.join(troubles(self._told, self._counts, report))
        self._told = tuple(self._counts)
        status = {
            'level': WARN if found else OK, 'name': f'{NODE}: simulation',
            'message': found or 'running', 'hardware_id': NODE,
        }  # fmt: skip
        values = {
            'contact_model': self._model,
            'contact_model_switches': self._switches,
            'last_contact_model_switch': self._last_switch,
            'constraints': ' '.join(one.name for one in self._sim.constraints),
            'steps_since_reset': self._sim.step_count,
            **status_counts(self._counts),
        }
        sink.write(DIAGNOSTICS, time, diagnostics(time, status, values))

    def _holding(self) -> dict[str, Constraint]:
        return {one.name: one for one in self._sim.constraints}


_PATTERNS = {name.rpartition('/')[2]: name for name in OF_CONSTRAINTS}
