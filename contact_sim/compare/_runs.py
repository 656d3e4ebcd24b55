"""Run contact models on a scenario, measure them, and write tables and files."""

from __future__ import annotations

import csv
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.compare._scenarios import GRAVITY, Scenario, start
from contact_sim.contact_models import as_contact_model, contact_models
from contact_sim.contact_models._base import ContactModel
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.errors import ContactSimError, NonFiniteState, one_line
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._state import FALLEN

APART = 1e-5
"""Gap above which a force acts at a distance [m]: a foot that rolls rises O(h²) in a step."""
WELL_INSIDE = 0.9
"""Share of the friction cone inside which a foot should stick."""
SETTLED = 0.25
"""Share of the run, at its end, over which creep and weight are means."""
KEPT = {
    'penetration': 1e-5,  # m: what a foot that rolls moves in one step, O(h²)
    'signorini': 1e-8,  # J per kg, as the impulses below N s per kg
    'force_at_distance': 1e-10,
    'cone': 1e-8,
    'dissipation': 1e-8,
    'ncp': 1e-7,
    'slip': 1e-6,  # m/s
    'momentum': 1e-9,
}
"""Largest residual of a law that counts as kept; all but penetration and slip for 1 kg."""


@dataclass(frozen=True)
class Measures:
    """Measures of a run; NaN where a run has none."""

    step_time: float = np.nan
    """Median wall time of Simulator.step [µs]."""
    iterations: float = np.nan
    """Mean iterations of the solver per step [-]."""
    converged: float = np.nan
    """Share of the steps in which the solver met its tolerance [-]."""
    landing: float = np.nan
    """Time of the first contact force [ms]."""
    distance: float = np.nan
    """Way of the centre of mass along x until it stops [mm]."""
    creep: float = np.nan
    """Mean slip velocity of the fastest loaded contact at the end [mm/s]."""
    forward: float = np.nan
    """Mean speed of the base along x in the second half [m/s]."""
    weight: float = np.nan
    """Mean force of the ground at the end, along the normal, over m g cos(slope) [-]."""
    energy_change: float = np.nan
    """ΔT + ΔU over the run [J]."""
    actuation: float = np.nan
    """Work of the joints, friction and damping included [J]."""
    contact_work: float = np.nan
    """Work of the contact forces [J]."""
    integration: float = np.nan
    """Remainder of the balance: O(h²) per step [J]."""


@dataclass
class Trace:
    """Time series of a run, one entry per step."""

    time: list[float] = field(default_factory=list)
    height: list[float] = field(default_factory=list)
    """Of the base above the ground [m]."""
    forward: list[float] = field(default_factory=list)
    """Speed of the centre of mass along x [m/s]."""
    slipped: list[float] = field(default_factory=list)
    """Way of the contact that has slipped furthest [mm]."""

    __repr__ = one_line


@dataclass(frozen=True)
class ModelRun:
    """Result of a contact model on a scenario."""

    model: str
    outcome: str
    """Empty for a run to its end, else what happened."""
    measures: Measures
    laws: dict[str, float]
    """Largest residual by law, see LAWS; empty where no step was taken."""
    broken: dict[str, bool]
    """Whether it counts as broken."""
    trace: Trace

    def headline(self, scenario: Scenario) -> float:
        """Return the measure of the scenario, in its unit."""
        fields = {
            'drop': self.measures.landing, 'slide': self.measures.distance,
            'stand': self.measures.creep, 'slope': self.measures.creep,
            'trot': self.measures.forward,
        }  # fmt: skip
        return fields[scenario.name]

    __repr__ = one_line


@checked
def compare(
    robot: RobotModel,
    scenario: Scenario,
    models: Sequence[str | ContactModel] | None = None,
    time_step: float = 1e-3,
    progress: Callable[[str], None] | None = None,
) -> list[ModelRun]:
    """Run contact models on a scenario, one after the other.

    Args:
        robot: what moves.
        scenario: see `scenarios.scenario_of`.
        models: names or instances; None: all.
        time_step: h [s].
        progress: called with the name of the model after every step.

    Raises:
        ContactSimError: a robot, model or time step that cannot be used.
    """
    asked = tuple(models or contact_models())
    chosen = [as_contact_model(model) for model in asked]
    names = [own if isinstance(own, str) else own.name for own in asked]
    start(scenario, robot, chosen[0], time_step)  # raises for bad input before the first run
    return [
        run(robot, scenario, model, time_step, progress, name)
        for model, name in zip(chosen, names, strict=True)
    ]


def run(
    robot: RobotModel,
    scenario: Scenario,
    model: ContactModel,
    time_step: float,
    progress: Callable[[str], None] | None = None,
    name: str = '',
) -> ModelRun:
    """Run one contact model; a failure is an outcome, not an exception.

    `name` is that of the result, such as of a preset; default: that of the model.
    """
    name = name or model.name
    try:
        begin = start(scenario, robot, model, time_step)
    except ContactSimError as error:
        return ModelRun(name, f'refused: {error}', Measures(), {}, {}, Trace())
    sim, log = begin.sim, Log(begin.sim, scenario)
    for _ in range(steps_of(scenario, time_step)):
        effort = begin.controller(sim.time, sim.q, sim.v)
        before = time.perf_counter()
        try:
            report = sim.step(effort)
        except NonFiniteState:
            log.outcome = f'not finite at t = {sim.time:.3f} s'
            break
        log.note(report, time.perf_counter() - before)
        if progress is not None:
            progress(name)
        if log.outcome:
            break
    return log.result(name)


