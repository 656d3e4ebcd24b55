"""Simulate measured motions from their measured start, and measure how far the simulation is off.

An experiment has trials and measures: `errors` simulates trials under candidates, all of them side
by side in `Worlds`, and returns one number per candidate, trial and measure.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array, IndexArray
from contact_sim._validation import as_tuple, checked, count, indices, positive
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.errors import InvalidInput, of_type
from contact_sim.reality._data_sets import (
    CUBE_HALF_WIDTH,
    CUBE_MASS,
    CUBE_MOMENT,
    ELLIPSE_GYRATION,
    ELLIPSE_MASS,
    ELLIPSE_SEMI_AXES,
    TOSS_RATE,
    PlanarImpacts,
    Toss,
)
from contact_sim.reality._laws import Candidate
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import loose_box, loose_ellipsoid
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._worlds import Worlds

GRAVITY = 9.81
MOST_WORLDS = 2048
"""Worlds that are stepped together."""


@dataclass(frozen=True)
class Measure:
    """What an error is in."""

    name: str
    unit: str
    meaning: str


class Experiment(Protocol):
    """Measured trials that can be simulated."""

    name: str
    title: str
    robot: RobotModel
    time_step: float
    """[s]."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What is measured; fits minimise the mean of the first."""

    def __len__(self) -> int:
        """Return the number of trials."""

    def errors(self, candidates: Sequence[Candidate], trials: Sequence[int]) -> Array:
        """Return errors, shape (candidates, trials, measures)."""


def chosen(trials: Sequence[int] | IndexArray, n: int) -> NDArray[np.int64]:
    """Return checked numbers of trials.

    Raises:
        InvalidInput: none, or numbers that do not exist.
    """
    numbers = indices('trials', np.atleast_1d(np.asarray(trials)), n).astype(np.int64)
    if not numbers.size:
        raise InvalidInput('trials: expected at least one')
    return numbers


def side_by_side(
    robot: RobotModel,
    candidates: Sequence[Candidate],
    starts: int,
    time_step: float,
    threads: int | None,
) -> Worlds:
    """Return worlds of every candidate and start: those of the first candidate come first."""
    model = [one.model for one in candidates for _ in range(starts)]
    friction, restitution = (
        np.repeat([getattr(one, name) for one in candidates], starts)[:, None]
        for name in ('friction', 'restitution')
    )
    return Worlds(
        robot, len(model), model, friction=friction, restitution=restitution, threads=threads,
        time_step=time_step,
    )  # fmt: skip


# ------------------------------------------------------------------------------------ cube tosses

FLIGHT = 16
"""Most samples in the air from which the velocity of a release is fitted."""
CLEAR = 4e-3
"""Height of the lowest corner above which the cube counts as being in the air [m]."""
GROUPS = 4
"""Tosses of like length are simulated together."""
CORNERS = np.array(list(product((-CUBE_HALF_WIDTH, CUBE_HALF_WIDTH), repeat=3)))


def cube() -> RobotModel:
    """Return the cube of the tosses, with its published mass and inertia."""
    box = loose_box((2.0 * CUBE_HALF_WIDTH,) * 3, CUBE_MASS, 'cube')
    model = box.pinocchio_model.copy()
    model.inertias[1] = pin.Inertia(CUBE_MASS, np.zeros(3), CUBE_MOMENT * np.eye(3))
    return replace(box, pinocchio_model=model)


