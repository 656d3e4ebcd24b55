"""Fit parameters of a simulation to a log: nonlinear least squares with intervals.

A log is cut into segments. Each is simulated from an initial state of its own and compared with
every sample of it, configuration and velocity, in units of the noise:

    min over θ and all x_s of  Σ_s |r_s(θ, x_s)|²

The initial states x_s are as noisy as every other sample, so they are estimated too. They are
eliminated segment by segment (variable projection): the solver sees θ only. Intervals come from
the projected Jacobian P_s ∂r_s/∂θ, P_s = 1 − B B⁺, B = ∂r_s/∂x_s.

[Golub 1973] The differentiation of pseudo-inverses and nonlinear least squares problems
whose variables separate. [Bock 1983] multiple shooting for parameter estimation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy import optimize, stats
from scipy.stats import qmc

from contact_sim._types import Array
from contact_sim._validation import (
    as_tuple,
    check_unique,
    checked,
    count,
    positive,
)
from contact_sim.errors import InvalidInput, of_type, one_line
from contact_sim.identify._parameters import Parameter, Setup, changed, parameter_of
from contact_sim.judge import Steps
from contact_sim.simulation._worlds import Worlds

CONFIDENCE = 0.95
"""Of the intervals."""
UNDETERMINED = 0.5
"""Standard error, over the change that matters, from which on a combination is not determined."""
CORRELATED = 0.98
"""Correlation of two errors from which on it is mentioned."""
FIRST_NOISE = 1e-3, 1e-2
"""Noise of configurations [m, rad] and velocities [m/s, rad/s] of the first fit."""
LEAST_NOISE = 1e-6
"""Finite differences of initial states stay above rounding."""
STATE_STEP, PARAMETER_STEP = 0.1, 1e-3
"""Differences of initial states, over the noise, and of parameters, in numbers of the fit."""
MANY = 20
"""Coordinates of a state from which on derivatives of steps cost less than differences."""
STATE_ITERATIONS = 5
NOISE_ROUNDS = 2
OFF_BOUNDS = 0.3
"""Least distance of a start from the bounds, in numbers of the fit."""
SPREAD = 1.5
"""Half width of the region of further starts, in numbers of the fit."""
FAR = 1e3
"""Residual of a simulation that stopped."""
MISFIT = 1.5
"""Residuals over a known noise from which on the fit is not trusted."""
FEW = 256
"""Simulations that one thread does in less time than several."""
UNIFORM = 0.05
"""Largest relative difference of the times between samples."""


@dataclass(frozen=True)
class Estimate:
    """One identified number, with its interval of 95 %."""

    name: str
    unit: str
    value: float
    low: float
    high: float
    start: float
    at_bound: bool
    """Whether the fit ended at a bound: then the interval is none."""
    determined: bool
    """Whether the log determines it."""


@dataclass(frozen=True, eq=False)
class Identification:
    """Result of a fit."""

    estimates: tuple[Estimate, ...]
    covariance: Array
    """Of the numbers of the fit, in the order of the estimates."""
    remarks: tuple[str, ...]
    """What the log does not tell apart, and other things to know, as sentences."""
    training_error: float
    """Root mean square residual of the training segments over the noise; 1: all is explained."""
    held_out_error: float
    """The same of held-out segments, whose initial states alone are fitted; NaN: none."""
    start_error: float
    """The same of the held-out (or else training) segments with the parameters of the start."""
    noise: tuple[Array, Array]
    """Standard deviations of configurations and velocities, shapes (nv,)."""
    setup: Setup
    """With the identified values."""

    def __getitem__(self, name: str) -> Estimate:
        """Return the estimate of this name."""
        return {one.name: one for one in self.estimates}[name]

    def table(self) -> str:
        """Return the estimates, errors and remarks as text."""
        lines = [f'{"parameter":24} {"start":>11} {"value":>11}   95 % interval']
        for one in self.estimates:
            interval = f'{one.low:.4g} to {one.high:.4g}' if one.determined else 'not determined'
            note = ', at its bound' if one.at_bound else ''
            lines.append(
                f'{one.name:24} {one.start:11.4g} {one.value:11.4g}   {interval} {one.unit}{note}'
            )
        kept = self.held_out_error
        lines.append(
            f'residuals over noise: training {self.training_error:.3g}, held out '
            f'{"none" if np.isnan(kept) else f"{kept:.3g}"}, with the start {self.start_error:.3g}'
        )
        return '\n'.join([*lines, *(f'- {remark}' for remark in self.remarks)])

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the setup as plain values, for JSON."""
        return {
            'estimates': [vars(one) for one in self.estimates],
            'covariance': self.covariance.tolist(), 'remarks': list(self.remarks),
            'training_error': self.training_error, 'held_out_error': self.held_out_error,
            'start_error': self.start_error, 'noise': [one.tolist() for one in self.noise],
        }  # fmt: skip

    __repr__ = one_line


