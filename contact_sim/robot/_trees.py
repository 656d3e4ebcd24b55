"""Kinematic trees of a Pinocchio model as models of their own, and the limit of Pinocchio's data.

The memory of Pinocchio's data grows with the cube of the degrees of freedom. So data of a whole
world are made for few of them only, and otherwise those of one tree at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from contact_sim._types import Indices
from contact_sim.errors import RobotDescriptionError

MOST_FREEDOMS = 400
"""Largest number of degrees of freedom of one tree, and of Pinocchio's data."""
CUBE_BYTES = 55.0
"""Memory of Pinocchio's data over the cube of the degrees of freedom, as measured [bytes]."""


def data_of(model: pin.Model) -> pin.Data:
    """Return Pinocchio's data of a model.

    Raises:
        RobotDescriptionError: the model has more than MOST_FREEDOMS degrees of freedom.
    """
    if model.nv > MOST_FREEDOMS:
        raise RobotDescriptionError(
            f'{model.nv} degrees of freedom: what needs the data of Pinocchio for all of them '
            f'together has at most {MOST_FREEDOMS}, because the memory of these data grows with '
            f'the cube of the number ({gigabytes(model.nv):.0f} GB here); do it for each robot '
            'alone'
        )
    return model.createData()


def gigabytes(nv: int) -> float:
    """Return the memory of Pinocchio's data of nv degrees of freedom [GB]."""
    return 1e-9 * CUBE_BYTES * float(nv) ** 3


@dataclass(frozen=True)
class ModelTree:
    """One of the trees of a Pinocchio model: all joints behind one joint on the world."""

    model: pin.Model
    """Its joints, inertias and armature alone; the model itself where it is the only tree."""
    joints: Indices
    """Its joints in the whole model, without the world; place k has joint k + 1 of `model`."""
    dofs: Indices
    """Its degrees of freedom in the whole model, in the order of those of `model`."""


def joint_trees(model: pin.Model) -> list[list[int]]:
    """Return the joints of every tree, in the order of the joints on the world."""
    trees: dict[int, list[int]] = {}
    root = [0] * model.njoints
    for j in range(1, model.njoints):
        carrier = model.parents[j]
        root[j] = root[carrier] if carrier else j
        trees.setdefault(root[j], []).append(j)
    return list(trees.values())


def dofs_of(model: pin.Model, joints: list[int]) -> Indices:
    """Return the degrees of freedom of joints."""
    places = [(model.joints[j].idx_v, model.joints[j].nv) for j in joints]
    return np.array([k for at, n in places for k in range(at, at + n)], dtype=np.int64)


def trees_of(model: pin.Model) -> Iterator[ModelTree]:
    """Yield the trees of a model, the next one made when it is asked for."""
    trees = joint_trees(model)
    for joints in trees:
        dofs, own = dofs_of(model, joints), model
        if len(trees) > 1:
            own, place = pin.Model(), {0: 0}
            for j in joints:
                place[j] = own.addJoint(
                    place[model.parents[j]], model.joints[j], model.jointPlacements[j],
                    model.names[j],
                )  # fmt: skip
                own.inertias[place[j]] = model.inertias[j]
            own.armature[:] = np.reshape(model.armature, -1)[dofs]
        yield ModelTree(own, np.array(joints, dtype=np.int64), dofs)
