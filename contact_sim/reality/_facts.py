"""What measured motions show by themselves, and how much of an error is not of the laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.reality._benchmark import Ranking
from contact_sim.reality._cassie import IMPACT, LandingExperiment
from contact_sim.reality._data_sets import (
    ELLIPSE_GYRATION,
    ELLIPSE_SEMI_AXES,
    PlanarImpacts,
    Toss,
)
from contact_sim.reality._experiments import (
    FLIGHT,
    GRAVITY,
    TossExperiment,
    in_flight,
    released,
    rotations,
    support_height,
    toss_errors,
)
from contact_sim.reality._laws import Candidate


def halves(toss: Toss) -> tuple[Toss, Toss]:
    """Return the odd and the even samples of the flight of a toss, at their times."""
    n = min(FLIGHT, in_flight(toss))
    parts = []
    for first in (0, 1):
        rows = np.arange(first, n, 2)
        parts.append(replace(toss, time=toss.time[rows], q=toss.q[rows], v=toss.v[rows]))
    return parts[0], parts[1]


@checked
def start_noise(experiment: TossExperiment, candidate: Candidate, trials: list[int]) -> float:
    """Return the error that the noise of the starts alone makes, in % of the edge.

    Each toss is simulated from two starts, fitted to different samples of its flight. Half of the
    variance between the two is that of a start from half of the samples, and a start from all of
    them has half of that.
    """
    differences = []
    usable = [i for i in trials if in_flight(experiment.tosses[i]) >= 6]
    motions = []
    for part in (0, 1):
        q, v = experiment.q.copy(), experiment.v.copy()
        for i in usable:
            half = halves(experiment.tosses[i])[part]
            q_half, v_half = released(half)
            if part:  # one sample later: back to the first one
                dt = float(half.time[0] - experiment.tosses[i].time[0])
                turn, up = rotations(q_half[None, 3:])[0], np.array([0.0, 0.0, GRAVITY])
                v_half[:3] += dt * turn.T @ up
                q_half[:3] -= dt * turn @ v_half[:3] - 0.5 * dt**2 * up
                q_half[3:] = experiment.q[i, 3:]
                v_half[:3] = rotations(q_half[None, 3:])[0].T @ turn @ v_half[:3]
            q[i], v[i] = q_half, v_half
        motions.append(experiment.from_starts(q, v).motions([candidate], usable)[0])
    for one, other in zip(*motions, strict=True):
        differences.append(toss_errors(one, other)[0])
    return float(0.5 * np.mean(differences))


def best_of_all(ranking: Ranking) -> float:
    """Return the mean error if the best law could be chosen for each trial by its outcome."""
    errors = np.array([one.errors[:, 0] for one in ranking.fitted()])
    return float(errors.min(axis=0).mean())


@checked
def impact_facts(impacts: PlanarImpacts) -> dict[str, float]:
    """Return what the impacts show: restitution, friction, and whether a point impulse explains.

    Keys: `restitution_5`, `_50`, `_95` percentiles; `friction_95`, of |tangential| over normal
    impulse; `correlation_speed`, of restitution with the approach speed; `unexplained`, median of
    the part of the velocity change that no impulse at the contact point makes [% of the velocity
    before]; `unexplained_other_sign`, the same if a turn were positive counter-clockwise;
    `energy_gain`, share of impacts after which there is more energy [%].
    """
    metric = np.array([1.0, 1.0, ELLIPSE_GYRATION**2])
    before, after = impacts.before, impacts.after
    normal, tangent = contact_rows(impacts.angle)
    change = after - before
    approach = np.sum(normal * before, axis=1)
    restitution = -np.sum(normal * after, axis=1) / approach
    impulse, rest = _point_impulse(normal, tangent, change, metric)
    other = tangent * np.array([1.0, 1.0, -1.0])
    size = np.sqrt(before**2 @ metric)
    share, share_other = (
        100.0 * float(np.median(np.sqrt(part**2 @ metric) / size))
        for part in (rest, _point_impulse(normal, other, change, metric)[1])
    )
    energy = (after**2 @ metric) / (before**2 @ metric)
    low, middle, high = np.percentile(restitution, [5, 50, 95])
    return {
        'impacts': float(len(before)),
        'restitution_5': float(low), 'restitution_50': float(middle),
        'restitution_95': float(high),
        'correlation_speed': float(np.corrcoef(restitution, -approach)[0, 1]),
        'friction_95': float(np.percentile(np.abs(impulse[:, 1] / impulse[:, 0]), 95)),
        'unexplained': share, 'unexplained_other_sign': share_other,
        'energy_gain': 100.0 * float(np.mean(energy > 1.0)),
    }  # fmt: skip


def contact_rows(angle: Array) -> tuple[Array, Array]:
    """Return the rows of the normal and tangential velocity of the contact point, (n, 3) each.

    Angles and turns are clockwise, with x to the right.
    """
    a, b = ELLIPSE_SEMI_AXES
    height = support_height(angle)
    ahead = (a * a - b * b) * np.sin(angle) * np.cos(angle) / height
    zero, one = np.zeros_like(angle), np.ones_like(angle)
    # point at (−ahead, −height): clockwise turning ω moves it by ω × (−height, ahead)
    return np.stack([zero, one, -ahead], 1), np.stack([one, zero, -height], 1)


def _point_impulse(
    normal: Array, tangent: Array, change: Array, metric: Array
) -> tuple[Array, Array]:
    """Return the impulses (n, 2) that best explain velocity changes, and what is left (n, 3)."""
    rows = np.stack([normal, tangent], axis=1)
    mobility = np.einsum('nij,j,nkj->nik', rows, 1.0 / metric, rows)
    impulse = np.linalg.solve(mobility, np.einsum('nij,nj->ni', rows, change)[..., None])[..., 0]
    return impulse, change - np.einsum('nij,ni->nj', rows, impulse) / metric


@checked
def landing_facts(experiment: LandingExperiment, candidate: Candidate) -> dict[str, float]:
    """Return what the landings show beside the laws.

    Keys: `before_impact`, the velocity error of the simulation [%] at the time of the impact,
    before any contact law has acted; `sinking`, how far the soles are measured below the height
    of the first contact [mm], mean of the largest depths.
    """
    trials = list(range(len(experiment)))
    _, v = experiment.motions([candidate], trials)
    k = int(IMPACT / experiment.sample) - 1
    shares = [experiment.velocity_error(v[k, 0, i], i, k) for i in trials]
    depths = [-min(heights) for heights in experiment.sole_heights(every=10)]
    return {
        'before_impact': 100.0 * float(np.mean(shares)),
        'sinking': 1e3 * float(np.mean(depths)),
    }