class TossExperiment:
    """Tosses of a cube, from the release until it rests.

    The published velocities are filtered differences to the sample before, about half a sample
    old: against free flight they are 0.026 m/s too high on average. `start='flight'` fits free
    flight to the samples before the first contact instead; `start='published'` takes theirs.

    Args:
        tosses: what was measured.
        steps: time steps per sample (6.76 ms).
        start: where the first velocity comes from, 'flight' or 'published'.
        threads: of `Worlds`, and processes for laws without compiled steps; None: all cores.

    Raises:
        InvalidInput: no tosses, another start, a toss that touches the ground at once.
    """

    name = 'cube_tosses'
    title = 'Tosses of a cube'
    measures = (
        Measure('corners', '%', 'mean distance of the eight corners, in % of the edge'),
        Measure('position', '%', 'mean distance of the centre, in % of the edge'),
        Measure('rotation', 'deg', 'mean angle between the attitudes'),
        Measure('rest', '%', 'distance of the centre at the end, in % of the edge'),
        Measure('face', '%', 'tosses that come to rest on another face'),
    )

    @checked
    def __init__(
        self,
        tosses: Sequence[Toss],
        steps: int = 4,
        start: str = 'flight',
        threads: int | None = None,
    ) -> None:
        self.tosses = tuple(of_type('toss', toss, Toss) for toss in as_tuple('tosses', tosses))
        if not self.tosses:
            raise InvalidInput('tosses: expected at least one')
        if start not in ('flight', 'published'):
            raise InvalidInput(f'start = {start!r}: expected flight or published')
        self.steps, self.threads = count('steps', steps), threads
        self.time_step = 1.0 / (TOSS_RATE * self.steps)
        self.robot = cube()
        first = [released if start == 'flight' else _published for _ in self.tosses]
        states = [state(toss) for state, toss in zip(first, self.tosses, strict=True)]
        self.q, self.v = (np.array(part) for part in zip(*states, strict=True))
        self._earlier = self._half_a_step_earlier() if start == 'flight' else self.v

    def __len__(self) -> int:
        return len(self.tosses)

    def errors(self, candidates: Sequence[Candidate], trials: Sequence[int]) -> Array:
        """Return errors, shape (candidates, trials, measures).

        Raises:
            InvalidInput: no candidates, trials that do not exist.
        """
        numbers = chosen(trials, len(self))
        result = np.full((len(candidates), len(numbers), len(self.measures)), np.nan)
        lengths = np.array([len(self.tosses[i].time) for i in numbers])
        for group in np.array_split(np.argsort(lengths, kind='stable'), GROUPS):
            most = max(1, MOST_WORLDS // max(1, len(group)))
            for first in range(0, len(candidates) if len(group) else 0, most):
                some = candidates[first : first + most]
                motions = self.motions(some, numbers[group])
                for c, motion in enumerate(motions):
                    for place, q in zip(group, motion, strict=True):
                        measured = self.tosses[numbers[place]].q
                        result[first + c, place] = toss_errors(q, measured)
        return result

    def motions(
        self, candidates: Sequence[Candidate], trials: Sequence[int] | IndexArray
    ) -> list[list[Array]]:
        """Return configurations at the samples, by candidate and trial, shape (T, 7) each."""
        numbers = chosen(trials, len(self))
        if not all(isinstance(one.model, TimeSteppingModel) for one in candidates):
            return [self._one_by_one(one, numbers) for one in candidates]
        samples = [len(self.tosses[i].time) for i in numbers]
        worlds = side_by_side(self.robot, candidates, len(numbers), self.time_step, self.threads)
        copies = len(candidates), 1
        worlds.reset(np.tile(self.q[numbers], copies), np.tile(self._earlier[numbers], copies))
        states = [worlds.q]
        for _ in range(max(samples) - 1):
            worlds.step(np.zeros(0), self.steps)
            states.append(worlds.q)
        along = np.array(states).reshape(len(states), len(candidates), len(numbers), 7)
        return [[along[:n, c, k] for k, n in enumerate(samples)] for c in range(len(candidates))]

    def _half_a_step_earlier(self) -> Array:
        """Return velocities with which semi-implicit Euler falls as free flight does."""
        up = rotations(self.q[:, 3:])[:, 2]  # in the axes of the body
        linear = self.v[:, :3] + 0.5 * GRAVITY * self.time_step * up
        return np.hstack([linear, self.v[:, 3:]])

    def from_starts(self, q: Array, v: Array) -> TossExperiment:
        """Return the same tosses from other starts, q (n, 7) and v (n, 6)."""
        other = copy.copy(self)
        other.q, other.v = q, v
        other._earlier = other._half_a_step_earlier()
        return other

    def start(self, trial: int) -> tuple[Array, Array]:
        """Return q (7,) and v (6,) from which semi-implicit Euler starts a toss."""
        return self.q[trial], self._earlier[trial]

    def _one_by_one(self, candidate: Candidate, numbers: NDArray[np.int64]) -> list[Array]:
        """Return the motions under a model that `Worlds` does not have, from several processes."""
        tasks = [
            (self.robot, candidate, self.time_step, self.steps, self.q[i], self.v[i],
             len(self.tosses[i].time))
            for i in numbers
        ]  # fmt: skip
        workers = min(self.threads or os.cpu_count() or 1, len(tasks))
        if workers == 1:
            return [_simulated(task) for task in tasks]
        with ProcessPoolExecutor(workers) as pool:
            return list(pool.map(_simulated, tasks))


def _simulated(
    task: tuple[RobotModel, Candidate, float, int, Array, Array, int],
) -> Array:
    robot, candidate, time_step, steps, q, v, samples = task
    sim = Simulator(
        robot, candidate.model, friction=candidate.friction, restitution=candidate.restitution,
        time_step=time_step,
    )  # fmt: skip
    sim.reset(q, v)
    states = [q]
    for _ in range(samples - 1):
        for _ in range(steps):
            sim.step(np.zeros(0))
        states.append(np.array(sim.q))
    return np.array(states)


def rotations(quaternions: Array) -> Array:
    """Return rotation matrices (n, 3, 3) of unit quaternions x y z w (n, 4)."""
    x, y, z, w = quaternions.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)),
    )
    return np.array(rows).transpose(2, 0, 1)


