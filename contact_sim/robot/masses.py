"""Refuse masses with which no motion can be computed."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from contact_sim.errors import RobotDescriptionError


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
    data = model.createData()
    generic = pin.integrate(model, pin.neutral(model), 0.1 + 0.01 * np.arange(model.nv))
    pin.crba(model, data, generic)
    upper = np.triu(data.M)
    try:
        np.linalg.cholesky(upper + np.triu(upper, 1).T)
    except np.linalg.LinAlgError as error:
        raise RobotDescriptionError(
            f'robot {name}: the mass matrix is singular, so some joint moves bodies without mass '
            'or inertia; give every moving link a mass and an inertia above 0'
        ) from error
