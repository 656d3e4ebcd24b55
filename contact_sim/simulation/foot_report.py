"""Feet and links of a step: forces and torques of the contacts that belong to one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from contact_sim.arrays import fields as f
from contact_sim.arrays.fields import PAIR_NUMBERS
from contact_sim.arrays.views import Arrays, arrays_of, frames, integers, matrix, vector
from contact_sim.collision.pool import pair_of
from contact_sim.contact.contact_values import OPEN, mode_of
from contact_sim.contact.workspace import Workspace
from contact_sim.dynamics.kinematics import place_bodies
from contact_sim.dynamics.vectors import add, cross, put, scaled, sub, vec
from contact_sim.robot.feet import foot_frame
from contact_sim.robot.solids import link_names
from contact_sim.solvers.borrowed import borrowed
from contact_sim.solvers.jit import kernel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
FORCE, TORQUE, ORIGIN, GAP, LOADED, MODE, SLIP, COLUMNS = 0, 3, 6, 9, 10, 11, 12, 13
"""First column of each quantity in what `group_values` returns, and how many there are."""


@dataclass(frozen=True, eq=False)
class ContactGroups:
    """Contacts grouped by foot or by link."""

    names: tuple[str, ...]
    """Names of the groups, length n."""
    of_contact: Indices
    """Group of each contact, shape (nc,); of feet those of the rest of the body have none."""
    of_solid: Indices
    """Group of each solid of `robot.collisions`, −1 if it belongs to none, shape (n_solids,)."""
    body: Indices
    """Body of the kinematic tree that carries each group, shape (n,)."""
    origin: Array
    """Point about which the torque of each group is taken, axes of that body [m], (n, 3)."""


def foot_groups(work: Workspace) -> ContactGroups:
    """Return the contacts by foot; torques are about the origins of the frames of the feet."""
    feet, model = work.robot.feet, work.model
    joints = [model.getJointId(foot.joint) for foot in feet]
    offsets = [foot_frame(model, foot).placement.translation for foot in feet]
    of_point = {k: group for group, foot in enumerate(feet) for k in foot.points}
    solids = work.robot.collisions.solids
    of_solid = [-1] * len(solids)
    for group, foot in enumerate(feet):
        names = link_names(model, foot)
        for k, solid in enumerate(solids):
            of_solid[k] = group if solid.frame in names else of_solid[k]
    return _groups(work, [foot.name for foot in feet], joints, offsets, (of_point, of_solid))


def link_groups(work: Workspace) -> ContactGroups:
    """Return the contacts by link; torques are about the origins of the joints."""
    points = work.robot.candidates
    solids = work.robot.collisions.solids
    names = list(dict.fromkeys([one.joint for one in points] + [one.joint for one in solids]))
    joints = [work.model.getJointId(name) for name in names]
    of_point = {k: names.index(point.joint) for k, point in enumerate(points)}
    of_solid = [names.index(solid.joint) for solid in solids]
    return _groups(work, names, joints, [np.zeros(3) for _ in names], (of_point, of_solid))


def _groups(
    work: Workspace,
    names: Sequence[str],
    joints: Sequence[int],
    offsets: Sequence[Array],
    members: tuple[dict[int, int], list[int]],
) -> ContactGroups:
    """Return groups of points and solids; origins are `offsets` in the axes of their joints."""
    of_point, of_solid = members
    points = [of_point[k] for k in range(len(of_point))]
    body = np.array([work.tree.body_of_joint[joint] for joint in joints], dtype=np.int64)
    origin = [work.tree.axes[k].T @ offset for k, offset in zip(body, offsets, strict=True)]
    return ContactGroups(
        tuple(names), np.repeat(np.array(points, dtype=np.int64), work.sizes.features),
        np.array(of_solid, dtype=np.int64), body,
        np.array(origin, dtype=float).reshape(-1, 3),
    )  # fmt: skip


class FootReport:
    """Feet, or links, in a step: one row each, those without load included.

    Args:
        buffer: step data.
        groups: which contacts belong together.
        values: returns the rows of `group_values`; called once.
    """

    def __init__(
        self,
        buffer: Array,
        groups: ContactGroups,
        values: Callable[[Array, ContactGroups], Array],
    ) -> None:
        self._buffer, self._groups, self._make = buffer, groups, values

    @cached_property
    def _values(self) -> Array:
        return self._make(self._buffer, self._groups)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the feet in the order of `robot.feet`, or of the joints that move the links.

        Links come in the order of their first contact points.
        """
        return self._groups.names

    @property
    def force(self) -> Array:
        """Force of the ground on each foot [N], world, shape (n, 3)."""
        return self._values[:, FORCE:TORQUE]

    @property
    def torque(self) -> Array:
        """Torque of the contact forces about `origin` [N m], world, shape (n, 3).

        Forces act where the contacts were at the start of the step.
        """
        return self._values[:, TORQUE:ORIGIN]

    @property
    def origin(self) -> Array:
        """Origins of the frames of feet, or of the joints of links [m], world, shape (n, 3).

        They are those at the start of the step.
        """
        return self._values[:, ORIGIN:GAP]

    @property
    def gap(self) -> Array:
        """Least signed distance of its contacts after the step [m], shape (n,)."""
        return self._values[:, GAP]

    @property
    def loaded(self) -> NDArray[np.bool_]:
        """Whether any of its contacts presses on the ground, shape (n,)."""
        return self._values[:, LOADED] > 0.0

    @property
    def mode(self) -> NDArray[np.int64]:
        """Largest mode of its contacts, shape (n,).

        2 slip where any contact with a force slips, else 1 stick where any has a force, else 0.
        """
        return self._values[:, MODE].astype(np.int64)

    @property
    def slip_speed(self) -> Array:
        """Largest tangential speed of its contacts after the step [m/s], shape (n,).

        Of those with a force; of all where none has any.
        """
        return self._values[:, SLIP]


