"""The same controller with less delay of its own, or in a slower loop, to tell these apart.

A verdict that a command comes too late, or that a loop is too slow, rests on runs of such
variants. They are made from the text of a controller, so a trial can name them: `written` writes
a small Python file with one.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked, positive
from contact_sim.campaign import Trial, load_controller
from contact_sim.campaign._trial import Prepared, feet_of
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._simulator import Simulator

LONGEST = 0.2
"""Longest delay of its own that is looked for [s]."""
BEFORE = 0.02
"""Time for which the controller runs before it is asked how fast it answers [s]."""
PROBE = 1e-3
"""Change of the state to which it should answer [m, rad, m/s, rad/s]."""


class Variant:
    """A controller around another one: passes on its start and its commanded velocity."""

    def __init__(
        self, text: str, robot: RobotModel, source: str = '', feet: Sequence[str] = ()
    ) -> None:
        self.inner = load_controller(text, robot, source, feet)
        self.robot = robot
        self.start_pose = self.inner.start_pose
        if hasattr(self.inner.target, 'velocity'):
            self.velocity = self.inner.target.velocity
        self._sim: Simulator | None = None

    def reset(self, sim: Simulator) -> None:
        """Begin at the state of `sim`."""
        self._sim = sim
        self._pass_on()
        self.inner.reset(sim)

    def _pass_on(self) -> None:
        if hasattr(self.inner.target, 'velocity'):
            self.inner.target.velocity = self.velocity

    def copied(self) -> Any:
        """Return a copy of the inner controller; robot and simulation stay the same objects."""
        return copied(self.inner, self.robot, self._sim)


class Held(Variant):
    """A controller in a loop that is slower than the steps: its commands are held.

    Args:
        text: the controller, see `campaign.load_controller`.
        robot: that it controls.
        period: of the loop [s].
        source: name or path of the robot, which ROS programs need.
        feet: links that are its feet, as `campaign.load_controller` takes them.
    """

    @checked
    def __init__(
        self, text: str, robot: RobotModel, period: float, source: str = '',
        feet: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(text, robot, source, feet)
        self._period = positive('period', period, 's')
        self._next, self._command = -math.inf, None

    def effort(self, time: float, q: Array, v: Array) -> Any:
        """Return the command of the last period."""
        if time >= self._next - 1e-9:
            begin = time if math.isinf(self._next) else self._next
            self._next = begin + self._period
            self._command = self.inner.effort(time, q, v)
        return self._command


class Prompt(Variant):
    """A controller without the delay that it has in itself.

    One that declares it, by an attribute `delay` [s], gets 0 for it. Any other one is asked ahead
    of time: in every step a copy of it gets the present state as often as it takes until its
    answer to this state comes out, and this answer acts at once. For a controller that hands on
    old commands this removes its delay exactly; a filter inside it stays.

    Args:
        text: the controller, see `campaign.load_controller`.
        robot: that it controls.
        delay: of its own [s].
        time_step: between two calls [s].
        source: name or path of the robot, which ROS programs need.
        feet: links that are its feet, as `campaign.load_controller` takes them.

    Raises:
        InvalidInput: a controller that is a plain function and declares no delay: what it
            remembers cannot be copied.
    """

    @checked
    def __init__(
        self, text: str, robot: RobotModel, delay: float, time_step: float, source: str = '',
        feet: Sequence[str] = (),
    ) -> None:  # fmt: skip
        super().__init__(text, robot, source, feet)
        self._calls, self._h = round(delay / time_step), time_step
        self._declared = declared_delay(self.inner.target) is not None
        if self._declared:
            self.inner.target.delay = 0.0

    def effort(self, time: float, q: Array, v: Array) -> Any:
        """Return the answer to this state."""
        self._pass_on()
        if self._declared:
            return self.inner.effort(time, q, v)
        ahead = self.copied()
        self.inner.effort(time, q, v)
        for k in range(self._calls):
            ahead.effort(time + k * self._h, q, v)
        return ahead.effort(time + self._calls * self._h, q, v)


def copied(controller: Any, *shared: Any) -> Any:
    """Return a deep copy of a controller in which `shared` objects stay what they are."""
    return copy.deepcopy(controller, {id(x): x for x in shared if x is not None})


def declared_delay(target: Any) -> float | None:
    """Return the attribute `delay` of a controller [s], None if it has none."""
    value = getattr(target, 'delay', None)
    if not isinstance(value, int | float) or not 0.0 <= value < math.inf:
        return None
    return float(value)


@checked
def own_delay(trial: Trial) -> float:
    """Return the delay that the controller of a trial has in itself [s], 0 if none was found.

    It is the attribute `delay`, or measured: of two copies, one sees a slightly different state;
    the delay is the time until their answers differ. Where the controller cannot be copied, or
    raises, or never answers, nothing is found.
    """
    try:
        prepared = Prepared(trial)
        controller, sim, h = prepared.controller, prepared.simulator(), trial.time_step
        declared = declared_delay(controller.target)
        if declared is not None:
            return declared
        if not hasattr(controller.target, '__dict__') or not vars(controller.target):
            return 0.0  # a function: a copy of it would be itself
        controller.command(prepared.scenario.speed)
        controller.reset(sim)
        for _ in range(max(round(BEFORE / h), 1)):
            command = controller.effort(sim.time, sim.q, sim.v)
            sim.step(prepared.effort(command, sim.q, sim.v))
        one, other = (copied(controller, prepared.nominal, sim) for _ in range(2))
        q, v, model = np.array(sim.q), np.array(sim.v), prepared.nominal.pinocchio_model
        changed = pin.integrate(model, q, np.full(len(v), PROBE)), v + PROBE
        for k in range(round(LONGEST / h) + 1):
            time = sim.time + k * h
            answers = one.effort(time, q, v), other.effort(time, *changed)
            first, second = (prepared.effort(answer, q, v) for answer in answers)
            if not np.array_equal(first, second):
                return k * h
    except Exception:  # code of the user may raise anything; then nothing is known
        return 0.0
    return 0.0


FILE = '''"""Made by contact_sim.verdict: {meaning}."""

from contact_sim.verdict.variants import {name}


def controller(robot):
    return {name}({text!r}, robot, {arguments}, source={source!r}, feet={feet!r})
'''


def absolute(text: str) -> str:
    """Return the text of a controller that does not depend on the working directory."""
    place, colon, name = text.rpartition(':')
    if colon and place.endswith('.py'):
        return f'{Path(place).resolve()}:{name}'
    if not colon and text.endswith(('.npz', '.yaml', '.yml')):
        return str(Path(text).resolve())
    return text


def written(
    folder: Path, variant: type[Variant], text: str, *arguments: float, source: str = '',
    feet: str = '',
) -> str:  # fmt: skip
    """Write a file with a variant of a controller; return it as the text of a controller.

    `source` is the name or path of the robot, and `feet` are as in `Trial`.
    """
    meanings = {
        Held: 'commands are held for {:g} s',
        Prompt: 'without its own delay of {:g} s, in steps of {:g} s',
    }
    meaning = f'{text}, {meanings[variant].format(*arguments)}'
    folder.mkdir(parents=True, exist_ok=True)
    values = '_'.join(f'{1e3 * x:g}ms' for x in arguments[:1])
    path = folder / f'{variant.__name__.lower()}_{values}.py'
    source = FILE.format(
        meaning=meaning.replace('\\', '/'), name=variant.__name__, text=absolute(text),
        arguments=', '.join(map(repr, arguments)), source=source, feet=feet_of(feet),
    )  # fmt: skip
    path.write_text(source, encoding='utf-8')
    return f'{path.resolve()}:controller'
