"""Refuse masses with which no motion can be computed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_sim.errors import RobotDescriptionError

SMALLEST_EIGENVALUE = 1e-12
"""Of the mass matrix scaled to a unit diagonal; robots of the catalogue are above 0.05."""


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
