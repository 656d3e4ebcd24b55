"""Trial: one controller with one robot in one scenario under one contact model, as one row.

A trial holds text and numbers only, so it can be pickled, hashed and stored as a row of a table.
What is random in it is drawn from its seed, by one stream for each of push, ground, start and
noise: a change of one of them leaves the others as they are.

`run_trials` steps trials of one kind together in `Worlds`, with the same rows, to the bit, as
`run_trial` has for each alone.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Mask
from contact_sim._validation import (
    checked,
    checked_fields,
    finite,
    is_finite,
    number_within,
    positive,
)
from contact_sim.campaign._controllers import Adapted, ControllerError, load_controller
from contact_sim.campaign._scenarios import Scenario, ground_of, scenario_of, shortened_to
from contact_sim.collision._terrain import Terrain
from contact_sim.compare._runs import APART, KEPT, WELL_INSIDE
from contact_sim.compare._scenarios import GRAVITY
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel, TimeSteppingModel
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.errors import ContactSimError, InvalidInput, NonFiniteState, UnknownName, shown
from contact_sim.parameters import from_mapping
from contact_sim.replay import Recorder
from contact_sim.replay._format import versions
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import standing_on
from contact_sim.simulation._worlds import Worlds, with_masses
from contact_sim.step._problem import STATUSES, EnergyBalance, Residuals

# --- The trial


@checked_fields
@dataclass(frozen=True)
class Trial:
    """One trial, by value; equal trials have equal rows.

    Raises:
        InvalidInput: a value outside what is allowed.
    """

    controller: str
    """See `load_controller`."""
    robot: str = 'go1'
    """Name in the catalogue, or path of a URDF or xacro file."""
    scenario: str = 'stand'
    """Name of a scenario, or path of a YAML file."""
    contact_model: str = 'ncp'
    """Name of a contact model."""
    parameters: tuple[tuple[str, float | str], ...] = ()
    """Names and values of parameters of the contact model; the others have their defaults."""
    time_step: float = 1e-3
    """h [s]."""
    seconds: float | None = None
    """Duration [s]; None: that of the scenario."""
    friction: float | None = None
    """Coulomb coefficient of the ground [-], patches aside; None: that of the scenario."""
    mass_scale: float = 1.0
    """All masses and inertias of the robot over those that the controller knows [-]."""
    delay: float = 0.0
    """Time from a state to the command for it [s], rounded to whole steps."""
    noise: float = 0.0
    """Size of the noise in what the controller sees, over `NOISE` [-]."""
    push: float = 0.0
    """Horizontal impulse on the base [N s], over 0.1 s, direction and instant by seed; 0: that of
    the scenario."""
    roughness: float = 0.0
    """rms height of rough ground [m], by seed."""
    start: float = 0.0
    """Size of a random change of the start, over `START` [-], by seed."""
    seed: int = 0
    """Of everything random."""

    def __post_init__(self) -> None:
        positive('Trial.time_step', self.time_step, 's')
        positive('Trial.mass_scale', self.mass_scale, '')
        if self.seconds is not None:
            positive('Trial.seconds', self.seconds, 's')
        if self.friction is not None:
            number_within('Trial.friction', self.friction, np.inf)
        for name in ('delay', 'noise', 'push', 'roughness', 'start', 'seed'):
            number_within(f'Trial.{name}', getattr(self, name), np.inf)
        pairs = []
        for pair in self.parameters:
            if not (isinstance(pair, list | tuple) and len(pair) == 2 and type(pair[0]) is str):
                raise InvalidInput(
                    f'Trial.parameters: {shown(pair)}: expected pairs (name, value)'
                )
            name, value = pair
            if not isinstance(value, str | bool | int):
                value = finite(f'Trial.parameters: {name}', value)
            pairs.append((name, value))
        object.__setattr__(self, 'parameters', tuple(sorted(pairs)))

    @property
    def key(self) -> str:
        """Hash of all values: the name of this trial in a table, 16 hexadecimal digits."""
        text = json.dumps(self.as_row(), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def as_row(self) -> dict[str, Any]:
        """Return the values as they stand in a row: None is NaN, parameters are JSON."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        row['parameters'] = json.dumps(self.parameters) if self.parameters else ''
        for name in ('seconds', 'friction'):
            row[name] = math.nan if row[name] is None else row[name]
        return row


INPUTS = tuple(field.name for field in fields(Trial))
"""Columns of a row that describe the trial."""


def trial_of(row: Mapping[str, Any]) -> Trial:
    """Return the trial of a row; further columns are ignored.

    Raises:
        InvalidInput: a column that is missing, or holds what is not allowed.
    """
    missing = [name for name in INPUTS if name not in row]
    if missing:
        raise InvalidInput(f'row of a trial: columns {", ".join(missing)} are missing')
    values = {name: row[name] for name in INPUTS}
    for name in ('seconds', 'friction'):
        if values[name] is not None and math.isnan(values[name]):
            values[name] = None
    try:
        text = values['parameters']
        values['parameters'] = tuple(tuple(pair) for pair in json.loads(text)) if text else ()
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f'row of a trial: parameters = {shown(values["parameters"])}: {error}'
        ) from error
    return Trial(**values)


