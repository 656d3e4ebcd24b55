"""Trial: one controller with one robot in one scenario under one contact model, as one row.

A trial holds text and numbers only, so it can be pickled, hashed and stored as a row of a table.
What is random in it is drawn from its seed, by one stream for each of push, ground, start and
noise: a change of one of them leaves the others as they are.

`run_trials` steps trials of one kind together in `Worlds`, with the same rows, to the bit, as
`run_trial` has for each alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim import _reading
from contact_sim._types import Array, Indices
from contact_sim._validation import (
    checked,
    checked_fields,
    finite,
    is_finite,
    number_within,
    positive,
)
from contact_sim.campaign._controllers import (
    BUILT_IN,
    Adapted,
    ControllerError,
    load_controller,
)
from contact_sim.campaign._measures import RESULTS, Log, Logs
from contact_sim.campaign._scenarios import Scenario, ground_of, scenario_of, shortened_to
from contact_sim.collision._terrain import Terrain
from contact_sim.compare._scenarios import GRAVITY
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel, TimeSteppingModel
from contact_sim.errors import (
    ContactSimError,
    InvalidInput,
    NonFiniteState,
    UnknownName,
    of_type,
    shown,
)
from contact_sim.parameters import from_mapping
from contact_sim.replay import Recorder
from contact_sim.replay._format import versions
from contact_sim.robot._actuators import JointCommand
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import standing_on
from contact_sim.simulation._worlds import Worlds, with_masses

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
    """Name in the catalogue, or path of a URDF or xacro file; its meshes may be missing."""
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
    feet: str = ''
    """Links of the robot that are its feet, separated by commas; '': see `load_robot`."""

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

    @property
    def changes(self) -> bool:
        """Whether there is noise or delay."""
        return self._noise is not None or self._delay > 0

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


def start_of(
    trial: Trial, scenario: Scenario, robot: RobotModel, ground: Terrain, pose: Array | None = None
) -> Any:
    """Return q (nq,) and v (nv,) at the start: on the ground, changed by seed, lifted.

    `pose` are joint positions [rad], (n_joints,); None: those of the standing pose.
    """
    q, v = standing_on(robot, ground).copy(), np.zeros(robot.nv)
    if pose is not None:
        q = robot.with_joint_positions(q, pose)
    if trial.start > 0.0:
        normal = trial.start * stream(trial, 'start').standard_normal(robot.nv + 6)
        change = np.zeros(robot.nv)
        change[6:] = START['joint position'] * normal[6 : robot.nv]
        q = np.asarray(pin.integrate(robot.pinocchio_model, q, change))
        v[:3] = START['base velocity'] * normal[:3]
        v[3:6] = START['base turning rate'] * normal[3:6]
    if trial.start > 0.0 or pose is not None:
        for _ in range(SETTLING):
            q[2] -= _lowest_gap(robot, ground, q)
    q[:3] += scenario.height * scenario.up
    return q, v


def _lowest_gap(robot: RobotModel, ground: Terrain, q: Array) -> float:
    """Return the distance of the lowest contact point from the ground [m]."""
    model = robot.pinocchio_model
    data = data_of(model)
    pin.forwardKinematics(model, data, q)
    points = robot.contact_points
    centres = [data.oMi[model.getJointId(point.joint)].act(point.offset) for point in points]
    radii = np.array([point.radius for point in points])
    return float((ground.signed_distance(np.array(centres)) - radii).min())


# --- A trial that is ready to run


def feet_of(text: str) -> tuple[str, ...]:
    """Return the links that are the feet, from `Trial.feet`."""
    return tuple(foot.strip() for foot in text.split(',')) if text else ()


@lru_cache(maxsize=16)
def robot_of(text: str, feet: str = '', check_meshes: bool = False) -> RobotModel:
    """Return a robot by its name or path, loaded once in each process; `feet` as in `Trial`.

    A trial does not look for meshes: whether they are on a machine is asked where a campaign or a
    verdict begins.
    """
    robot = load_robot(text, feet=feet_of(feet) or None, check_meshes=check_meshes)
    if not robot.floating_base or not robot.contact_points:
        raise InvalidInput(
            f'robot {robot.name!r}: a trial needs a floating base and feet; name the links that '
            'are its feet (--feet, or feet of a Trial)'
        )
    return robot


def source_of(trial: Trial) -> str:
    """Return one hash of the files that a trial names, '' without any.

    They are the file of its controller (not what that imports), robot and scenario.
    """
    place, _, _ = trial.controller.rpartition(':')
    files = [Path(text) for text in (trial.controller, place, trial.robot, trial.scenario) if text]
    if place and not place.endswith('.py'):
        with suppress(Exception):  # a module that is missing is the trial's own affair
            spec = importlib.util.find_spec(place)
            files += [Path(spec.origin)] if spec is not None and spec.origin else []
    digest, some = hashlib.blake2b(digest_size=8), False
    for file in files:
        with suppress(_reading.Unreadable):
            digest.update(hashlib.blake2b(_reading.file_bytes(file)).digest())
            some = True
    return digest.hexdigest() if some else ''


@cache
def versions_text() -> str:
    """Return the versions of everything that affects the last bits, as text."""
    return ', '.join(f'{name} {version}' for name, version in versions().items())


def origin_of(trial: Trial) -> dict[str, str]:
    """Return the columns `source` and `versions`: rows can be repeated where both are equal."""
    return {'source': source_of(trial), 'versions': versions_text()}


class Prepared:
    """A trial with everything that it needs but a simulation.

    Its start is in the standing pose, and from where its controller is loaded on in the pose that
    this one starts from, if it has one.

    Raises:
        ContactSimError: a robot, scenario, contact model or controller that cannot be used.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.scenario = shortened_to(scenario_of(trial.scenario), trial.seconds)
        self.nominal = robot_of(trial.robot, trial.feet)
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
        trial = self.trial
        loaded = load_controller(trial.controller, self.nominal, trial.robot, feet_of(trial.feet))
        loaded.check(trial.time_step)
        pose = loaded.start_pose
        if pose is not None:
            self.q, self.v = start_of(trial, self.scenario, self.nominal, self.ground, pose)
        return loaded

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

    def log(self, start: StepReport) -> Log:
        """Return a log of the trial, given the report of its start."""
        return Log(
            self.scenario, self.nominal, self.robot.total_mass, self.ground, start,
            self.trial.time_step, self.trial.delay,
        )  # fmt: skip

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
    """Return a simulation at the start of a trial, in the standing pose, without its controller.

    Raises:
        ContactSimError: a robot, scenario or contact model that cannot be used.
    """
    return Prepared(trial).simulator()


