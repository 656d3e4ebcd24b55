"""~/solver_state: how well the last step was solved, as labelled numbers."""

from __future__ import annotations

import numpy as np
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from contact_sim.collision.terrain import Terrain
from contact_sim.contact.solution import STATUSES
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import parts_of
from contact_sim.ros.outputs.support_state import support_numbers, support_of
from contact_sim.sensors.part_report import PartReport
from contact_sim.simulation.report import StepReport
from contact_sim.support.analysis import analyse_support


class SolverStateMessage:
    """One number per label; the labels stand in layout.dim.

    First time [s], status (index into the solver statuses), converged, iterations, the residual
    of the solver's own criterion, contacts, the real-time factor and the stiffness ratio (above 2
    explicit springs explode), whether the forces are physical, then the residuals of
    contact/residuals.py and what the feet hold, `support_*` of ros/outputs/support_state.py, with
    the name of each of several robots before it: `a/support_rank`.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain) -> None:
        self._parts, self._terrain = parts_of(robot), terrain
        self.message = Float64MultiArray()

    def rehearse(self, report: StepReport) -> None:
        """Compute once what a message of a robot on all its feet needs."""
        self.fill(report, 0.0)
        for part in self._parts:
            feet, q = range(len(part.robot.contact_points)), report.q[part.q]
            support_numbers(analyse_support(part.robot, q, feet, terrain=self._terrain))

    def fill(self, report: StepReport, real_time_factor: float) -> Float64MultiArray:
        """Return the message."""
        solver = report.solver
        values = {
            'time': report.time,
            'status': float(STATUSES.index(solver.status)),
            'converged': float(solver.converged),
            'iterations': float(solver.iterations),
            'solver_residual': solver.residual,
            'contacts': float(np.count_nonzero(report.contacts.mode)),
            'real_time_factor': real_time_factor,
            'stiffness_ratio': report.stiffness_ratio,
            'physical': float(solver.physical),
            **report.residuals.as_dict(),
        }
        for part in self._parts:
            support = support_of(part.robot, self._terrain, PartReport(report, part))
            values |= {part.called(name): x for name, x in support_numbers(support).items()}
        if not self.message.layout.dim:
            self.message.layout.dim = [
                MultiArrayDimension(label=label, size=1, stride=1) for label in values
            ]
        self.message.data = [float(value) for value in values.values()]
        return self.message