def contact_model_of(trial: Trial) -> ContactModel:
    """Return the contact model of a trial with its parameters.

    Raises:
        UnknownName: a contact model or parameter that does not exist.
        InvalidInput: a value that is not allowed.
    """
    model = as_contact_model(trial.contact_model)
    if not trial.parameters:
        return model
    own = {field.name: getattr(model.parameters, field.name) for field in fields(model.parameters)}
    for name, value in trial.parameters:
        if name not in own:
            raise UnknownName(f'parameter of {trial.contact_model}', name, own)
        own[name] = value
    checked_values = from_mapping(type(model.parameters), own)
    values = {field.name: getattr(checked_values, field.name) for field in fields(checked_values)}
    return type(model)(**values)


# --- What is random in a trial

STREAMS = {'push': 1, 'ground': 2, 'start': 3, 'noise': 4}
"""Number of the stream of random numbers of each factor; never change one."""
PUSH_TIME = 0.1
"""Duration of a push [s]."""
PUSHED = (0.2, 0.6)
"""First and last instant at which a push may begin, over the duration of the trial [-]."""
NOISE = {
    'base position': 0.005,  # m
    'base orientation': 0.01,  # rad
    'joint position': 0.01,  # rad
    'base velocity': 0.05,  # m/s
    'base turning rate': 0.05,  # rad/s
    'joint velocity': 0.2,  # rad/s
}
"""Standard deviations of the noise of size 1, white, in every step, per axis."""
START = {'joint position': 0.05, 'base velocity': 0.1, 'base turning rate': 0.1}
"""Standard deviations [rad, m/s, rad/s] of a change of the start of size 1, per axis."""
SETTLING = 5
"""Rounds that bring the lowest foot back to the ground after a change of the start."""


def stream(trial: Trial, factor: str) -> np.random.Generator:
    """Return the random numbers of one factor of a trial."""
    sequence = np.random.SeedSequence(trial.seed, spawn_key=(STREAMS[factor],))
    return np.random.default_rng(sequence)