def corners_of(q: Array) -> Array:
    """Return the corners of the cube [m], shape (n, 8, 3), at configurations (n, 7)."""
    turned = np.einsum('nij,cj->nci', rotations(q[:, 3:]), CORNERS)
    return np.asarray(q[:, None, :3] + turned)


def in_flight(toss: Toss) -> int:
    """Return how many samples the cube is in the air before it first touches the ground."""
    touches = corners_of(toss.q)[:, :, 2].min(axis=1) < CLEAR
    return int(np.argmax(touches)) if touches.any() else len(touches)


def released(toss: Toss) -> tuple[Array, Array]:
    """Return q (7,) and v (6,) at the first sample, from free flight fitted to the first ones.

    Raises:
        InvalidInput: fewer than three samples in the air.
    """
    n = min(FLIGHT, in_flight(toss))
    if n < 3:
        raise InvalidInput(f'toss {toss.name}: {n} samples in the air, expected at least 3')
    t = toss.time[:n] - toss.time[0]
    fallen = np.outer(0.5 * GRAVITY * t**2, [0.0, 0.0, 1.0])
    line = np.linalg.lstsq(np.vander(t, 2), toss.q[:n, :3] + fallen, rcond=None)[0]
    turn = rotations(toss.q[:n, 3:])
    # a body with three equal moments of inertia turns at a constant rate
    angles = np.array([pin.log3(turn[0].T @ other) for other in turn])
    rate = t @ angles / (t @ t)
    q = np.concatenate([line[1], toss.q[0, 3:]])
    return q, np.concatenate([turn[0].T @ line[0], rate])


def _published(toss: Toss) -> tuple[Array, Array]:
    return toss.q[0], toss.v[0]


def toss_errors(q: Array, measured: Array) -> Array:
    """Return the measures of a toss: simulated and measured configurations, shape (T, 7) each.

    Means are over the samples after the first, at which both are the same.
    """
    edge = 2.0 * CUBE_HALF_WIDTH
    q, measured = q[1:], measured[1:]
    corners = np.linalg.norm(corners_of(q) - corners_of(measured), axis=2).mean()
    distance = np.linalg.norm(q[:, :3] - measured[:, :3], axis=1)
    cosine = np.abs(np.sum(q[:, 3:] * measured[:, 3:], axis=1)).clip(0.0, 1.0)
    angle = np.degrees(2.0 * np.arccos(cosine)).mean()
    # the direction in the cube that points up at the end, rounded to a face
    up = [rotations(row[-1:, 3:])[0, 2] for row in (q, measured)]
    faces = [(int(np.argmax(np.abs(one))), bool(one[np.argmax(np.abs(one))] > 0)) for one in up]
    share, other = 100.0 / edge, 100.0 * (faces[0] != faces[1])
    return np.array([share * corners, share * distance.mean(), angle, share * distance[-1], other])


# --------------------------------------------------------------------------------- planar impacts

LONGEST_IMPACT = 0.02
"""Time in which the contact has to open [s]; then the velocity is taken as it is."""