@kernel
def group_values(buffer, numbers, indices, layout, of_contact, of_solid, body, origin):
    """Return what `FootReport` tells, one row per group, shape (n, COLUMNS).

    Args:
        buffer: step data, shape (Sizes.length,).
        numbers: of a workspace of the same simulation; its field `pose` is used as scratch.
        indices: of that workspace.
        layout: of that workspace.
        of_contact: `ContactGroups.of_contact`, shape (at most nc,).
        of_solid: `ContactGroups.of_solid`, shape (n_solids,).
        body: `ContactGroups.body`, shape (n,).
        origin: `ContactGroups.origin` [m], shape (n, 3).
    """
    out = np.zeros((body.shape[0], COLUMNS))
    data = arrays_of(numbers, indices, layout, 0)
    step = Arrays(borrowed(buffer), data.indices, data.layout)
    if integers(data, f.TERMS_GIVEN)[0] == 0:
        place_bodies(
            integers(data, f.KIND), integers(data, f.PARENT), integers(data, f.Q_INDEX),
            matrix(data, f.PLACEMENT), vector(step, f.Q_START), matrix(data, f.POSE),
        )  # fmt: skip
    place_origins(matrix(data, f.POSE), body, origin, out)
    add_contacts(step, of_contact, out)
    add_pairs(step, of_solid, out)
    return out


@kernel
def place_origins(pose, body, origin, out):
    """Fill the origins of the groups in world, and the gap of a group without contacts."""
    for g in range(body.shape[0]):
        R, o, row = pose[body[g]], origin[g], out[g]
        row[GAP] = np.inf
        for k in range(3):
            row[ORIGIN + k] = R[k] * o[0] + R[3 + k] * o[1] + R[6 + k] * o[2] + R[9 + k]


@kernel
def add_contacts(step, of_contact, out):
    """Add every contact to its group."""
    gap = vector(step, f.GAP)
    for i in range(of_contact.shape[0]):  # those of the rest of the body belong to no foot
        add_contact(step, i, 1.0, gap[i], out[of_contact[i]])


@kernel
def add_pairs(step, of_solid, out):
    """Add the contacts between bodies to the groups of both, with the gap before the step."""
    pairs, gap = integers(step, f.PAIRS), vector(step, f.GAP_START)
    for i in range(integers(step, f.LEAF_DOF).shape[0], gap.shape[0]):
        k = PAIR_NUMBERS * pair_of(vector(step, f.FEATURE_START)[i])
        if k >= 0:
            for side in range(2):
                group = of_solid[pairs[k + side]]
                if group >= 0:
                    add_contact(step, i, 1.0 - 2.0 * side, gap[i], out[group])


@kernel
def add_contact(step, i, sign, gap, row):
    """Add contact i to a group; its force acts with this sign."""
    frame, point = frames(step, f.FRAME_START)[i], matrix(step, f.POSITION_START)[i]
    impulse, u, force = vector(step, f.IMPULSE), vector(step, f.U_NEXT), (0.0, 0.0, 0.0)
    for a in range(3):
        force = add(force, scaled(impulse[3 * i + a], vec(frame[a], 0)))
    force = scaled(sign / vector(step, f.TIME_STEP)[0], force)
    torque = cross(sub(vec(point, 0), vec(row, ORIGIN)), force)
    put(row, FORCE, add(vec(row, FORCE), force))
    put(row, TORQUE, add(vec(row, TORQUE), torque))
    add_state(row, gap, impulse[3 * i + 2], np.sqrt(u[3 * i] ** 2 + u[3 * i + 1] ** 2))


@kernel
def add_state(row, gap, normal_impulse, speed):
    """Add gap, load, mode and tangential speed of one contact to a group."""
    mode = mode_of(normal_impulse, speed)
    row[GAP] = min(row[GAP], gap)
    if normal_impulse > 0.0:
        row[LOADED] = 1.0
    if mode != OPEN and row[MODE] == OPEN:
        row[SLIP] = speed  # from now on only contacts with a force count
    elif mode != OPEN or row[MODE] == OPEN:
        row[SLIP] = max(row[SLIP], speed)
    row[MODE] = max(row[MODE], mode)
