"""A robot's kinematic tree as arrays, read once from a `pin.Model`.

A tree body is what one elementary joint moves. Joints whose motion subspace depends on q
(universal, spherical ZYX, translation, composite) are chains of massless bodies on elementary
joints, so that the axes of every joint are constant in the frame of its body.

The frame of a body is Pinocchio's joint frame, turned such that the axis of a one-axis joint is
its z axis: a revolute joint is R ← R Rz(q). `Tree.axes` turns it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from contact_sim._types import Array, Indices

FIXED, REVOLUTE, CONTINUOUS, PRISMATIC, HELICAL, SPHERICAL, PLANAR, FREE_FLYER = range(8)

_SIZES = {
    REVOLUTE: (1, 1),
    CONTINUOUS: (2, 1),
    PRISMATIC: (1, 1),
    HELICAL: (1, 1),
    SPHERICAL: (4, 3),
    PLANAR: (4, 3),
    FREE_FLYER: (7, 6),
}
"""Numbers of entries of q and of v of each kind of joint."""

_CHAINS = {
    **{f'R{axis}': (REVOLUTE,) for axis in ('X', 'Y', 'Z', 'evoluteUnaligned')},
    **{f'RUB{axis}': (CONTINUOUS,) for axis in 'XYZ'},
    **{f'P{axis}': (PRISMATIC,) for axis in ('X', 'Y', 'Z', 'rismaticUnaligned')},
    **{f'H{axis}': (HELICAL,) for axis in ('X', 'Y', 'Z', 'elicalUnaligned')},
    'RevoluteUnboundedUnaligned': (CONTINUOUS,),
    'Spherical': (SPHERICAL,),
    'Planar': (PLANAR,),
    'FreeFlyer': (FREE_FLYER,),
    'Translation': (PRISMATIC, PRISMATIC, PRISMATIC),
    'Universal': (REVOLUTE, REVOLUTE),
    'SphericalZYX': (REVOLUTE, REVOLUTE, REVOLUTE),
}
"""Elementary joints of each Pinocchio joint, by its name without the prefix 'JointModel'."""


@dataclass(frozen=True)
class Tree:
    """A kinematic tree of nb bodies with nv degrees of freedom; row 0 is the world."""

    kind: Indices  # of the joint that carries the body (`REVOLUTE`, …), shape (nb,)
    parent: Indices  # body before it, always of smaller index, shape (nb,)
    q_index: Indices  # where its joint's part of q starts, shape (nb,)
    v_index: Indices  # the same of v; the next body's is where it ends, shape (nb + 1,)
    dof_parent: Indices  # dof before each dof on the way to the root, −1 at the root, shape (nv,)
    placement: Array
    """Of the joint in the frame of the parent body: rotation column by column, translation [m],
    and the pitch of a helical joint [m/rad], shape (nb, 13)."""
    body: Array
    """Mass [kg], centre of mass [m] and inertia about it [kg m²], xx, xy, xz, yy, yz, zz, in the
    body's frame, shape (nb, 10)."""
    armature: Array  # added to the diagonal of the mass matrix, shape (nv,)
    axes: Array  # turn vectors from the frame of the body into Pinocchio's, shape (nb, 3, 3)
    body_of_joint: Indices  # the body whose frame is the one of a joint, shape (njoints,)
    free_flyer_q: Indices  # where the part of q of every free flyer starts, shape (k,)
    free_flyer_v: Indices  # first dof of every free flyer, shape (k,)
    unsupported: tuple[str, ...]
    """Names of the joints whose kind the kernels do not know. If there are any, the tree has those
    joints welded, and Pinocchio computes the dynamics. Indices of q and v, `dof_parent`,
    `body_of_joint` and those of free flyers are valid anyway."""


class _Link(NamedTuple):
    """An elementary joint and the body that it carries."""

    kind: int
    sizes: tuple[int, int]
    placement: pin.SE3
    turn: Array
    pitch: float = 0.0


def dof_parents(model: pin.Model) -> Indices:
    """Return the dof before each dof on the way to the root, −1 at the root, (nv,).

    As `parents_fromRow` of Pinocchio's data, whose memory grows with the cube of nv.
    """
    parent = np.arange(-1, model.nv - 1)
    for j in range(1, model.njoints):
        joint, carrier = model.joints[j], model.parents[j]
        while carrier > 0 and model.joints[carrier].nv == 0:
            carrier = model.parents[carrier]
        if joint.nv > 0:
            before = model.joints[carrier]
            parent[joint.idx_v] = before.idx_v + before.nv - 1 if carrier > 0 else -1
    return parent