class Disturbances:
    """Push, noise and delay of one trial, step by step."""

    def __init__(self, trial: Trial, scenario: Scenario, robot: RobotModel, steps: int) -> None:
        self._model, h = robot.pinocchio_model, trial.time_step
        impulse = trial.push or scenario.push * robot.total_mass
        rng = stream(trial, 'push')
        angle, share = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(*PUSHED)
        long = max(round(PUSH_TIME / h), 1)
        first = int(share * steps)
        self.pushed = range(first, first + long) if impulse > 0.0 else range(0)
        """Steps in which the wrench acts."""
        force = impulse / (long * h)
        self.wrench = np.array([force * np.cos(angle), force * np.sin(angle), 0.0, 0.0, 0.0, 0.0])
        """[N, N m], world axes, shape (6,)."""
        self._scale = trial.noise * np.concatenate([
            np.full(3, NOISE['base position']), np.full(3, NOISE['base orientation']),
            np.full(robot.nv - 6, NOISE['joint position']),
            np.full(3, NOISE['base velocity']), np.full(3, NOISE['base turning rate']),
            np.full(robot.nv - 6, NOISE['joint velocity']),
        ])  # fmt: skip
        self._noise = stream(trial, 'noise') if trial.noise > 0.0 else None
        self._late: deque[Any] = deque()
        self._delay = round(trial.delay / h)

    def seen(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Return the state as the controller sees it."""
        if self._noise is None:
            return q, v
        error = self._scale * self._noise.standard_normal(len(self._scale))
        moved = pin.integrate(self._model, np.array(q), error[: len(v)])
        return np.asarray(moved), v + error[len(v) :]

    def acting(self, command: Any) -> Any:
        """Return the command that acts in a step, given the newest one; at first the first."""
        if not self._delay:
            return command
        if not self._late:
            self._late.extend([command] * self._delay)
        self._late.append(command)
        return self._late.popleft()


def start_of(trial: Trial, scenario: Scenario, robot: RobotModel, ground: Terrain) -> Any:
    """Return q (nq,) and v (nv,) at the start: on the ground, changed by seed, lifted."""
    q, v = standing_on(robot, ground).copy(), np.zeros(robot.nv)
    if trial.start > 0.0:
        normal = trial.start * stream(trial, 'start').standard_normal(robot.nv + 6)
        change = np.zeros(robot.nv)
        change[6:] = START['joint position'] * normal[6 : robot.nv]
        q = np.asarray(pin.integrate(robot.pinocchio_model, q, change))
        v[:3] = START['base velocity'] * normal[:3]
        v[3:6] = START['base turning rate'] * normal[3:6]
        for _ in range(SETTLING):
            q[2] -= _lowest_gap(robot, ground, q)
    q[:3] += scenario.height * scenario.up
    return q, v


def _lowest_gap(robot: RobotModel, ground: Terrain, q: Array) -> float:
    """Return the distance of the lowest contact point from the ground [m]."""
    model = robot.pinocchio_model
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    points = robot.contact_points
    centres = [data.oMi[model.getJointId(point.joint)].act(point.offset) for point in points]
    radii = np.array([point.radius for point in points])
    return float((ground.signed_distance(np.array(centres)) - radii).min())


# --- A trial that is ready to run


@lru_cache(maxsize=8)
def robot_of(text: str) -> RobotModel:
    """Return a robot by its name or path, loaded once in each process."""
    robot = load_robot(text)
    if not robot.floating_base or not robot.contact_points:
        raise InvalidInput(f'robot {robot.name!r}: a trial needs a floating base and feet')
    return robot


@cache
def versions_text() -> str:
    """Return the versions of everything that affects the last bits, as text."""
    return ', '.join(f'{name} {version}' for name, version in versions().items())


class Prepared:
    """A trial with everything that it needs but a simulation.

    Raises:
        ContactSimError: a robot, scenario, contact model or controller that cannot be used.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.scenario = shortened_to(scenario_of(trial.scenario), trial.seconds)
        self.nominal = robot_of(trial.robot)
        self.model = contact_model_of(trial)
        self.robot = self.nominal
        if trial.mass_scale != 1.0:
            self.robot = with_masses(self.nominal, self.masses)
        self.ground = ground_of(self.scenario, trial.roughness, stream(trial, 'ground'))
        self.steps = max(round(self.scenario.seconds / trial.time_step), 1)
        self.friction = self.scenario.friction if trial.friction is None else trial.friction
        self.q, self.v = start_of(trial, self.scenario, self.nominal, self.ground)
        self.disturbances = Disturbances(trial, self.scenario, self.nominal, self.steps)

    @cached_property
    def controller(self) -> Adapted:
        """The controller, which knows the nominal robot."""
        return load_controller(self.trial.controller, self.nominal)

    @property
    def masses(self) -> Array:
        """Masses of the bodies of Pinocchio's joints [kg], shape (njoints − 1,)."""
        inertias = list(self.nominal.pinocchio_model.inertias)[1:]
        return self.trial.mass_scale * np.array([inertia.mass for inertia in inertias])

    def simulator(self) -> Simulator:
        """Return a simulation at the start."""
        sim = Simulator(
            self.robot, self.model, self.ground, friction=self.friction,
            time_step=self.trial.time_step, gravity=GRAVITY,
        )  # fmt: skip
        sim.reset(self.q, self.v)
        return sim

    def effort(self, command: Any, q: Array, v: Array) -> Array:
        """Return the efforts (n_joints,) of a command in the state q, v.

        Raises:
            ControllerError: a wrong shape, or values that are not finite.
        """
        robot = self.nominal
        if isinstance(command, JointCommand):
            if len(command.position) != robot.n_joints:
                raise ControllerError(
                    f'the controller commands {len(command.position)} joints, expected '
                    f'{robot.n_joints}'
                )
            joints = robot.joint_positions(q), robot.joint_velocities(v)
            return command.effort_at(*joints, robot.continuous_joints)
        try:
            effort = np.asarray(command, dtype=float)
        except (TypeError, ValueError) as error:
            raise ControllerError(
                f'the controller returned {shown(command)}: expected joint efforts'
            ) from error
        if effort.shape != (robot.n_joints,):
            raise ControllerError(
                f'the controller returned efforts of shape {effort.shape}, expected '
                f'({robot.n_joints},)'
            )
        if not is_finite(effort):
            joint = int(np.argmax(~np.isfinite(effort))) if not np.isfinite(effort).all() else 0
            raise ControllerError(
                f'the controller returned {effort[joint]} N m for joint '
                f'{robot.joint_names[joint]}: expected a finite number'
            )
        return effort


def simulator_of(trial: Trial) -> Simulator:
    """Return a simulation at the start of a trial; its controller is not loaded.

    Raises:
        ContactSimError: a robot, scenario or contact model that cannot be used.
    """
    return Prepared(trial).simulator()


# --- Running trials

BLOCK = 64
"""Steps between two evaluations of the reports."""


@checked
def run_trial(trial: Trial, recording: str | Path | None = None) -> dict[str, Any]:
    """Run one trial and return its row: the inputs by their names, then the outcome.

    What a controller does wrong, or a robot or model cannot do, is an outcome, no exception.

    Args:
        trial: what to run.
        recording: file in which to record the run; None: nowhere.

    Raises:
        InvalidInput: a recording that cannot be written.
    """
    begin = time.perf_counter()
    try:
        prepared = Prepared(trial)
        _ = prepared.controller
        sim = prepared.simulator()
    except ContactSimError as error:
        return _row_without_steps(trial, error, time.perf_counter() - begin)
    log = Log(prepared, sim.last_report)
    if recording is None:
        _run_alone(prepared, sim, log)
    else:
        about = {'trial': trial.as_row()}
        with Recorder(sim, recording, hash_every=50, parameters=about):
            _run_alone(prepared, sim, log)
    return log.row(time.perf_counter() - begin)


def _row_without_steps(trial: Trial, error: Exception, wall: float) -> dict[str, Any]:
    of_controller = isinstance(error, ControllerError)
    kind, cause = ('controller_error', 'controller') if of_controller else ('refused', '')
    return failed_row(trial, kind, str(error), cause, wall)


def _run_alone(prepared: Prepared, sim: Simulator, log: Log) -> None:
    """Step a simulation to the end of its trial."""
    controller, disturbances, frame = (
        prepared.controller, prepared.disturbances, prepared.nominal.base_frame
    )  # fmt: skip
    push = {frame: disturbances.wrench}
    try:
        controller.command(prepared.scenario.speed)
        controller.reset(sim)
    except Exception as error:
        log.end('controller_error', _words(error))
        return
    for step in range(prepared.steps):
        q, v = sim.q, sim.v
        try:
            newest = controller.effort(sim.time, *disturbances.seen(q, v))
            effort = prepared.effort(disturbances.acting(newest), q, v)
        except (Exception, SystemExit) as error:  # code of the user may raise anything
            log.end('controller_error', _words(error))
            return
        try:
            report = sim.step(effort, push if step in disturbances.pushed else None)
        except NonFiniteState as error:
            log.end('not_finite', str(error))
            return
        if log.add(report):
            return
    log.end('ok', '')


def _words(error: BaseException) -> str:
    """Return what a controller raised in one line."""
    text = ' '.join(str(error).split())
    return text if isinstance(error, ControllerError) else f'{type(error).__name__}: {text}'


def batch_key(trial: Trial) -> tuple[Any, ...] | None:
    """Return what trials that may run as one batch have in common; None: it runs alone.

    Alone run trials on rough ground and stairs, of controllers without `batch`, and of contact
    models without compiled steps.
    """
    try:
        scenario = scenario_of(trial.scenario)
        model = contact_model_of(trial)
        flat = trial.roughness == 0.0 and scenario.step_height == 0.0
        if not (flat and isinstance(model, TimeSteppingModel)):
            return None
        if load_controller(trial.controller, robot_of(trial.robot)).batch is None:
            return None
    except ContactSimError:
        return None
    same = (trial.controller, trial.robot, trial.scenario, trial.contact_model)
    return (*same, trial.time_step, trial.seconds)


def run_trials(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Run trials with one `batch_key` together, and return their rows in order.

    Raises:
        InvalidInput: trials that cannot run together.
    """
    keys = {batch_key(trial) for trial in trials}
    if len(keys) != 1 or None in keys:
        raise InvalidInput('trials that run together: expected one batch_key for all, not None')
    begin = time.perf_counter()
    every: list[Prepared]
    try:
        every = [Prepared(trial) for trial in trials]
        _ = [own.controller for own in every]
        same = all(trial.mass_scale == 1.0 for trial in trials)
        masses = None if same else np.array([own.masses for own in every])
        worlds = Worlds(
            every[0].nominal, len(every), [own.model for own in every],
            [own.ground for own in every], friction=[[own.friction] for own in every],
            time_step=every[0].trial.time_step, gravity=GRAVITY,
            masses=masses, threads=1,
        )  # fmt: skip
        worlds.reset(np.array([own.q for own in every]), np.array([own.v for own in every]))
        logs = [Log(own, worlds.report(k)) for k, own in enumerate(every)]
    except ContactSimError:
        return [run_trial(trial) for trial in trials]  # those that are refused say so
    if not _run_together(every, worlds, logs):
        return [run_trial(trial) for trial in trials]
    wall = (time.perf_counter() - begin) / len(every)
    return [log.row(wall) for log in logs]


def _run_together(every: Sequence[Prepared], worlds: Worlds, logs: Sequence[Log]) -> bool:
    """Step worlds to the end of their trials; return False where they have to run one by one.

    That is where the controller answers all worlds at once otherwise than each alone, or fails.
    """
    frame, n = every[0].nominal.base_frame, len(every)
    batch: Callable[[Array, Array, Array], Any] = every[0].controller.batch  # type: ignore
    efforts, pushes, pushed = np.zeros((n, every[0].nominal.n_joints)), np.zeros((n, 6)), False
    for step in range(every[0].steps):
        q, v, times = worlds.q, worlds.v, worlds.time
        seen = [own.disturbances.seen(q[k], v[k]) for k, own in enumerate(every)]
        q_seen, v_seen = (np.array(part) for part in zip(*seen, strict=True))
        try:
            answer = np.asarray(batch(times, q_seen, v_seen), dtype=float)
            if step == 0 and not _same_alone(every, times, q_seen, v_seen, answer):
                return False
            for k, own in enumerate(every):
                if not logs[k].ended:
                    efforts[k] = own.effort(own.disturbances.acting(answer[k]), q[k], v[k])
        except (Exception, SystemExit):
            return False
        active = [step in own.disturbances.pushed for own in every]
        if pushed or any(active):
            for k, own in enumerate(every):
                pushes[k] = own.disturbances.wrench if active[k] else 0.0
            worlds.push(frame, pushes)
            pushed = any(active)
        worlds.step(efforts)
        running = worlds.running
        for k, log in enumerate(logs):
            if log.ended:
                continue
            if not running[k]:
                return False  # alone, it says why
            log.add(worlds.report(k))
        if all(log.ended for log in logs):
            return True
    for log in logs:
        log.end('ok', '')
    return True


def _same_alone(
    every: Sequence[Prepared], times: Array, q: Array, v: Array, answer: Array
) -> bool:
    """Return whether each world gets the same efforts, to the bit, as alone."""
    if answer.shape != (len(every), every[0].nominal.n_joints):
        return False
    alone = [
        np.asarray(own.controller.effort(float(times[k]), q[k], v[k]), dtype=float)
        for k, own in enumerate(every)
    ]
    return bool(np.array(alone).tobytes() == answer.tobytes())


# --- What a trial leaves in its row

LASTING = 0.02
"""Time for which effort, speed or support have to be outside of their band to count [s]."""
RECENT = 1.0
"""Time before a failure within which what left its band is named as its cause [s]."""
SWING = 0.05
"""Shortest time in the air that counts as a swing [s]."""
SUPPORT_EVERY = 10
"""Steps between two evaluations of the support polygon."""
PLAIN = ('penetration', 'slip')
"""Residuals that are lengths or speeds; all others are given per kg, as in KEPT."""
OUTCOMES = (
    'ok', 'fell', 'missed', 'not_finite', 'controller_error', 'refused', 'hung', 'crashed'
)  # fmt: skip
CAUSES = (
    '', 'torque_limit', 'support', 'clearance', 'height', 'tilt', 'velocity', 'command_age',
    'goal', 'not_finite', 'controller',
)  # fmt: skip
RESULTS: dict[str, Any] = {
    'outcome': '', 'success': False, 'reason': '', 'cause': '', 'end_time': 0.0,
    'distance': math.nan, 'speed_mean': math.nan, 'height_min': math.nan, 'tilt_max': math.nan,
    'torque_share_max': math.nan, 'saturated_share': math.nan, 'support_margin_min': math.nan,
    'clearance_min': math.nan, 'creep_max': math.nan, 'creep_mean': math.nan,
    'slipped': math.nan,
    **{f'{law}_{kind}': math.nan for law in LAWS for kind in ('max', 'p99')},
    **{f'{law}_broken': False for law in LAWS},
    'first_broken': '', 'first_broken_time': math.nan, 'first_broken_foot': '', 'unsolved': 0,
    'energy': math.nan, 'energy_error': math.nan, 'steps': 0, 'hash': '', 'wall': 0.0,
    'versions': '',
}  # fmt: skip
"""Columns of the outcome, with their values where no step was taken."""
CONVERGED = np.array([status.converged for status in STATUSES])


def failed_row(
    trial: Trial, outcome: str, reason: str, cause: str = '', wall: float = 0.0
) -> dict[str, Any]:
    """Return the row of a trial without results."""
    told = {'outcome': outcome, 'reason': reason, 'cause': cause, 'wall': wall}
    return {**trial.as_row(), **RESULTS, **told, 'versions': versions_text()}


def limits_of(mass: float) -> dict[str, float]:
    """Return the largest residual of each law that counts as kept, for a robot of `mass` [kg]."""
    return {law: limit * (1.0 if law in PLAIN else mass) for law, limit in KEPT.items()}


class Log:
    """Evaluates the steps of one trial in blocks, and ends it where the robot falls."""

    def __init__(self, prepared: Prepared, start: StepReport) -> None:
        self._prepared, robot = prepared, prepared.nominal
        self.ended = False
        self._outcome, self._reason = '', ''
        self._block: list[StepReport] = []
        self._parts: dict[str, list[Array]] = {}
        record = start.record
        self._ground = len(start.contacts.gap)
        self._names = start.contacts.names
        self._q, self._v = np.array(record.q), np.array(record.v)
        self._up = prepared.scenario.up
        standing = standing_on(robot, prepared.ground)
        self._standing = float(prepared.ground.signed_distance(standing[None, :3])[0])
        self._mass = prepared.robot.total_mass
        points = [point for foot in robot.feet for point in foot.points]
        features = self._ground // len(robot.contact_points)
        self._tips = [robot.contact_points[point].name for point in points]
        self._feet = (features * np.array(points)[:, None] + np.arange(features)).ravel()
        self._limits = limits_of(self._mass)
        self._steps = 0
        self._energy = np.zeros(len(EnergyBalance._fields))
        self._first: tuple[str, float, str] | None = None

    def add(self, report: StepReport) -> bool:
        """Add one step; return whether the trial has ended."""
        self._block.append(report)
        if len(self._block) == BLOCK:
            self._evaluate()
        return self.ended

    def end(self, outcome: str, reason: str) -> None:
        """End the trial after the last step that was added, unless it has ended before."""
        self._evaluate()
        if not self.ended:
            self.ended, self._outcome, self._reason = True, outcome, reason

    def _evaluate(self) -> None:
        """Evaluate the steps since the last time, up to the one in which the robot fell."""
        reports, self._block = self._block, []
        if not reports or self.ended:
            return
        scenario = self._prepared.scenario
        records = [report.record for report in reports]
        q = np.array([record.q for record in records])
        height = self._prepared.ground.signed_distance(q[:, :3])
        x, y, z, w = q[:, 3:7].T
        base_up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        tilt = np.arccos(np.clip(self._up @ base_up, -1.0, 1.0))
        down = (height < scenario.height_band * self._standing) | (tilt > scenario.tilt_band)
        if down.any():
            count = int(np.argmax(down)) + 1
            reports, records, q = reports[:count], records[:count], q[:count]
            height, tilt = height[:count], tilt[:count]
            self.ended, self._outcome = True, 'fell'
        self._keep('height', height)
        self._keep('tilt', tilt)
        self._keep('place', q[:, :3])
        self._q, self._v = q[-1], np.array(records[-1].v)
        self._note_joints(records)
        self._note_contacts(reports, records)
        self._steps += len(reports)

    def _keep(self, name: str, values: Any) -> None:
        self._parts.setdefault(name, []).append(values)

    def _series(self, name: str) -> Any:
        return np.concatenate(self._parts[name])

    def _note_joints(self, records: Sequence[Any]) -> None:
        robot, h = self._prepared.nominal, self._prepared.trial.time_step
        effort = np.array([record.effort for record in records])
        v = np.array([record.v for record in records])
        speed = np.abs(v[:, robot.joint_velocity_index])
        for name, values, limit in (
            ('torque', np.abs(effort), robot.effort_limit),
            ('velocity', speed, robot.velocity_limit),
        ):
            share = values / limit
            self._keep(name, share.max(axis=1, initial=0.0))
            self._keep(f'{name}_joint', share.argmax(axis=1))
            if name == 'torque':
                self._keep('saturated', (share >= 1.0 - 1e-9).mean(axis=1))
        self._keep('power', h * (np.abs(effort) * speed).sum(axis=1))

    def _note_contacts(self, reports: Sequence[StepReport], records: Sequence[Any]) -> None:
        """Note forces, slip and residuals; per contact with the ground, (steps, contacts)."""
        n, first = self._ground, self._steps
        load = np.array([record.normal_force[:n] for record in records])
        force = np.array([record.contact_force[:n] for record in records])
        normal = np.array([record.frame_start[:n, 2] for record in records])
        gap = np.array([record.gap[:n] for record in records])
        speed = np.array([record.slip_speed[:n] for record in records])
        friction = np.array([record.friction[:n] for record in records])
        along = force - np.sum(force * normal, axis=2, keepdims=True) * normal
        share = np.linalg.norm(along, axis=2)
        loaded = load > 0.0
        inside = share < WELL_INSIDE * friction * load
        creep = np.where(inside, speed, 0.0)
        apart = np.where(gap > APART, load, 0.0)
        values = np.array([report.residuals for report in reports])
        h = self._prepared.trial.time_step
        laws = {law: values[:, Residuals._fields.index(law)] for law in LAWS}
        laws['slip'] = creep.max(axis=1, initial=0.0)
        laws['force_at_distance'] = h * apart.sum(axis=1)
        for law in LAWS:
            self._keep(law, laws[law])
        self._energy += values[:, -len(self._energy) :].sum(axis=0)
        self._keep('creep_sum', creep.sum(axis=1))
        self._keep('creep_count', inside.sum(axis=1))
        self._keep('slid', h * np.where(loaded, speed, 0.0).sum(axis=0)[None])
        self._keep('unsolved', ~CONVERGED[[int(record.solver[0]) for record in records]])
        on_tips = len(records), len(self._tips), -1  # steps, contact points of feet, features
        self._keep('foot_loaded', loaded[:, self._feet].reshape(on_tips).any(axis=2))
        self._keep('foot_gap', gap[:, self._feet].reshape(on_tips).min(axis=2))
        rows = range(-first % SUPPORT_EVERY, len(records), SUPPORT_EVERY)
        position = np.array([records[row].position[:n][self._feet, :2] for row in rows])
        centre = np.array([records[row].energy[1:3] for row in rows]) / self._mass
        margins = np.full(len(records), np.nan)
        if len(rows):
            margins[rows] = support_margin(
                position.reshape(len(rows), -1, 2), centre, loaded[rows][:, self._feet]
            )
        self._keep('support', margins)
        if self._first is None:
            worst = {'penetration': -gap, 'slip': creep, 'force_at_distance': apart}
            self._note_first_broken(laws, worst, records)

    def _note_first_broken(
        self, laws: Mapping[str, Array], worst: Mapping[str, Array], records: Sequence[Any]
    ) -> None:
        """Note which residual is beyond its limit first, when, and at which foot."""
        broken = {law: ~(laws[law] <= self._limits[law]) for law in LAWS}
        steps = {law: int(np.argmax(out)) for law, out in broken.items() if out.any()}
        if not steps:
            return
        step = min(steps.values())
        excess = {law: laws[law][step] / self._limits[law] for law in LAWS if broken[law][step]}
        law, foot = max(excess, key=excess.__getitem__), ''
        if law in worst:
            foot = self._names[int(np.argmax(worst[law][step]))]
        elif law != 'momentum':
            foot = self._names[int(np.argmax(self._work_of_contacts(records[step])))]
        self._first = law, float(records[step].clock[0]), foot

    def _work_of_contacts(self, record: Any) -> Array:
        """Return by how much each contact misses the law, as work [J], shape (contacts,)."""
        n = self._ground
        impulse, u, bias = (
            array[: 3 * n].reshape(n, 3) for array in (record.impulse, record.u_next, record.bias)
        )
        mu = record.friction[:n]
        slip = np.linalg.norm(u[:, :2], axis=1)
        share = np.linalg.norm(impulse[:, :2], axis=1)
        opposed = np.sum(impulse[:, :2] * u[:, :2], axis=1) + mu * impulse[:, 2] * slip
        beyond = np.maximum(share - mu * impulse[:, 2], 0.0)
        normal = np.abs(impulse[:, 2] * (u[:, 2] + bias[:, 2]))
        return np.asarray(normal + np.abs(opposed) + beyond)

    # ---------------------------------------------------------------- the row

    def row(self, wall: float) -> dict[str, Any]:
        """Return the row of the trial, which took `wall` seconds."""
        trial = self._prepared.trial
        if not self._steps:
            cause = {'controller_error': 'controller', 'not_finite': 'not_finite'}
            return failed_row(
                trial, self._outcome, self._reason, cause.get(self._outcome, ''), wall
            )
        duration = self._steps * trial.time_step
        place, start = self._series('place'), self._prepared.q[:3]
        distance = float(place[-1, 0] - start[0])
        support = self._series('support')
        counted = self._series('creep_count').sum()
        result: dict[str, Any] = {
            **trial.as_row(),
            **RESULTS,
            'end_time': duration,
            'distance': distance,
            'speed_mean': distance / duration,
            'height_min': float(self._series('height').min()),
            'tilt_max': float(self._series('tilt').max()),
            'torque_share_max': float(self._series('torque').max()),
            'saturated_share': float(self._series('saturated').mean()),
            'support_margin_min': float(np.fmin.reduce(support)),
            'clearance_min': float(min((top for _, top, _ in self._swings()), default=math.nan)),
            'creep_max': float(self._series('slip').max()),
            'creep_mean': float(self._series('creep_sum').sum() / counted) if counted else 0.0,
            'slipped': float(self._series('slid').sum(axis=0).max(initial=0.0)),
            'unsolved': int(self._series('unsolved').sum()),
            'energy': float(self._series('power').sum()),
            'energy_error': float(EnergyBalance(*self._energy.tolist()).integration),
            'steps': self._steps,
            'hash': hashlib.blake2b(
                self._q.tobytes() + self._v.tobytes(), digest_size=8
            ).hexdigest(),
            'wall': wall,
            'versions': versions_text(),
        }
        for law in LAWS:
            scale, values = 1.0 if law in PLAIN else self._mass, self._series(law)
            result[f'{law}_max'] = float(values.max() / scale)
            result[f'{law}_p99'] = float(np.percentile(values, 99.0) / scale)
            result[f'{law}_broken'] = bool(not values.max() <= self._limits[law])
        if self._first is not None:
            result['first_broken'], result['first_broken_time'], result['first_broken_foot'] = (
                self._first
            )
        result.update(self._verdict(place, start))
        return result

    def _verdict(self, place: Array, start: Array) -> dict[str, Any]:
        """Return outcome, success, reason and cause."""
        outcome, reason, cause = self._outcome, self._reason, ''
        if outcome == 'ok':
            missed = self._missed(place, start)
            if not missed:
                return {'outcome': 'ok', 'success': True}
            outcome, cause, reason = 'missed', 'goal', missed
        elif outcome == 'controller_error':
            cause = 'controller'
        elif outcome == 'not_finite':
            cause = 'not_finite'
        if outcome in ('fell', 'missed'):
            left = self._first_left()
            if left is not None:
                step, cause, words = left
                words = f'{words} at t = {(step + 1) * self._prepared.trial.time_step:.3f} s'
                fell = f'fell at t = {self._steps * self._prepared.trial.time_step:.3f} s'
                reason = f'{words}; ' + (fell if outcome == 'fell' else reason)
        return {'outcome': outcome, 'reason': reason, 'cause': cause}

    def _missed(self, place: Array, start: Array) -> str:
        """Return in which way the goal of the scenario was missed, '' if it was met."""
        scenario, h = self._prepared.scenario, self._prepared.trial.time_step
        half = len(place) // 2
        speed = float(place[-1, 0] - place[half, 0]) / max((len(place) - 1 - half) * h, h)
        drift = float(np.linalg.norm(place[-1, :2] - start[:2]))
        end = float(np.linalg.norm(self._v[:3]))
        if scenario.least_speed > 0.0 and not speed >= scenario.least_speed:
            return (
                f'mean speed {speed:.3g} m/s in the second half, goal {scenario.least_speed:g} '
                'm/s or more'
            )
        if not drift <= scenario.largest_drift:
            return f'ended {drift:.3g} m from its start, goal {scenario.largest_drift:g} m'
        if not end <= scenario.largest_end_speed:
            return (
                f'moves at {end:.3g} m/s at the end, goal below {scenario.largest_end_speed:g} m/s'
            )
        return ''

    def _first_left(self) -> tuple[int, str, str] | None:
        """Return step, cause and words of the quantity that left its band first."""
        s, robot, h = (
            self._prepared.scenario,
            self._prepared.nominal,
            self._prepared.trial.time_step,
        )
        least = max(round(LASTING / h), 1)
        since = self._steps - round(RECENT / h)
        found = []

        def note(cause: str, out: Mask, lasting: int, words: Callable[[int], str]) -> None:
            step = first_lasting(out, lasting, since)
            if step is not None:
                found.append((step, cause, words(step)))

        for name, cause, unit, limit, what in (
            ('torque', 'torque_limit', 'N m', robot.effort_limit, 'effort'),
            ('velocity', 'velocity', 'rad/s', robot.velocity_limit, 'speed'),
        ):
            share, joint = self._series(name), self._series(f'{name}_joint')
            band = s.torque_band if name == 'torque' else s.velocity_band
            note(cause, share >= band - 1e-9, least, lambda k: (
                f'{what} of {robot.joint_names[joint[k]]} '  # noqa: B023
                f'{share[k] * limit[joint[k]]:.3g} {unit}, '  # noqa: B023
                f'band below {band * limit[joint[k]]:.3g} {unit},'  # noqa: B023
            ))  # fmt: skip
        support = self._series('support')
        known = np.flatnonzero(~np.isnan(support))
        if len(known) and np.isfinite(s.support_band):
            last = np.maximum.accumulate(np.where(np.isnan(support), 0, np.arange(len(support))))
            held = support[last]
            note('support', held < s.support_band, least, lambda k: (
                f'centre of mass {held[k]:.3g} m inside the support polygon, band '
                f'{s.support_band:g} m or more,'
            ))  # fmt: skip
        for step, top, foot in self._swings():
            if top < s.clearance_band and step >= since:
                found.append((step, 'clearance', (
                    f'foot {foot} swung {top:.3g} m above the ground, band '
                    f'{s.clearance_band:g} m or more,'
                )))  # fmt: skip
        height, lowest = self._series('height'), s.height_band * self._standing
        note('height', height < lowest, 1, lambda k: (
            f'base {height[k]:.3g} m above the ground, band {lowest:.3g} m or more,'
        ))  # fmt: skip
        tilt = self._series('tilt')
        note('tilt', tilt > s.tilt_band, 1, lambda k: (
            f'base tilted by {tilt[k]:.3g} rad, band up to {s.tilt_band:g} rad,'
        ))  # fmt: skip
        return min(found, default=None)

    def _swings(self) -> list[tuple[int, float, str]]:
        """Return last step, height of the highest point [m] and foot of each whole swing."""
        loaded, gap = self._series('foot_loaded'), self._series('foot_gap')
        least = max(round(SWING / self._prepared.trial.time_step), 1)
        found = []
        for column, name in enumerate(self._tips):
            first, last = runs_of(~loaded[:, column])
            for begin, end in zip(first.tolist(), last.tolist(), strict=True):
                if begin > 0 and end < len(loaded) and end - begin >= least:
                    top = float(gap[begin:end, column].max())
                    found.append((end - 1, top, name))
        return found


def runs_of(out: Mask) -> tuple[Any, Any]:
    """Return the first steps of all runs of True, and the first steps after them."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], out, [False]]).astype(np.int8)))
    return edges[::2], edges[1::2]


def first_lasting(out: Mask, least: int, since: int) -> int | None:
    """Return the first step of the first run of `least` steps that goes on at `since` or later."""
    first, after = runs_of(out)
    fits = (after - first >= least) & (after > since)
    return int(first[fits][0]) if fits.any() else None


def support_margin(points: Array, centre: Array, loaded: Mask) -> Array:
    """Return how far `centre` lies inside the polygon of the loaded points [m].

    Negative outside; NaN where nothing is loaded. The signed distance from a convex set is
    max over unit n of n·c − max n·p; the maximum is at the normal of an edge, or where n points
    from a corner to c.

    Args:
        points: horizontal places [m], shape (T, n, 2).
        centre: shape (T, 2).
        loaded: shape (T, n).
    """
    relative = points - centre[:, None]
    i, j = np.triu_indices(points.shape[1], 1)
    edges = relative[:, j] - relative[:, i]
    normals = np.stack([-edges[..., 1], edges[..., 0]], axis=-1)
    both = loaded[:, i] & loaded[:, j]
    directions = np.concatenate([normals, -normals, -relative], axis=1)
    usable = np.concatenate([both, both, loaded], axis=1)
    lengths = np.linalg.norm(directions, axis=2)
    usable &= lengths > 1e-9
    directions = directions / np.maximum(lengths, 1e-9)[..., None]
    reach = np.einsum('tdk,tnk->tdn', directions, relative)
    reach = np.where(loaded[:, None], reach, -np.inf).max(axis=2)
    margin = np.where(usable, reach, np.inf).min(axis=1)
    return np.where(np.isfinite(margin), margin, np.nan)
