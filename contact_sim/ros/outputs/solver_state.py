"""How well the last step was solved: labelled numbers, and the same by name for plot tools.

PlotJuggler and Foxglove know no labels of arrays. Of standard messages both show the values of a
diagnostic_msgs/DiagnosticArray under their keys, and plot those that are numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from contact_sim.collision.terrain import Terrain
from contact_sim.messages.solver_numbers import solver_numbers, support_numbers
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import parts_of
from contact_sim.ros.conversions import set_stamp
from contact_sim.simulation.report import StepReport
from contact_sim.support.analysis import analyse_support


class SolverStateMessage:
    """~/solver_state: one number per label; the labels stand in layout.dim.

    They are those of `messages.solver_numbers`.
    """

    def __init__(
        self, robot: RobotModel, terrain: Terrain, constraints: Sequence[str] = ()
    ) -> None:
        self._parts, self._terrain, self._constraints = parts_of(robot), terrain, constraints
        self.message = Float64MultiArray()

    def rehearse(self, report: StepReport) -> None:
        """Compute once what a message of a robot on all its feet needs."""
        self.fill(report, 0.0)
        for part in self._parts:
            feet, q = range(len(part.robot.contact_points)), report.q[part.q]
            support_numbers(analyse_support(part.robot, q, feet, terrain=self._terrain))

    def values(self, report: StepReport, real_time_factor: float) -> dict[str, float]:
        """Return the number of every label."""
        return solver_numbers(
            report, self._parts, self._terrain, self._constraints, real_time_factor
        )

    def fill(self, report: StepReport, real_time_factor: float) -> Float64MultiArray:
        """Return the message."""
        return self.of(self.values(report, real_time_factor))

    def of(self, values: Mapping[str, float]) -> Float64MultiArray:
        """Return the message with these numbers."""
        if not self.message.layout.dim:
            self.message.layout.dim = [
                MultiArrayDimension(label=label, size=1, stride=1) for label in values
            ]
        self.message.data = list(values.values())
        return self.message


class SolverDiagnosticsMessage:
    """~/solver_diagnostics: the numbers of ~/solver_state by name.

    One status of hardware_id `name`, the values with all their digits. Its level is OK: whether
    anything is wrong stands on /diagnostics.

    Args:
        name: of the node.
    """

    def __init__(self, name: str) -> None:
        self._status = DiagnosticStatus(name='solver', hardware_id=name)
        self.message = DiagnosticArray(status=[self._status])

    def of(self, time: float, values: Mapping[str, float]) -> DiagnosticArray:
        """Return the message of simulated time [s] with these numbers."""
        set_stamp(self.message.header.stamp, time)
        if not self._status.values:
            self._status.values = [KeyValue(key=label) for label in values]
        for pair, value in zip(self._status.values, values.values(), strict=True):
            pair.value = repr(value)
        return self.message