@checked
def identify(
    setup: Setup,
    log: Steps,
    fit: Sequence[str],
    segment: float = 0.1,
    segments: int = 12,
    held_out: float = 0.25,
    noise: tuple[float, float] | None = None,
    starts: int = 4,
    time_step: float = 2e-3,
    threads: int | None = None,
    seed: int = 1,
) -> Identification:
    """Identify parameters from a log of states and joint efforts.

    Args:
        setup: robot, contact model and the values to start from.
        log: states at equal times, and the effort of every step between them.
        fit: names of parameters: friction, restitution, delay; armature, joint_friction,
            viscous_friction, torque_constant, of all joints or `armature:*_knee`; mass, com_x,
            ..., ixx, ... of the root or `mass:link`; parameters of the contact model.
        segment: length of a segment [s]; at least three samples.
        segments: most segments, spread over the log.
        held_out: share of them that is kept for a check.
        noise: standard deviations of configurations [m, rad] and velocities [m/s, rad/s]; None:
            estimated, one each for position and attitude of the base and for the joints.
        starts: number of starts: the setup, and others around it.
        time_step: largest step of the simulation [s].
        threads: of the simulation; None: all cores.
        seed: of the starts.

    Raises:
        UnknownName: a parameter, joint or body that does not exist.
        InvalidInput: a log that is too short, has no efforts, unequal times or pushes, is of
            another robot; values that are not allowed.
    """
    of_type('setup', setup, Setup)
    names = as_tuple('fit', fit)
    check_unique('parameter', names)
    if not names:
        raise InvalidInput('fit: expected at least one parameter')
    for name, value in (('segment', segment), ('time_step', time_step)):
        positive(name, value, 's')
    for name, number in (('segments', segments), ('starts', starts)):
        count(name, number)
    if not 0.0 <= held_out < 1.0:
        raise InvalidInput(f'held_out = {held_out}: expected a share in [0, 1)')
    parameters = [parameter_of(str(name), setup) for name in names]
    data = _Data.of(setup, of_type('log', log, Steps), segment, segments, time_step)
    training, kept = data.split(held_out)
    given = None if noise is None else tuple(positive('noise', value, '') for value in noise)
    sizes = data.noise(*(given or FIRST_NOISE))
    problem = _Problem(setup, parameters, training, sizes, threads)
    z, agreeing = _best_of_starts(problem, starts, seed)
    for _ in range(0 if given else NOISE_ROUNDS):
        sizes = problem.noise_at(z)
        problem = _Problem(setup, parameters, training, sizes, threads)
        z = problem.solve(z, 15)
    return _result(problem, z, kept, agreeing, starts, given is not None)


# ------------------------------------------------------------------------------------------- data