class ImpactExperiment:
    """Impacts of an ellipse on level ground: from the velocity before to the velocity after.

    In the published columns a turn is positive clockwise, seen with x to the right: only with that
    sign does an impulse at the point of contact explain the change of velocity.

    Args:
        impacts: what was measured.
        time_step: [s].
        threads: of `Worlds`, and processes for laws without compiled steps; None: all cores.

    Raises:
        InvalidInput: a time step that is not > 0.
    """

    name = 'planar_impacts'
    title = 'Planar impacts of an ellipse'
    measures = (
        Measure('velocity', '%', 'norm of the error of the velocity after, in % of that before'),
        Measure('along', 'm/s', 'error along the ground'),
        Measure('up', 'm/s', 'error upward'),
        Measure('turning', 'rad/s', 'error of the turning'),
    )

    @checked
    def __init__(
        self, impacts: PlanarImpacts, time_step: float = 2.5e-4, threads: int | None = None
    ) -> None:
        self.impacts = of_type('impacts', impacts, PlanarImpacts)
        self.time_step, self.threads = positive('time_step', time_step, 's'), threads
        a, b = ELLIPSE_SEMI_AXES
        inertia = ELLIPSE_MASS * ELLIPSE_GYRATION**2
        # moves in x and z, turns about y: counter-clockwise with x to the right is -y
        self.robot = loose_ellipsoid(
            (a, b, b), ELLIPSE_MASS, 'ellipse', (inertia, inertia, inertia, 0.0, 0.0, 0.0)
        )
        n = len(impacts.angle)
        self.q, self.v = np.zeros((n, 7)), np.zeros((n, 6))
        pitch = impacts.angle  # clockwise is positive about y
        self.q[:, 2] = support_height(pitch)
        self.q[:, 4], self.q[:, 6] = np.sin(0.5 * pitch), np.cos(0.5 * pitch)
        along, up, turning = impacts.before.T
        c, s = np.cos(pitch), np.sin(pitch)
        self.v[:, 0], self.v[:, 2] = c * along - s * up, s * along + c * up
        self.v[:, 4] = turning

    def __len__(self) -> int:
        return len(self.impacts.angle)

    def errors(self, candidates: Sequence[Candidate], trials: Sequence[int]) -> Array:
        """Return errors, shape (candidates, trials, measures).

        Raises:
            InvalidInput: no candidates, trials that do not exist.
        """
        numbers = chosen(trials, len(self))
        after = self.after(candidates, numbers)
        return np.array([impact_errors(rows, self.impacts, numbers) for rows in after])

    def after(self, candidates: Sequence[Candidate], trials: Sequence[int] | IndexArray) -> Array:
        """Return velocities after the impacts: along, up [m/s], turning [rad/s], (c, n, 3)."""
        numbers = chosen(trials, len(self))
        if all(isinstance(one.model, TimeSteppingModel) for one in candidates):
            most = max(1, MOST_WORLDS // len(numbers))
            pieces = [
                self._together(candidates[first : first + most], numbers)
                for first in range(0, len(candidates), most)
            ]
            return np.concatenate(pieces)
        return np.array([self._one_by_one(one, numbers) for one in candidates])

    def _together(self, candidates: Sequence[Candidate], numbers: NDArray[np.int64]) -> Array:
        worlds = side_by_side(self.robot, candidates, len(numbers), self.time_step, self.threads)
        copies = len(candidates), 1
        worlds.reset(np.tile(self.q[numbers], copies), np.tile(self.v[numbers], copies))
        velocity = planar_velocity(worlds.q, worlds.v)
        inside = np.ones(len(velocity), dtype=bool)
        for _ in range(round(LONGEST_IMPACT / self.time_step)):
            worlds.step(np.zeros(0))
            now = planar_velocity(worlds.q, worlds.v)
            velocity[inside] = now[inside]
            inside &= ~has_left(worlds.q, now)
            if not inside.any():
                break
        return velocity.reshape(len(candidates), len(numbers), 3)

    def _one_by_one(self, candidate: Candidate, numbers: NDArray[np.int64]) -> Array:
        sim = Simulator(
            self.robot, candidate.model, friction=candidate.friction,
            restitution=candidate.restitution, time_step=self.time_step,
        )  # fmt: skip
        result = []
        for i in numbers:
            sim.reset(self.q[i], self.v[i])
            for _ in range(round(LONGEST_IMPACT / self.time_step)):
                sim.step(np.zeros(0))
                now = planar_velocity(sim.q[None], sim.v[None])
                if has_left(sim.q[None], now)[0]:
                    break
            result.append(now[0])
        return np.array(result)


def support_height(pitch: Array) -> Array:
    """Return the height of the centre of the ellipse above ground that it touches [m]."""
    a, b = ELLIPSE_SEMI_AXES
    return np.asarray(np.hypot(a * np.sin(pitch), b * np.cos(pitch)))


def pitch_of(q: Array) -> Array:
    """Return the angle about y [rad] of configurations (n, 7) that turn about y only."""
    return np.asarray(2.0 * np.arctan2(q[:, 4], q[:, 6]))


def planar_velocity(q: Array, v: Array) -> Array:
    """Return velocity along x, along z [m/s] and about y [rad/s], shape (n, 3)."""
    pitch = pitch_of(q)
    c, s = np.cos(pitch), np.sin(pitch)
    return np.stack([c * v[:, 0] + s * v[:, 2], c * v[:, 2] - s * v[:, 0], v[:, 4]], axis=1)


def has_left(q: Array, velocity: Array) -> NDArray[np.bool_]:
    """Return whether the ellipse is above the ground and its lowest point rises, shape (n,)."""
    a, b = ELLIPSE_SEMI_AXES
    pitch = pitch_of(q)
    height = support_height(pitch)
    lowest_rises = velocity[:, 1] - velocity[:, 2] * (
        (a * a - b * b) * np.sin(pitch) * np.cos(pitch) / height
    )
    return np.asarray((q[:, 2] > height) & (lowest_rises > 0.0))


def impact_errors(after: Array, impacts: PlanarImpacts, numbers: NDArray[np.int64]) -> Array:
    """Return the measures of impacts, shape (n, 4), of velocities after them (n, 3)."""
    metric = np.array([1.0, 1.0, ELLIPSE_GYRATION**2])  # of the kinetic energy, over m/2
    error = after - impacts.after[numbers]
    share = np.sqrt((error**2 @ metric) / (impacts.before[numbers] ** 2 @ metric))
    return np.column_stack([100.0 * share, np.abs(error)])
