"""Which links of a robot may touch each other."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import coal
import pinocchio as pin

from contact_sim.errors import InvalidInput, UnknownName, shown
from contact_sim.arguments import as_tuple
from contact_sim.robot.contact_point import Array
from contact_sim.robot.solids import MOST, Collisions, Solid
from contact_sim.robot.srdf import read_srdf

LinkPairs = Iterable[tuple[str, str]]


def self_collisions(
    model: pin.Model,
    solids: tuple[Solid, ...],
    q: Array,
    links: LinkPairs | None = None,
    srdf: str | Path | None = None,
    most: int = MOST,
) -> Collisions:
    """Return the pairs of solids of a robot that may touch.

    Args:
        model: of the robot.
        solids: its solids.
        q: a pose in which nothing touches, (nq,): pairs that overlap there are left out.
        links: names of two links each; None: all but those of one body, of a joint and the next
            one, that overlap at `q`, and those that the SRDF disables.
        srdf: path or text of an SRDF with <disable_collisions>.
        most: contacts that all pairs may have at once.

    Raises:
        InvalidInput: a pair that is none, is on one body or overlaps at `q`.
        UnknownName: a link without solids.
        RobotDescriptionError: an SRDF that cannot be read.
    """
    if links is not None:
        return Collisions(solids, _declared(model, solids, q, links), most)
    disabled = read_srdf(srdf).disabled_collisions if srdf is not None else frozenset()
    pairs = [
        pair
        for pair in combinations(solids, 2)
        if not _move_together(model, *pair)
        and frozenset((pair[0].frame, pair[1].frame)) not in disabled
    ]
    gaps = solid_gaps(model, q, pairs)
    apart = [(a.name, b.name) for (a, b), gap in zip(pairs, gaps, strict=True) if gap > 0.0]
    return Collisions(solids, tuple(apart), most)


def solid_gaps(model: pin.Model, q: Array, pairs: Iterable[tuple[Solid, Solid]]) -> list[float]:
    """Return the signed distances of pairs of solids in a pose (nq,) [m]."""
    data = model.createData()
    pin.forwardKinematics(model, data, q)
    gaps = []
    for pair in pairs:
        placed = []
        for solid in pair:
            M = data.oMi[model.getJointId(solid.joint)] * solid.placement
            placed += [shape_of(solid), coal.Transform3s(M.rotation, M.translation)]
        result = coal.DistanceResult()
        gaps.append(float(coal.distance(*placed, coal.DistanceRequest(), result)))
    return gaps


def shape_of(solid: Solid) -> Any:
    """Return a solid as a shape of coal."""
    if solid.kind == 0:
        return coal.Sphere(solid.radius)
    if solid.kind == 1:
        return coal.Capsule(solid.radius, 2.0 * solid.half[2])
    return coal.Box(*(2.0 * half for half in solid.half))


def _move_together(model: pin.Model, first: Solid, second: Solid) -> bool:
    i, j = model.getJointId(first.joint), model.getJointId(second.joint)
    return bool(i == j or model.parents[i] == j or model.parents[j] == i)


def _declared(
    model: pin.Model, solids: tuple[Solid, ...], q: Array, links: LinkPairs
) -> tuple[tuple[str, str], ...]:
    by_link: dict[str, list[Solid]] = {}
    for solid in solids:
        by_link.setdefault(solid.frame, []).append(solid)
    pairs = []
    for pair in as_tuple('links', links, 'pairs of links'):
        if isinstance(pair, str) or len(tuple(pair)) != 2:
            raise InvalidInput(f'links: {shown(pair)}: expected two names')
        for link in pair:
            if link not in by_link:
                raise UnknownName('link with collision geometry', link, by_link)
        pairs += [(a, b) for a in by_link[pair[0]] for b in by_link[pair[1]]]
    for (a, b), gap in zip(pairs, solid_gaps(model, q, pairs), strict=True):
        if gap <= 0.0 and a.joint != b.joint:
            raise InvalidInput(
                f'links: {a.name!r} and {b.name!r} overlap by {-gap:.3g} m in the standing pose'
            )
    return tuple((a.name, b.name) for a, b in pairs)
