"""~/shadow: what other contact models make of the last step, as labelled numbers."""

from __future__ import annotations

import numpy as np
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from contact_sim.contact.solution import NONFINITE, STATUSES
from contact_sim.messages.labels import velocity_labels
from contact_sim.robot.model import RobotModel
from contact_sim.robot.parts import parts_of
from contact_sim.simulation.report import StepReport
from contact_sim.simulation.shadow import ShadowReport


class ShadowMessage:
    """One number per label; the labels stand in layout.dim.

    First `time` [s], then for each model of contact.shadow: `<model>.status` (index into the
    solver statuses), `<model>.converged`, `<model>.iterations`, and how it differs from the model
    in force: `<model>.force.<foot>.x` and so on [N, world], `<model>.velocity.<label>` for the
    velocity after the step [m/s, rad/s], labels v_x to w_z for the base and the joints by name. Of
    several robots each foot, base and joint has its robot before its name: `a/v_x`.
    Where a model has no finite answer its status says so and its differences are 0.
    """

    def __init__(self, robot: RobotModel) -> None:
        self.message = Float64MultiArray()
        self._forces = [f'force.{foot.name}.{axis}' for foot in robot.feet for axis in 'xyz']
        self._velocities = [
            f'velocity.{part.called(name)}'
            for part in parts_of(robot)
            for name in velocity_labels(part.robot)
        ]
        self._models: tuple[str, ...] = ()

    def fill(self, report: StepReport) -> Float64MultiArray:
        """Return the message; solves the step under every model of contact.shadow."""
        shadows = report.shadows
        if self._models != tuple(shadows):
            self._models = tuple(shadows)
            self._label()
        numbers = [[report.time], *(self._numbers(shadow) for shadow in shadows.values())]
        self.message.data = np.concatenate(numbers).tolist()
        return self.message

    def _label(self) -> None:
        about = ('status', 'converged', 'iterations', *self._forces, *self._velocities)
        labels = ['time', *(f'{model}.{name}' for model in self._models for name in about)]
        self.message.layout.dim = [
            MultiArrayDimension(label=label, size=1, stride=1) for label in labels
        ]

    def _numbers(self, shadow: ShadowReport) -> list[float]:
        if not shadow.finite:
            nothing = [0.0] * (len(self._forces) + len(self._velocities))
            return [float(NONFINITE), 0.0, 0.0, *nothing]
        solver = shadow.step.solver
        force = shadow.step.feet.force - shadow.taken.feet.force
        return [
            float(STATUSES.index(solver.status)), float(solver.converged),
            float(solver.iterations), *force.ravel(),
            *shadow.velocity_difference,
        ]  # fmt: skip