# --- Running trials


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
    log = prepared.log(sim.last_report)
    if recording is None:
        _run_alone(prepared, sim, log)
    else:
        about = {'trial': trial.as_row()}
        with Recorder(sim, recording, hash_every=50, parameters=about):
            _run_alone(prepared, sim, log)
    return _row(trial, log, time.perf_counter() - begin)


def _row(trial: Trial, log: Log, wall: float) -> dict[str, Any]:
    return {**trial.as_row(), **log.results(), 'wall': wall, **origin_of(trial)}


def failed_row(
    trial: Trial, outcome: str, reason: str, cause: str = '', wall: float = 0.0
) -> dict[str, Any]:
    """Return the row of a trial without results."""
    told = {'outcome': outcome, 'reason': reason, 'cause': cause, 'wall': wall}
    return {**trial.as_row(), **RESULTS, **told, **origin_of(trial)}


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

    Alone run trials of controllers without `batch`.
    """
    of_type('trial', trial, Trial)
    try:
        if not _has_batch(trial):
            return None
        compiled = _fits_worlds(trial)
    except ContactSimError:
        return None
    same = (trial.controller, trial.robot, trial.feet, trial.scenario, trial.contact_model)
    return (*same, trial.time_step, trial.seconds, compiled)


def _fits_worlds(trial: Trial) -> bool:
    """Return whether `Worlds` can have it: compiled steps, on grounds with as many features."""
    flat = trial.roughness == 0.0 and scenario_of(trial.scenario).step_height == 0.0
    return flat and isinstance(contact_model_of(trial), TimeSteppingModel)


def _has_batch(trial: Trial) -> bool:
    """Return whether the controller of a trial can control many worlds at once."""
    if trial.controller in BUILT_IN:  # they take long to make
        return _built_in_has_batch(trial.controller, trial.robot, trial.feet)
    robot = robot_of(trial.robot, trial.feet)
    return load_controller(trial.controller, robot, trial.robot).batch is not None


@lru_cache(maxsize=8)
def _built_in_has_batch(controller: str, robot: str, feet: str) -> bool:
    return load_controller(controller, robot_of(robot, feet), robot).batch is not None


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
        worlds = worlds_of(every) if _fits_worlds(trials[0]) else Simulators(every)
        logs = [own.log(worlds.report(k)) for k, own in enumerate(every)]
    except ContactSimError:
        return [run_trial(trial) for trial in trials]  # those that are refused say so
    if not _run_together(every, worlds, logs):
        return [run_trial(trial) for trial in trials]
    wall = (time.perf_counter() - begin) / len(every)
    return [_row(trial, log, wall) for trial, log in zip(trials, logs, strict=True)]


def worlds_of(every: Sequence[Prepared]) -> Worlds:
    """Return worlds at the starts of trials."""
    same = all(own.trial.mass_scale == 1.0 for own in every)
    worlds = Worlds(
        every[0].nominal, len(every), [own.model for own in every],
        [own.ground for own in every], friction=[[own.friction] for own in every],
        time_step=every[0].trial.time_step, gravity=GRAVITY,
        masses=None if same else np.array([own.masses for own in every]), threads=1,
    )  # fmt: skip
    worlds.reset(np.array([own.q for own in every]), np.array([own.v for own in every]))
    return worlds


class Simulators:
    """Simulations at the starts of trials, to be stepped as `Worlds` are, whose names it has.

    Args:
        every: the trials, of any contact model on any ground.
    """

    def __init__(self, every: Sequence[Prepared]) -> None:
        self._simulators = [own.simulator() for own in every]
        self._reports = [sim.last_report for sim in self._simulators]
        self._pushes: list[dict[str, Array] | None] = [None] * len(every)
        self.running = np.ones(len(every), dtype=bool)

    @property
    def time(self) -> Array:
        """[s], shape (n,)."""
        return np.array([sim.time for sim in self._simulators])

    @property
    def q(self) -> Array:
        """Shape (n, nq)."""
        return np.array([sim.q for sim in self._simulators])

    @property
    def v(self) -> Array:
        """Shape (n, nv)."""
        return np.array([sim.v for sim in self._simulators])

    def report(self, world: int) -> StepReport:
        """Return the report of the last step of one of them."""
        return self._reports[world]

    def push(self, frame: str, wrenches: Array) -> None:
        """Apply wrenches (n, 6) [N, N m] at a frame from now on."""
        self._pushes = [{frame: wrench.copy()} if wrench.any() else None for wrench in wrenches]

    def step(self, efforts: Array) -> None:
        """Advance all that run under joint efforts (n, n_joints) [N m]."""
        for k, sim in enumerate(self._simulators):
            if self.running[k]:
                try:
                    self._reports[k] = sim.step(efforts[k], self._pushes[k])
                except NonFiniteState:
                    self.running[k] = False

    def write_steps(self, places: Indices, numbers: Array, residuals: Array) -> None:
        """Write numbers of the last steps at `places` (n, m), and residuals (n, fields)."""
        for k, report in enumerate(self._reports):
            report.write_step(places, numbers[k], residuals[k])


def _run_together(
    every: Sequence[Prepared], worlds: Worlds | Simulators, logs: Sequence[Log]
) -> bool:
    """Step worlds to the end of their trials; return False where they have to run one by one.

    That is where the controller answers all worlds at once otherwise than each alone, or fails.
    """
    frame, n, n_joints = every[0].nominal.base_frame, len(every), every[0].nominal.n_joints
    batch: Callable[[Array, Array, Array], Any] = every[0].controller.batch  # type: ignore
    efforts, pushes, pushed = np.zeros((n, n_joints)), np.zeros((n, 6)), False
    plain = not any(own.disturbances.changes for own in every)
    live, steps = list(enumerate(every)), Logs(logs)
    try:
        for own in every:
            own.controller.command(own.scenario.speed)
    except Exception:  # alone, the row says why
        return False
    for step in range(every[0].steps):
        q, v, times = worlds.q, worlds.v, worlds.time
        q_seen, v_seen = q, v
        if not plain:
            q_seen, v_seen = q.copy(), v.copy()
            for k, own in live:
                q_seen[k], v_seen[k] = own.disturbances.seen(q[k], v[k])
        try:
            answer = np.asarray(batch(times, q_seen, v_seen), dtype=float)
            if step == 0 and not _same_alone(every, times, q_seen, v_seen, answer):
                return False
            if answer.shape != efforts.shape:
                return False
            if not np.isfinite(answer[[k for k, _ in live]]).all():
                return False  # alone, the row says for which joint
            answer = np.where(np.isfinite(answer), answer, 0.0)  # of those that have ended
        except (Exception, SystemExit):
            return False
        if plain:
            efforts = answer
        else:
            for k, own in live:
                efforts[k] = own.disturbances.acting(answer[k])
        active = [k for k, own in live if step in own.disturbances.pushed]
        if pushed or active:
            pushes[:] = 0.0
            for k in active:
                pushes[k] = every[k].disturbances.wrench
            worlds.push(frame, pushes)
            pushed = bool(active)
        worlds.step(efforts)
        running = worlds.running
        if not all(running[k] for k, _ in live):
            return False  # alone, the row says why
        if steps.add(worlds):
            live = [(k, own) for k, own in live if not logs[k].ended]
            if not live:
                return True
            if isinstance(worlds, Simulators):  # fallen robots cost most
                worlds.running[:] = [not log.ended for log in logs]
    steps.end()
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