@dataclass(frozen=True, eq=False)
class _Data:
    """Segments of a log: S of them, with m samples each, none of which is in two segments."""

    q: Array  # (S, m, nq)
    v: Array  # (S, m, nv)
    first: NDArray[np.int64]  # sample of the log with which each segment begins
    effort: Array  # of all steps of the log, (n, n_joints)
    spacing: float  # between samples [s]
    substeps: int
    floating: bool

    @classmethod
    def of(
        cls, setup: Setup, log: Steps, segment: float, segments: int, time_step: float
    ) -> _Data:
        robot = setup.robot
        if log.q.shape[1] != robot.nq or log.v.shape[1] != robot.nv:
            raise InvalidInput(
                f'log: q and v of {log.q.shape[1]} and {log.v.shape[1]} numbers, robot '
                f'{robot.name!r} has {robot.nq} and {robot.nv}'
            )
        if log.effort is None and robot.n_joints:
            raise InvalidInput('log: it has no efforts of the joints')
        if log.external is not None and np.any(log.external):
            raise InvalidInput('log: other forces acted (external); cut them out')
        lengths = np.diff(log.time)
        spacing = float(np.median(lengths))
        if np.abs(lengths - spacing).max() > UNIFORM * spacing:
            k = int(np.argmax(np.abs(lengths - spacing)))
            raise InvalidInput(
                f'log: {lengths[k]:.6g} s from sample {k} to the next, the median is '
                f'{spacing:.6g} s: expected equal times'
            )
        m = max(3, round(segment / spacing))
        in_all = log.count + 1
        if in_all < m:
            raise InvalidInput(
                f'log: {in_all} samples, one every {spacing:.4g} s; a segment of {segment:g} s '
                f'has {m}'
            )
        # no sample is in two segments: its noise would count twice
        first = np.linspace(0, in_all - m, min(segments, in_all // m)).astype(int)
        rows = first[:, None] + np.arange(m)
        effort = np.zeros((log.count, 0)) if log.effort is None else log.effort
        floating = bool(robot.floating_base)
        steps = max(1, int(np.ceil(spacing / time_step - 1e-9)))
        return cls(log.q[rows], log.v[rows], first, effort, spacing, steps, floating)

    def some(self, which: NDArray[np.int64]) -> _Data:
        return replace(self, q=self.q[which], v=self.v[which], first=self.first[which])

    def split(self, held_out: float) -> tuple[_Data, _Data | None]:
        """Return training and held-out segments, both spread over the log."""
        n = len(self.first)
        kept = min(round(held_out * n), n - 1)
        if kept == 0:
            return self, None
        chosen = np.unique((np.arange(kept) + 0.5) * n / kept).astype(int)
        others = np.setdiff1d(np.arange(n), chosen)
        return self.some(others), self.some(chosen)

    def groups(self) -> list[slice]:
        """Return the dofs that have the same noise."""
        nv = self.v.shape[2]
        parts = [slice(0, 3), slice(3, 6), slice(6, nv)] if self.floating else [slice(0, nv)]
        return [part for part in parts if part.start < nv]

    def noise(self, configuration: float, velocity: float) -> tuple[Array, Array]:
        nv = self.v.shape[2]
        return np.full(nv, configuration), np.full(nv, velocity)


# ---------------------------------------------------------------------------------------- problem


class _Problem:
    """Residuals of the training segments as a function of the numbers of the fit."""

    def __init__(
        self,
        setup: Setup,
        parameters: Sequence[Parameter],
        data: _Data,
        noise: tuple[Array, Array],
        threads: int | None,
    ) -> None:
        self.setup, self.parameters, self.data = setup, tuple(parameters), data
        self.noise, self.threads = noise, threads
        self.model = setup.robot.pinocchio_model
        self.bounds = (
            np.array([one.internal(one.low) for one in parameters]),
            np.array([one.internal(one.high) for one in parameters]),
        )
        start = np.array([
            one.internal(min(max(one.start, one.low), one.high)) for one in parameters
        ])  # fmt: skip
        # the solver makes small steps near a bound
        gap = np.minimum(OFF_BOUNDS, 0.25 * (self.bounds[1] - self.bounds[0]))
        self.start = start.clip(self.bounds[0] + gap, self.bounds[1] - gap)
        self._offsets = np.zeros((len(data.first), 2 * data.v.shape[2]))
        self._last: tuple[bytes, Array, list[Array]] | None = None
        self._made: tuple[Setup, Worlds] | None = None
        self._has_derivatives = 2 * data.v.shape[2] >= MANY

    @property
    def freedom(self) -> int:
        """Residuals less all that is fitted."""
        s, m, nv = self.data.v.shape
        return int(s * m * 2 * nv - s * 2 * nv - len(self.parameters))

    def setup_at(self, z: Array) -> Setup:
        values = [one.value(number) for one, number in zip(self.parameters, z, strict=True)]
        return changed(self.setup, self.parameters, values)

    def simulated(
        self,
        setup: Setup,
        offsets: Array,
        segments: NDArray[np.int64],
        slopes: Array | None = None,
    ) -> Array:
        """Return residuals (N, m 2 nv) of N simulations, from offset initial states.

        `slopes` (N, m, 2, nv, 2 nv), if given, is filled with their derivatives with respect
        to the offsets: products of the derivatives of the steps.
        """
        data, model = self.data, self.model
        n, samples, nv = len(segments), data.q.shape[1], data.v.shape[2]
        size_q, size_v = self.noise
        q = np.array([
            pin.integrate(model, data.q[s, 0], offset[:nv] * size_q)
            for s, offset in zip(segments, offsets, strict=True)
        ])  # fmt: skip
        v = data.v[segments, 0] + offsets[:, nv:] * size_v
        worlds = self._worlds_of(setup, n)
        worlds.reset(q, v)
        scale, residuals = setup.effort_scale(), np.empty((n, samples, 2, nv))
        moved = None if slopes is None else self._moved_starts(offsets, segments)
        for k in range(samples):
            if k:
                steps = data.first[segments] + k - 1
                effort = scale * delayed(data.effort, steps, setup.delay / data.spacing)
                if moved is None:
                    worlds.step(effort, data.substeps)
                else:
                    for _ in range(data.substeps):
                        moved = np.asarray(worlds.derivatives(effort).state @ moved)
                        worlds.step(effort)
            now, speed = worlds.q, worlds.v
            if model.nq == model.nv:
                residuals[:, k, 0] = (now - data.q[segments, k]) / size_q
            else:
                for i, s in enumerate(segments):
                    residuals[i, k, 0] = pin.difference(model, data.q[s, k], now[i]) / size_q
            residuals[:, k, 1] = (speed - data.v[segments, k]) / size_v
            if slopes is not None and moved is not None:
                for i, s in enumerate(segments):
                    turned = pin.dDifference(model, data.q[s, k], now[i], pin.ARG1)
                    slopes[i, k, 0] = turned @ moved[i, :nv] / size_q[:, np.newaxis]
                slopes[:, k, 1] = moved[:, nv:] / size_v[:, np.newaxis]
        residuals[~worlds.running] = FAR
        if slopes is not None:
            slopes[~worlds.running] = 0.0
        return np.nan_to_num(residuals, nan=FAR).clip(-1e6, 1e6).reshape(n, -1)

    def _moved_starts(self, offsets: Array, segments: NDArray[np.int64]) -> Array:
        """Return how (q, v) at the start move with the offsets, shape (N, 2 nv, 2 nv)."""
        data, nv = self.data, self.data.v.shape[2]
        size_q, size_v = self.noise
        moved = np.zeros((len(segments), 2 * nv, 2 * nv))
        moved[:, nv:, nv:] = np.diag(size_v)
        for i, (s, offset) in enumerate(zip(segments, offsets, strict=True)):
            way = offset[:nv] * size_q
            turned = pin.dIntegrate(self.model, data.q[s, 0], way, pin.ARG1)
            moved[i, :nv, :nv] = turned * size_q
        return moved

    def _linearised(self, setup: Setup, offsets: Array) -> tuple[Array, Array]:
        """Return residuals (S, rows) and their derivatives (S, rows, 2 nv) with the offsets.

        They come from the derivatives of steps; by differences where a simulation has none.
        """
        s, nx = offsets.shape
        everywhere = np.arange(s)
        if self._has_derivatives:
            slopes = np.zeros((s, self.data.q.shape[1], 2, nx // 2, nx))
            try:
                rows = self.simulated(setup, offsets, everywhere, slopes)
            except InvalidInput:  # a law, joint or step that they do not know
                self._has_derivatives = False
            else:
                return rows, slopes.reshape(s, -1, nx)
        several = np.concatenate([offsets, *(offsets + STATE_STEP * row for row in np.eye(nx))])
        found = self.simulated(setup, several, np.tile(everywhere, nx + 1)).reshape(nx + 1, s, -1)
        return found[0], np.moveaxis(found[1:] - found[0], 0, -1) / STATE_STEP

    def _worlds_of(self, setup: Setup, n: int) -> Worlds:
        """Return n worlds; the last ones are used again while setup and number are the same."""
        if self._made is None or self._made[0] is not setup or self._made[1].n != n:
            data = self.data
            worlds = Worlds(
                setup.robot, n, setup.law, setup.terrain, friction=setup.friction,
                restitution=setup.restitution, time_step=data.spacing / data.substeps,
                threads=self.threads or (1 if n < FEW else None),
            )  # fmt: skip
            self._made = setup, worlds
        return self._made[1]

    def states(self, setup: Setup) -> tuple[Array, list[Array]]:
        """Fit the initial states; return residuals (S, rows) and bases of what they explain."""
        s, nx = self._offsets.shape
        best, step = self._offsets.copy(), np.zeros((s, nx))
        cost, kept = np.full(s, np.inf), np.zeros((s, 0))
        matrices: list[Array] = [np.zeros((0, 0))] * s
        everywhere = np.arange(s)
        for _ in range(STATE_ITERATIONS):
            trial = best + step
            rows, slopes = self._linearised(setup, trial)
            if not kept.size:
                kept = rows.copy()
            now = np.sum(rows**2, axis=1)
            gain = np.where(np.isfinite(cost), cost - now, np.inf)
            for i in everywhere:
                if now[i] < cost[i]:
                    best[i], cost[i], kept[i] = trial[i], now[i], rows[i]
                    matrices[i] = slopes[i]
                    step[i] = -np.linalg.lstsq(matrices[i], kept[i], rcond=None)[0]
                else:
                    step[i] *= 0.25
            if (np.abs(gain) < 1e-4 * (1.0 + cost)).all():
                break
        self._offsets = best
        return kept, [np.linalg.qr(one)[0] for one in matrices]

    def residuals(self, z: Array) -> Array:
        """Return the residuals that no initial states explain."""
        key = z.tobytes()
        if self._last is None or self._last[0] != key:
            rows, bases = self.states(self.setup_at(z))
            self._last = key, rows, bases
        _, rows, bases = self._last
        return np.concatenate([row - q @ (q.T @ row) for row, q in zip(rows, bases, strict=True)])

    def jacobian(self, z: Array) -> Array:
        """Return the projected Jacobian (rows, parameters), from central differences."""
        self.residuals(z)
        assert self._last is not None
        bases, everywhere = self._last[2], np.arange(len(self.data.first))
        columns = []
        for i in range(len(z)):
            sides = []
            for sign in (1.0, -1.0):
                other = z.copy()
                other[i] = np.clip(other[i] + sign * PARAMETER_STEP, *(b[i] for b in self.bounds))
                setup = self.setup_at(other)
                sides.append((other[i], self.simulated(setup, self._offsets, everywhere)))
            (above, one), (below, two) = sides
            rows = (one - two) / (above - below)
            parts = [row - q @ (q.T @ row) for row, q in zip(rows, bases, strict=True)]
            columns.append(np.concatenate(parts))
        return np.array(columns).T

    def solve(self, z: Array, evaluations: int) -> Array:
        """Return the numbers of the fit at a minimum near z."""
        gap = 1e-9 * (self.bounds[1] - self.bounds[0])
        result = optimize.least_squares(
            self.residuals, z.clip(self.bounds[0] + gap, self.bounds[1] - gap),
            jac=self.jacobian, bounds=self.bounds, max_nfev=evaluations, xtol=1e-7, ftol=1e-8,
        )  # fmt: skip
        return np.asarray(result.x)

    def noise_at(self, z: Array) -> tuple[Array, Array]:
        """Return the noise that the residuals show, one number per group of dofs."""
        rows = self.residuals(z)
        s, samples, nv = self.data.v.shape
        parts = rows.reshape(s, samples, 2, nv)
        share = np.sqrt(parts.size / max(self.freedom, 1))
        sizes = [one.copy() for one in self.noise]
        for group in self.data.groups():
            for kind in range(2):
                rms = np.sqrt(np.mean(parts[:, :, kind, group] ** 2)) * share
                sizes[kind][group] = np.maximum(rms * sizes[kind][group], LEAST_NOISE)
        return sizes[0], sizes[1]


def delayed(effort: Array, steps: NDArray[np.int64], delay: float) -> Array:
    """Return the mean efforts in steps if each acts `delay` steps late, the first from ever."""
    whole = int(np.floor(delay))
    part = delay - whole
    newer, older = (effort[np.maximum(steps - whole - k, 0)] for k in range(2))
    return np.asarray((1.0 - part) * newer + part * older)


# ----------------------------------------------------------------------------------------- result


def _best_of_starts(problem: _Problem, starts: int, seed: int) -> tuple[Array, int]:
    """Return the best minimum, and how many starts led to it."""
    gap = np.minimum(OFF_BOUNDS, 0.25 * (problem.bounds[1] - problem.bounds[0]))
    low, high = problem.bounds[0] + gap, problem.bounds[1] - gap
    points = [problem.start]
    if starts > 1:
        draws = qmc.LatinHypercube(len(low), seed=np.random.default_rng(seed)).random(starts - 1)
        points += list((problem.start + SPREAD * (2.0 * draws - 1.0)).clip(low, high))
    ends = []
    for point in points:
        problem._offsets[:] = 0.0
        z = problem.solve(point, 12)
        ends.append((float(np.sum(problem.residuals(z) ** 2)), z, problem._offsets.copy()))
    ends.sort(key=lambda end: end[0])
    problem._offsets = ends[0][2]
    problem._last = None
    agreeing = sum(cost <= 1.01 * ends[0][0] + 1e-12 for cost, _, _ in ends)
    return problem.solve(ends[0][1], 25), agreeing


def _result(
    problem: _Problem, z: Array, kept: _Data | None, agreeing: int, starts: int, known: bool
) -> Identification:
    jacobian, freedom = problem.jacobian(z), max(problem.freedom, 1)
    size = float(np.sqrt(np.sum(problem.residuals(z) ** 2) / freedom))
    unit = max(1.0, size) if known else size  # what is not explained widens the intervals
    _, values, directions = np.linalg.svd(jacobian, full_matrices=False)
    tiny = 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    errors = unit / np.maximum(values, tiny)  # of the combinations that the rows are
    covariance = np.asarray((directions.T * errors**2) @ directions)
    half = stats.t.ppf(0.5 + 0.5 * CONFIDENCE, freedom) * np.sqrt(np.diag(covariance))
    low, high = problem.bounds
    near = 1e-6 * (high - low)
    estimates = []
    for i, one in enumerate(problem.parameters):
        bounded = bool(z[i] < low[i] + near[i] or z[i] > high[i] - near[i])
        lowest, highest = (
            one.value(float(np.clip(z[i] + side * half[i], low[i], high[i]))) for side in (-1, 1)
        )
        determined = bool(half[i] / 2.0 < UNDETERMINED) and not bounded
        estimates.append(Estimate(
            one.name, one.unit, one.value(float(z[i])), lowest, highest, one.start, bounded,
            determined,
        ))  # fmt: skip
    remarks = _remarks(problem.parameters, errors, directions, covariance, estimates)
    if starts > 1:
        remarks.append(f'{agreeing} of {starts} starts lead to the best minimum')
    if known and size > MISFIT:
        remarks.append(
            f'residuals are {size:.3g} times the noise: the fit ended in a local minimum (more '
            'starts help), or the model does not explain the log; do not trust the intervals'
        )
    check = kept or problem.data
    first, last = (
        _error(replace_data(problem, check), setup)
        for setup in (problem.setup, problem.setup_at(z))
    )
    if kept is not None and last > 1.5 * size:
        remarks.append(
            f'held-out segments are explained less well ({last:.3g}) than training ones '
            f'({size:.3g}): the fit repeats the training segments'
        )
    return Identification(
        tuple(estimates), covariance, tuple(remarks), size, last if kept else np.nan, first,
        problem.noise, problem.setup_at(z),
    )  # fmt: skip


def replace_data(problem: _Problem, data: _Data) -> _Problem:
    """Return the problem with other segments."""
    return _Problem(problem.setup, problem.parameters, data, problem.noise, problem.threads)


def _error(problem: _Problem, setup: Setup) -> float:
    rows, bases = problem.states(setup)
    rest = [row - q @ (q.T @ row) for row, q in zip(rows, bases, strict=True)]
    freedom = max(problem.freedom + len(problem.parameters), 1)
    return float(np.sqrt(sum(float(row @ row) for row in rest) / freedom))


def _remarks(
    parameters: Sequence[Parameter],
    errors: Array,
    directions: Array,
    covariance: Array,
    estimates: Sequence[Estimate],
) -> list[str]:
    """Say which combinations the log does not determine, and which errors go together."""
    remarks = []
    for error, direction in zip(errors, directions, strict=True):
        if error <= UNDETERMINED:
            continue
        parts = [
            (share, one) for share, one in zip(direction, parameters, strict=True)
            if abs(share) > 0.1
        ]  # fmt: skip
        parts.sort(key=lambda part: -abs(part[0]))
        sign = np.sign(parts[0][0])
        words = [
            f'{sign * share:+.2f} {f"ln {one.name}" if one.log else one.name}'
            + ('' if one.log or one.scale == 1.0 else f'/({one.scale:.3g} {one.unit})')
            for share, one in parts
        ]
        if len(parts) == 1:
            remarks.append(f'the log does not determine {parts[0][1].name}')
        else:
            names = ', '.join(one.name for _, one in parts)
            remarks.append(
                f'the log does not tell apart {names}: it does not determine '
                f'{" ".join(words).lstrip("+")}'
            )
    deviation = np.sqrt(np.diag(covariance))
    for i in range(len(parameters)):
        if estimates[i].at_bound:
            remarks.append(f'{parameters[i].name} ended at its bound {estimates[i].value:.4g}')
        for j in range(i):
            if not (estimates[i].determined and estimates[j].determined):
                continue
            together = covariance[i, j] / (deviation[i] * deviation[j])
            if abs(together) > CORRELATED:
                way = 'same' if together > 0 else 'opposite'
                remarks.append(
                    f'errors of {parameters[j].name} and {parameters[i].name} go together, in the '
                    f'{way} direction (correlation {together:.3f})'
                )
    return remarks
