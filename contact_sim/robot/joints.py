"""The driven joints of a model."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import pinocchio as pin

from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.arguments import as_tuple, check_unique


def actuated_joint_names(
    model: pin.Model, wanted: Iterable[str] | None, passive: Container[str] = ()
) -> tuple[str, ...]:
    """Return the names of the driven joints in Pinocchio order.

    Args:
        model: of the robot.
        wanted: their names; None: every joint with one degree of freedom that is not `passive`.
        passive: joints that are known to have no motor.

    Raises:
        InvalidInput: a joint listed twice, or one with more than one degree of freedom.
        UnknownName: a joint that the model does not have.
    """
    if wanted is None:
        known = list(model.names)[1:]  # without the universe
        driven = [name for name in known if _degrees_of_freedom(model, name) == 1]
        return tuple(str(name) for name in driven if name not in passive)
    names = as_tuple('actuated_joints', wanted, 'joint names')
    check_actuated_joints(model, names)
    return tuple(sorted(names, key=model.getJointId))


def check_actuated_joints(model: pin.Model, names: Sequence[str]) -> None:
    """Check that `names` are joints with one degree of freedom, each listed once.

    Raises:
        InvalidInput, UnknownName: see `actuated_joint_names`.
    """
    check_unique('actuated joint', names)
    known = list(model.names)[1:]
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise UnknownName('actuated joint', name, known)
        freedoms = _degrees_of_freedom(model, name)
        if freedoms != 1:
            raise InvalidInput(
                f'actuated joint {name!r} has {freedoms} degrees of freedom: only joints with one '
                'can be driven, leave it out to make it passive'
            )


def _degrees_of_freedom(model: pin.Model, joint: str) -> int:
    return int(model.joints[model.getJointId(joint)].nv)