def steps_of(scenario: Scenario, time_step: float) -> int:
    """Return the number of steps of a run to its end."""
    return max(round(scenario.duration / time_step), 1)


class Log:
    """Samples and sums of a run."""

    def __init__(self, sim: Simulator, scenario: Scenario) -> None:
        self._sim, self._scenario = sim, scenario
        self._model = sim.robot.pinocchio_model
        self._data = data_of(self._model)
        self._start = self._centre(sim.q, sim.v)[0]
        self._standing = self._height(sim.standing_configuration())
        self._laws = dict.fromkeys(LAWS, 0.0)
        self._energy = np.zeros(4)
        self._times: list[float] = []
        self._solver: list[tuple[float, bool]] = []
        self._slip: list[Array] = []
        self._load: list[Array] = []
        self._way = np.zeros((sim.sizes.n_ground, 3))
        self._distance = self._landing = np.nan
        self.outcome = ''
        self.trace = Trace()

    def note(self, report: StepReport, seconds: float) -> None:
        """Add one step, which took wall time `seconds`."""
        self._times.append(1e6 * seconds)
        self._solver.append((report.solver.iterations, report.solver.converged))
        load, slip = report.contacts.normal_force, _tangential(report, report.contacts.velocity)
        self._load.append(load)
        self._slip.append(slip)
        self._note_laws(report, load)
        if np.isnan(self._landing) and load.any():
            self._landing = report.time
        self._way += np.where(load[:, None] > 0.0, slip, 0.0) * self._sim.time_step
        position, velocity = self._centre(report.q, report.v)
        if np.isnan(self._distance) and velocity[0] <= 1e-3:
            self._distance = position[0] - self._start[0]
        height, trace = self._height(report.q), self.trace
        trace.time.append(report.time)
        trace.height.append(height)
        trace.forward.append(float(velocity[0]))
        trace.slipped.append(1e3 * float(np.linalg.norm(self._way, axis=1).max()))
        if height < FALLEN * self._standing:
            self.outcome = f'fell at t = {report.time:.3f} s'

    def _note_laws(self, report: StepReport, load: Array) -> None:
        residuals = report.residuals
        values = residuals.as_dict()
        friction = np.linalg.norm(_tangential(report, report.contacts.force), axis=1)
        inside = friction < WELL_INSIDE * report.contacts.friction * load
        values['slip'] = float(report.contacts.slip_speed[inside].max(initial=0.0))
        values['force_at_distance'] = float(
            self._sim.time_step * load[report.contacts.gap > APART].sum()
        )
        for law in LAWS:
            self._laws[law] = max(self._laws[law], values[law])
        balance = residuals.energy_balance
        joints = balance.actuation + balance.damping + balance.joint_friction
        self._energy += balance.change, joints, balance.contact, balance.integration

    def result(self, model: str) -> ModelRun:
        """Return the run, which has ended."""
        if not self._times:
            return ModelRun(model, self.outcome, Measures(), {}, {}, self.trace)
        mass = self._sim.robot.total_mass
        limits = {
            law: limit * (1.0 if law in ('penetration', 'slip') else mass)
            for law, limit in KEPT.items()
        }
        broken = {law: not value <= limits[law] for law, value in self._laws.items()}
        outcome = self.outcome
        if not outcome and self._scenario.name == 'slide' and np.isnan(self._distance):
            outcome = f'still slides at {self.trace.forward[-1]:.2g} m/s'
        return ModelRun(model, outcome, self._measures(mass), self._laws, broken, self.trace)

    def _measures(self, mass: float) -> Measures:
        solver, whole = np.array(self._solver, dtype=float), not self.outcome
        last = max(round(SETTLED * len(self._times)), 1)
        load, slip = np.array(self._load[-last:]), np.array(self._slip[-last:])
        touching = load > 0.0
        mean = (
            np.where(touching[..., None], slip, 0.0).sum(0)
            / np.maximum(touching.sum(0), 1)[:, None]
        )
        weight = mass * GRAVITY * float(np.cos(self._scenario.slope))
        forward = self.trace.forward[len(self.trace.forward) // 2 :]
        return Measures(
            step_time=float(np.median(self._times)),
            iterations=float(solver[:, 0].mean()),
            converged=float(solver[:, 1].mean()),
            landing=1e3 * self._landing if self._scenario.name == 'drop' else np.nan,
            distance=1e3 * self._distance if self._scenario.name == 'slide' else np.nan,
            creep=1e3 * float(np.linalg.norm(mean, axis=1).max()) if whole else np.nan,
            forward=float(np.mean(forward)) if whole else np.nan,
            weight=float(load.sum(1).mean() / weight) if whole else np.nan,
            energy_change=float(self._energy[0]),
            actuation=float(self._energy[1]),
            contact_work=float(self._energy[2]),
            integration=float(self._energy[3]),
        )

    def _height(self, q: Array) -> float:
        return float(self._sim.terrain.signed_distance(q[None, :3])[0])

    def _centre(self, q: Array, v: Array) -> tuple[Array, Array]:
        pin.centerOfMass(self._model, self._data, np.array(q), np.array(v))
        return self._data.com[0].copy(), self._data.vcom[0].copy()


def _tangential(report: StepReport, vectors: Array) -> Array:
    """Return the parts of vectors (n, 3) along the ground at each contact point."""
    normal = report.record.frame_start[: len(vectors), 2]
    return np.asarray(vectors - np.sum(vectors * normal, axis=1, keepdims=True) * normal)


# --- Results as text, CSV and JSON

COLUMNS = {
    'step_time': ('µs/step', '.0f'),
    'iterations': ('iter', '.1f'),
    'converged': ('solved', '.1%'),
    'creep': ('creep mm/s', '.2g'),
    'weight': ('F/mg', '.4f'),
    'energy_change': ('ΔE J', '.3g'),
    'actuation': ('joints J', '.3g'),
    'contact_work': ('contact J', '.3g'),
    'integration': ('rest J', '.1g'),
}
"""Field of Measures: heading, format."""
UNITS = {
    'penetration': 'm', 'signorini': 'J', 'force_at_distance': 'N s', 'cone': 'N s',
    'dissipation': 'J', 'ncp': 'N s', 'slip': 'm/s', 'momentum': 'N s',
}  # fmt: skip
BROKEN = '*'


def text(scenario: Scenario, runs: Sequence[ModelRun]) -> str:
    """Return two tables for the terminal: measures, and the largest residual of every law."""
    expected = scenario.expected()
    first = [['model', scenario.headline, 'error', *(name for name, _ in COLUMNS.values()), '']]
    second = [['model', *(f'{law} {UNITS[law]}' for law in LAWS)]]
    for run in runs:
        value = run.headline(scenario)
        error = value / expected - 1.0 if expected else math.nan
        numbers = [(value, '.5g'), (error, '+.2%')]
        numbers += [(getattr(run.measures, key), form) for key, (_, form) in COLUMNS.items()]
        cells = ['-' if math.isnan(x) else format(x, form) for x, form in numbers]
        first.append([run.model, *cells, run.outcome])
        second.append([run.model])
        for law in LAWS:
            mark = BROKEN if run.broken.get(law, False) else ' '
            second[-1].append(f'{run.laws[law]:.1e}{mark}' if law in run.laws else '-')
    return (
        f'{scenario.name}: {scenario.meaning}; {scenario.headline}, {scenario.reference} '
        f'{expected:.5g}\n\n{aligned(first)}'
        f'\n\nlargest residual of each law ({BROKEN} broken)\n\n{aligned(second)}'
    )


def aligned(cells: Sequence[Sequence[str]]) -> str:
    """Return rows as lines with columns of equal width, numbers to the right."""
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    last = len(widths) - 1
    lines = [
        '  '.join(
            cell.ljust(width) if k == 0 or (k == last and not cell[:1].isdigit())
            else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]  # fmt: skip
    return '\n'.join([lines[0], '-' * max(map(len, lines)), *lines[1:]])


def rows_of(scenario: Scenario, runs: Sequence[ModelRun]) -> list[dict[str, Any]]:
    """Return a run per row, as the files have them."""
    return [
        {
            'model': run.model,
            'outcome': run.outcome or 'ok',
            'headline': run.headline(scenario),
            'expected': scenario.expected(),
            **asdict(run.measures),
            **{law: run.laws.get(law, math.nan) for law in LAWS},
            'broken': ' '.join(law for law in LAWS if run.broken.get(law, False)),
        }
        for run in runs
    ]


def as_json(scenario: Scenario, runs: Sequence[ModelRun], facts: Mapping[str, Any]) -> str:
    """Return the runs as JSON, with None for numbers that are not finite, which JSON lacks."""
    rows = [
        {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in row.items()
        }
        for row in rows_of(scenario, runs)
    ]
    everything = {**facts, 'scenario': asdict(scenario), 'runs': rows}
    return json.dumps(everything, indent=2, ensure_ascii=False)


def write(
    path: Path, scenario: Scenario, runs: Sequence[ModelRun], facts: Mapping[str, Any]
) -> tuple[Path, Path]:
    """Write `path`.csv and `path`.json; return both paths.

    Args:
        path: without suffix.
        scenario: what was run.
        runs: of the models.
        facts: further entries of the JSON file.
    """
    rows = rows_of(scenario, runs)
    table, document = path.with_suffix('.csv'), path.with_suffix('.json')
    with table.open('w', encoding='utf-8', newline='') as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    document.write_text(as_json(scenario, runs, facts) + '\n', 'utf-8')
    return table, document