def tree_of(model: pin.Model) -> Tree:
    """Return the tree of a model; `Tree.unsupported` names the joints that it cannot express."""
    # the links, the parent of each, the link of each joint, and the unknown joints
    links = [_Link(FIXED, (0, 0), pin.SE3.Identity(), np.eye(3))]
    parents, body_of_joint, unsupported = [0], [0], []
    for j in range(1, model.njoints):
        joint, at = model.joints[j], model.jointPlacements[j]
        chain = _chain(joint, at)
        if chain is None:
            unsupported.append(model.names[j])
            chain = [_Link(FIXED, (joint.nq, joint.nv), at, np.eye(3))]
        last = body_of_joint[model.parents[j]]
        for link in chain:
            parents.append(last)
            last = len(links)
            links.append(link)
        body_of_joint.append(last)
    nb = len(links)
    kind = np.array([link.kind for link in links], dtype=np.int64)
    sizes = np.array([link.sizes for link in links], dtype=np.int64)
    ends = np.cumsum(sizes, axis=0)
    q_index, v_index = ends[:, 0] - sizes[:, 0], np.concatenate([[0], ends[:, 1]])
    parent = np.array(parents, dtype=np.int64)
    axes = np.array([link.turn for link in links])
    placement = np.zeros((nb, 13))
    for i, link in enumerate(links):
        turn = axes[parent[i]].T
        placement[i, :9] = (turn @ link.placement.rotation @ link.turn).flatten('F')
        placement[i, 9:12] = turn @ link.placement.translation
        placement[i, 12] = link.pitch
    body = np.zeros((nb, 10))
    for joint in range(1, model.njoints):
        i, inertia = body_of_joint[joint], model.inertias[joint]
        turn = axes[i].T
        about_com = turn @ inertia.inertia @ axes[i]
        body[i, 0] += inertia.mass
        body[i, 1:4] += turn @ inertia.lever
        body[i, 4:] += about_com[np.triu_indices(3)]
    return Tree(
        kind=kind,
        parent=parent,
        q_index=q_index,
        v_index=v_index,
        dof_parent=dof_parents(model),
        placement=placement,
        body=body,
        armature=np.array(model.armature, dtype=float).reshape(-1),
        axes=axes,
        body_of_joint=np.array(body_of_joint, dtype=np.int64),
        free_flyer_q=q_index[kind == FREE_FLYER],
        free_flyer_v=v_index[:-1][kind == FREE_FLYER],
        unsupported=tuple(unsupported),
    )


def _chain(joint: pin.JointModel, placement: pin.SE3) -> list[_Link] | None:
    """Return the elementary joints that make up a joint, None if there are none."""
    name = joint.shortname().removeprefix('JointModel')
    if name == 'Composite':
        # the chains of its parts, None if one of them is unknown
        composite = joint.extract() if hasattr(joint, 'extract') else joint
        if not getattr(composite, 'njoints', 0):
            return None
        chain: list[_Link] = []
        for part, offset in zip(composite.joints, composite.jointPlacements, strict=True):
            of_part = _chain(part, placement * offset)
            if of_part is None:
                return None
            chain += of_part
            placement = pin.SE3.Identity()
        return chain
    if name not in _CHAINS:
        return None
    # columns of the motion subspace of the joint at neutral q: linear, then angular part
    alone = pin.Model()
    alone.addJoint(0, joint, pin.SE3.Identity(), 'joint')
    twists = pin.computeJointJacobian(alone, alone.createData(), pin.neutral(alone), 1)
    links = []
    for kind, twist in zip(_CHAINS[name], twists.reshape(6, -1).T, strict=False):
        linear, angular = twist[:3], twist[3:]
        turn, pitch = np.eye(3), 0.0
        if kind in (REVOLUTE, CONTINUOUS, HELICAL):
            turn, pitch = _turn_to_z(angular), float(linear @ angular)
        elif kind == PRISMATIC:
            turn = _turn_to_z(linear)
        links.append(_Link(kind, _SIZES[kind], placement, turn, pitch))
        placement = pin.SE3.Identity()
    return links


def _turn_to_z(axis: Array) -> Array:
    """Return a rotation whose third column is the unit vector `axis` (3,)."""
    k = int(np.argmin(abs(axis)))
    x = np.eye(3)[k] - axis[k] * axis
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(axis, x), axis])
