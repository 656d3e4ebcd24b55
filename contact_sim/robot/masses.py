"""Refuse a Pinocchio model with which no motion can be computed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_sim.errors import RobotDescriptionError

MOST_FREEDOMS = 400
"""Largest number of degrees of freedom: the memory of Pinocchio's data grows with its cube."""
SMALLEST_EIGENVALUE = 1e-12
"""Of the mass matrix scaled to a unit diagonal; robots of the catalogue are above 0.05."""


def check_joint_numbers(name: str, model: pin.Model) -> None:
    """Refuse mimic joints, and limits, damping, friction and placements that are no numbers.

    Raises:
        RobotDescriptionError: nothing moves, or the first number that is wrong.
    """
    if model.nv == 0:
        raise RobotDescriptionError(
            f'robot {name}: it has no joint that moves; give it one, or a floating base'
        )
    if model.nv > MOST_FREEDOMS:
        raise RobotDescriptionError(
            f'robot {name}: {model.nv} degrees of freedom, expected at most {MOST_FREEDOMS}'
        )
    _check_mimic(name, model)
    for what in ('damping', 'friction'):
        _check_each(name, model, what, largest=np.finfo(float).max)
    for what in ('effortLimit', 'velocityLimit'):
        _check_each(name, model, what, largest=np.inf)
    for i in range(1, model.njoints):
        joint, where = model.joints[i], f'robot {name}: joint {model.names[i]!r}'
        if not np.isfinite(model.jointPlacements[i].homogeneous).all():
            raise RobotDescriptionError(f'{where}: its placement is not finite')
        part = slice(joint.idx_q, joint.idx_q + joint.nq)
        lower, upper = model.lowerPositionLimit[part], model.upperPositionLimit[part]
        if not np.all(lower <= upper):
            raise RobotDescriptionError(
                f'{where}: position limits {lower.tolist()} and {upper.tolist()}, '
                'expected lower <= upper'
            )


def _check_mimic(name: str, model: pin.Model) -> None:
    for i in range(1, model.njoints):
        if model.joints[i].shortname() == 'JointModelMimic':
            raise RobotDescriptionError(
                f'robot {name}: joint {model.names[i]!r} mimics another, which is not modelled; '
                'build the Pinocchio model without mimic=True and add a JointCoupling '
                'with RobotModel.with_constraints'
            )


def _check_each(name: str, model: pin.Model, what: str, largest: float) -> None:
    values = np.asarray(getattr(model, what))
    bad = np.flatnonzero(~((values >= 0.0) & (values <= largest)))
    if bad.size:
        joint = next(i for i in range(1, model.njoints) if bad[0] < _end(model.joints[i]))
        finite = '' if largest == np.inf else 'finite '
        raise RobotDescriptionError(
            f'robot {name}: joint {model.names[joint]!r}: {what} = {values[bad[0]]}, '
            f'expected a {finite}number of at least 0'
        )


def _end(joint: pin.JointModel) -> int:
    return int(joint.idx_v + joint.nv)


def check_masses(name: str, model: pin.Model) -> None:
    """Refuse masses that leave a direction of motion without inertia, whatever the pose.

    Raises:
        RobotDescriptionError: a negative mass, or a mass matrix that cannot be inverted.
    """
    for i in range(1, model.njoints):
        mass = model.inertias[i].mass
        if not 0.0 <= mass < np.inf:
            raise RobotDescriptionError(
                f'robot {name}: the body of joint {model.names[i]!r} has mass {mass} kg, expected '
                'a finite value of at least 0'
            )
    generic = pin.integrate(model, pin.neutral(model), 0.1 + 0.01 * np.arange(model.nv))
    upper = np.triu(pin.crba(model, model.createData(), generic))
    if not _is_regular(upper + np.triu(upper, 1).T):
        raise RobotDescriptionError(
            f'robot {name}: the mass matrix is singular, so some joint moves bodies without mass '
            'or inertia; give every moving link a mass and an inertia above 0'
        )


def _is_regular(mass_matrix: np.ndarray) -> bool:
    own = np.diagonal(mass_matrix)
    if not (np.isfinite(mass_matrix).all() and np.all(own > 0.0)):
        return False
    scaled = mass_matrix / np.sqrt(np.outer(own, own))
    return bool(np.linalg.eigvalsh(scaled).min(initial=1.0) > SMALLEST_EIGENVALUE)
