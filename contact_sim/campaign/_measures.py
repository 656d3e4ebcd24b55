"""Outcome of a trial: height and tilt, forces and residuals of every step, in blocks of steps.

A step costs a copy of the fields that count (`FIELDS`) and its residuals; everything else is
evaluated for a block of steps at once.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from contact_sim._types import Array, Indices, Mask
from contact_sim.campaign._scenarios import Scenario
from contact_sim.collision._terrain import Terrain
from contact_sim.compare._runs import APART, KEPT, WELL_INSIDE
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._report import StepReport
from contact_sim.simulation._state import standing_on
from contact_sim.step._problem import STATUSES, EnergyBalance, Residuals

# --- Columns, and what they count

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
    'margin': math.nan, 'distance': math.nan, 'speed_mean': math.nan,
    'height_min': math.nan, 'tilt_max': math.nan,
    'torque_share_max': math.nan, 'saturated_share': math.nan, 'support_margin_min': math.nan,
    'clearance_min': math.nan, 'creep_max': math.nan, 'creep_mean': math.nan,
    'slipped': math.nan,
    **{f'{law}_{kind}': math.nan for law in LAWS for kind in ('max', 'p99', 'p50')},
    **{f'{law}_broken': False for law in LAWS},
    'first_broken': '', 'first_broken_time': math.nan, 'first_broken_foot': '', 'unsolved': 0,
    'energy': math.nan, 'energy_error': math.nan, 'steps': 0, 'hash': '', 'wall': 0.0,
    'source': '', 'versions': '',
}  # fmt: skip
"""Columns of the outcome, with their values where no step was taken."""
FIELDS = (
    'clock', 'q', 'v', 'energy', 'effort', 'gap', 'position', 'frame_start', 'normal_force',
    'contact_force', 'slip_speed', 'friction', 'impulse', 'u_next', 'bias', 'solver',
)  # fmt: skip
"""Fields of the step data from which the columns come."""
OF_ROWS = ('impulse', 'u_next', 'bias')
"""Those with a row per row of the contact problem; contacts with the ground come first."""
BLOCK = 128
"""Steps between two evaluations."""
CONVERGED = np.array([status.converged for status in STATUSES])


def limits_of(mass: float) -> dict[str, float]:
    """Return the largest residual of each law that counts as kept, for a robot of `mass` [kg]."""
    return {law: limit * (1.0 if law in PLAIN else mass) for law, limit in KEPT.items()}


class Log:
    """Evaluates the steps of one trial, and ends it where the robot falls.

    Args:
        scenario: with its bands and its goal.
        robot: as the controller knows it.
        mass: of the robot that is simulated [kg].
        ground: on which it moves.
        start: report of the state at the start.
        time_step: h [s].
        delay: with which commands act [s].
    """

    def __init__(
        self,
        scenario: Scenario,
        robot: RobotModel,
        mass: float,
        ground: Terrain,
        start: StepReport,
        time_step: float,
        delay: float = 0.0,
    ) -> None:
        self._scenario, self._robot, self._mass = scenario, robot, mass
        self._terrain, self._h, self._delay = ground, time_step, delay
        self.ended = False
        self._outcome, self._reason = '', ''
        self._contacts = n = len(start.contacts.gap)
        self._names = start.contacts.names
        self._q, self._v = np.array(start.q), np.array(start.v)
        self._start = self._q[:3].copy()
        standing = standing_on(robot, ground)
        self._standing = float(ground.signed_distance(standing[None, :3])[0])
        points = [point for foot in robot.feet for point in foot.points]
        features = n // len(robot.contact_points)
        self._tips = [robot.contact_points[point].name for point in points]
        self._feet = (features * np.array(points)[:, None] + np.arange(features)).ravel()
        self._limits = limits_of(mass)
        # where the fields of a step stand in its data, and in a row of the block
        layout, places, width = start.record.sizes.layout, [], 0
        self._columns: dict[str, tuple[slice, tuple[int, ...]]] = {}
        for name in FIELDS:
            first, _, shape = layout[name]
            if shape[:1] == (start.record.sizes.nc,):  # without contacts between bodies
                shape = (n, *shape[1:])
            elif name in OF_ROWS:
                shape = (3 * n,)
            last = first + math.prod(shape)
            self._columns[name] = slice(width, width + last - first), shape
            places.append(np.arange(first, last))
            width += last - first
        self.places = np.concatenate(places)
        """Where the numbers that count stand in the step data."""
        self._block = np.empty((BLOCK, width)), np.empty((BLOCK, len(Residuals._fields)))
        self._filled = self._steps = 0
        self._parts: dict[str, list[Array]] = {}
        self._energy = np.zeros(len(EnergyBalance._fields))
        self._first: tuple[str, float, str] | None = None
        self._effort, self._changed = np.full((1, robot.n_joints), np.nan), 0  # the last change

    def add(self, report: StepReport) -> bool:
        """Add one step; return whether the trial has ended."""
        (rows, residuals), k = self._block, self._filled
        report.write_step(self.places, rows[k], residuals[k])
        self._filled = k + 1
        if self._filled == BLOCK:
            self._evaluate_block()
        return self.ended

    def end(self, outcome: str, reason: str) -> None:
        """End the trial after the last step that was added, unless it has ended before."""
        self._evaluate_block()
        if not self.ended:
            self.ended, self._outcome, self._reason = True, outcome, reason

    def _evaluate_block(self) -> None:
        count, self._filled = self._filled, 0
        rows, residuals = self._block
        self.evaluate(rows[:count], residuals[:count])

    # ---------------------------------------------------------------- blocks of steps

    def evaluate(self, rows: Array, residuals: Array) -> None:
        """Evaluate steps that follow on those before, up to the one in which the robot fell.

        Args:
            rows: numbers of the step data at `places`, shape (count, places).
            residuals: shape (count, fields of Residuals).
        """
        count = len(rows)
        if not count or self.ended:
            return
        self._rows, self._residuals = rows, residuals
        q, scenario = self._field('q', count), self._scenario
        height = self._terrain.signed_distance(q[:, :3])
        x, y, z, w = q[:, 3:7].T
        base_up = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        tilt = np.arccos(np.clip(scenario.up @ base_up, -1.0, 1.0))
        down = (height < scenario.height_band * self._standing) | (tilt > scenario.tilt_band)
        if down.any():
            count = int(np.argmax(down)) + 1
            self.ended, self._outcome = True, 'fell'
        self._keep('height', height[:count])
        self._keep('tilt', tilt[:count])
        self._keep('place', q[:count, :3].copy())
        self._q, self._v = q[count - 1].copy(), self._field('v', count)[-1].copy()
        self._note_joints(count)
        self._note_contacts(count)
        self._steps += count

    def _field(self, name: str, count: int) -> Array:
        """Return a view of a field in the first `count` steps of the block, (count, ...)."""
        columns, shape = self._columns[name]
        return self._rows[:count, columns].reshape(count, *shape)

    def _keep(self, name: str, values: Any) -> None:
        self._parts.setdefault(name, []).append(values)

    def _series(self, name: str) -> Any:
        return np.concatenate(self._parts[name])

    def _note_joints(self, count: int) -> None:
        robot = self._robot
        applied = self._field('effort', count)
        steps = np.arange(self._steps, self._steps + count)
        same = (applied == np.concatenate([self._effort, applied[:-1]])).all(axis=1)
        changed = np.maximum.accumulate(np.where(same, self._changed, steps))
        self._effort, self._changed = applied[-1:].copy(), int(changed[-1])
        self._keep('age', self._delay + self._h * (steps - changed))
        effort = np.abs(applied)
        speed = np.abs(self._field('v', count)[:, robot.joint_velocity_index])
        torque, velocity = effort / robot.effort_limit, speed / robot.velocity_limit
        if robot.n_joints == 0:  # nothing that could be at its limit
            torque = velocity = np.zeros((count, 1))
        for name, share in (('torque', torque), ('velocity', velocity)):
            self._keep(name, share.max(axis=1, initial=0.0))
            self._keep(f'{name}_joint', share.argmax(axis=1))
        self._keep('saturated', (torque >= 1.0 - 1e-9).mean(axis=1))
        self._keep('power', self._h * (effort * speed).sum(axis=1))

    def _note_contacts(self, count: int) -> None:
        """Note forces, slip and residuals; per contact with the ground, (count, contacts)."""
        load = self._field('normal_force', count)
        force = self._field('contact_force', count)
        normal = self._field('frame_start', count)[:, :, 2]
        gap = self._field('gap', count)
        speed = self._field('slip_speed', count)
        friction = self._field('friction', count)
        along = force - np.sum(force * normal, axis=2, keepdims=True) * normal
        loaded = load > 0.0
        inside = np.sqrt(np.sum(along * along, axis=2)) < WELL_INSIDE * friction * load
        creep = np.where(inside, speed, 0.0)
        apart = np.where(gap > APART, load, 0.0)
        values = self._residuals[:count]
        laws = {law: values[:, Residuals._fields.index(law)].copy() for law in LAWS}
        laws['slip'] = creep.max(axis=1, initial=0.0)
        laws['force_at_distance'] = self._h * apart.sum(axis=1)
        for law in LAWS:
            self._keep(law, laws[law])
        for row in values[:, -len(self._energy) :]:  # one by one: the same sum in any blocks
            self._energy += row
        self._keep('creep_sum', creep.sum(axis=1))
        self._keep('creep_count', inside.sum(axis=1))
        self._keep('slid', self._h * np.where(loaded, speed, 0.0).sum(axis=0)[None])
        self._keep('unsolved', ~CONVERGED[self._field('solver', count)[:, 0].astype(int)])
        on_tips = count, len(self._tips), -1  # steps, contact points of feet, features
        self._keep('foot_loaded', loaded[:, self._feet].reshape(on_tips).any(axis=2))
        self._keep('foot_gap', gap[:, self._feet].reshape(on_tips).min(axis=2))
        rows = np.arange(-self._steps % SUPPORT_EVERY, count, SUPPORT_EVERY)
        margins = np.full(count, np.nan)
        if len(rows):
            margins[rows] = support_margin(
                self._field('position', count)[rows][:, self._feet, :2],
                self._field('energy', count)[rows, 1:3] / self._mass,
                loaded[rows][:, self._feet],
            )
        self._keep('support', margins)
        if self._first is None:
            worst = {'penetration': -gap, 'slip': creep, 'force_at_distance': apart}
            self._note_first_broken(laws, worst, count)

    def _note_first_broken(
        self, laws: Mapping[str, Array], worst: Mapping[str, Array], count: int
    ) -> None:
        """Note which residual is beyond its limit first, when, and at which foot."""
        broken = {law: ~(laws[law] <= self._limits[law]) for law in LAWS}
        steps = [int(np.argmax(out)) for out in broken.values() if out.any()]
        if not steps:
            return
        step = min(steps)
        excess = {law: laws[law][step] / self._limits[law] for law in LAWS if broken[law][step]}
        law, foot = max(excess, key=excess.__getitem__), ''
        if law in worst:
            foot = self._names[int(np.argmax(worst[law][step]))]
        elif law != 'momentum':
            foot = self._names[int(np.argmax(self._work_of_contacts(step, count)))]
        self._first = law, float(self._field('clock', count)[step, 0]), foot

    def _work_of_contacts(self, step: int, count: int) -> Array:
        """Return by how much each contact misses the law, as work [J], shape (contacts,)."""
        n = self._contacts
        impulse, u, bias = (
            self._field(name, count)[step, : 3 * n].reshape(n, 3)
            for name in ('impulse', 'u_next', 'bias')
        )
        mu = self._field('friction', count)[step, :n]
        slip = np.linalg.norm(u[:, :2], axis=1)
        share = np.linalg.norm(impulse[:, :2], axis=1)
        opposed = np.sum(impulse[:, :2] * u[:, :2], axis=1) + mu * impulse[:, 2] * slip
        beyond = np.maximum(share - mu * impulse[:, 2], 0.0)
        normal = np.abs(impulse[:, 2] * (u[:, 2] + bias[:, 2]))
        return np.asarray(normal + np.abs(opposed) + beyond)

    # ---------------------------------------------------------------- the row

    def results(self) -> dict[str, Any]:
        """Return the columns of `RESULTS` but wall, source and versions."""
        if not self._steps:
            return {**RESULTS, **self._verdict()}
        duration = self._steps * self._h
        distance = float(self._series('place')[-1, 0] - self._start[0])
        support = self._series('support')
        counted = self._series('creep_count').sum()
        result: dict[str, Any] = {
            **RESULTS,
            'end_time': duration,
            'margin': self._margin(),
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
        }
        for law in LAWS:
            scale, values = 1.0 if law in PLAIN else self._mass, self._series(law)
            result[f'{law}_max'] = float(values.max() / scale)
            median, high = np.percentile(values, [50.0, 99.0]) / scale
            result[f'{law}_p50'], result[f'{law}_p99'] = float(median), float(high)
            result[f'{law}_broken'] = bool(not values.max() <= self._limits[law])
        if self._first is not None:
            result['first_broken'], result['first_broken_time'], result['first_broken_foot'] = (
                self._first
            )
        return {**result, **self._verdict()}

    def _verdict(self) -> dict[str, Any]:
        """Return outcome, success, reason and cause."""
        outcome, reason, cause = self._outcome, self._reason, ''
        if outcome == 'ok':
            missed = self._missed()
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
                words = f'{words} at t = {(step + 1) * self._h:.3f} s'
                fell = f'fell at t = {self._steps * self._h:.3f} s'
                reason = f'{words}; ' + (fell if outcome == 'fell' else reason)
        return {'outcome': outcome, 'reason': reason, 'cause': cause}

    def _end(self) -> tuple[float, float, float]:
        """Return mean speed in the second half [m/s], drift [m] and speed at the end [m/s]."""
        h, place = self._h, self._series('place')
        half = len(place) // 2
        speed = float(place[-1, 0] - place[half, 0]) / max((len(place) - 1 - half) * h, h)
        drift = float(np.linalg.norm(place[-1, :2] - self._start[:2]))
        return speed, drift, float(np.linalg.norm(self._v[:3]))

    def _margin(self) -> float:
        """Return how far the trial was from failing [-], negative where it failed.

        It is the smallest share that was left of a band that ends a trial or of a goal, and of a
        trial that ended early minus the share of time that was left.
        """
        s, (speed, drift, end) = self._scenario, self._end()
        if self._outcome != 'ok':
            return min(self._steps * self._h / s.seconds - 1.0, -1e-6)
        height = self._series('height').min() / (s.height_band * self._standing) - 1.0
        left = [height, 1.0 - self._series('tilt').max() / s.tilt_band]
        if s.least_speed > 0.0:
            left.append(speed / s.least_speed - 1.0)
        goals = (drift, s.largest_drift), (end, s.largest_end_speed)
        left += [1.0 - value / limit for value, limit in goals if 0.0 < limit < np.inf]
        return float(min(left))

    def _missed(self) -> str:
        """Return in which way the goal of the scenario was missed, '' if it was met."""
        scenario, (speed, drift, end) = self._scenario, self._end()
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
            self._scenario,
            self._robot,
            self._h,
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
        age = self._series('age')
        note('command_age', age > s.age_band, 1, lambda k: (
            f'commands {age[k]:.3g} s old, band up to {s.age_band:g} s,'
        ))  # fmt: skip
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
        least = max(round(SWING / self._h), 1)
        found = []
        for column, name in enumerate(self._tips):
            first, last = runs_of(~loaded[:, column])
            for begin, end in zip(first.tolist(), last.tolist(), strict=True):
                if begin > 0 and end < len(loaded) and end - begin >= least:
                    top = float(gap[begin:end, column].max())
                    found.append((end - 1, top, name))
        return found


class Stepped(Protocol):
    """What steps trials together."""

    def write_steps(self, places: Indices, numbers: Array, residuals: Array) -> None:
        """As `Worlds.write_steps`."""


class Logs:
    """The logs of trials that run as worlds, one each: their steps are evaluated in blocks.

    Args:
        logs: of the trials, in the order of the worlds.
    """

    def __init__(self, logs: Sequence[Log]) -> None:
        self._logs, n = logs, len(logs)
        self._rows = np.empty((BLOCK, n, len(logs[0].places)))
        self._residuals = np.empty((BLOCK, n, len(Residuals._fields)))
        self._filled = 0

    def add(self, worlds: Stepped) -> bool:
        """Add one step of every world; return whether trials may have ended."""
        k = self._filled
        worlds.write_steps(self._logs[0].places, self._rows[k], self._residuals[k])
        self._filled = k + 1
        if self._filled < BLOCK:
            return False
        self._evaluate()
        return True

    def end(self) -> None:
        """End those that have not ended before."""
        self._evaluate()
        for log in self._logs:
            log.end('ok', '')

    def _evaluate(self) -> None:
        count, self._filled = self._filled, 0
        for k, log in enumerate(self._logs):
            log.evaluate(self._rows[:count, k].copy(), self._residuals[:count, k].copy())


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
