"""The same tosses in MuJoCo and Drake: body, start and parameters are those of our presets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.errors import UnknownName, of_type
from contact_sim.judge._sources import how_to_install
from contact_sim.reality._benchmark import Outcome, stopped
from contact_sim.reality._data_sets import CUBE_HALF_WIDTH, CUBE_MASS, CUBE_MOMENT
from contact_sim.reality._experiments import (
    CORNERS,
    GRAVITY,
    TossExperiment,
    chosen,
    rotations,
    toss_errors,
)

PRESETS_OF = {'mujoco': 'todorov', 'mujoco_elliptic': 'mujoco_elliptic', 'drake': 'sap'}
"""Peer, and the name of the law that has its form."""


@checked
def peer_outcome(
    peer: str,
    experiment: TossExperiment,
    trials: Sequence[int],
    values: Mapping[str, float],
    fitted: bool,
) -> Outcome:
    """Return the errors of another engine on tosses.

    Args:
        peer: mujoco, mujoco_elliptic or drake.
        experiment: the tosses, with their starts and the time step.
        trials: which of them.
        values: friction, and time_constant and damping_ratio or stiffness and dissipation; what
            is left out stays at the default of the engine.
        fitted: whether the values come from a fit.

    Raises:
        UnknownName: another engine.
        ImportError: the engine is not installed.
    """
    if peer not in PRESETS_OF:
        raise UnknownName('peer', peer, PRESETS_OF)
    of_type('experiment', experiment, TossExperiment)
    numbers = chosen(trials, len(experiment))
    if peer == 'drake':
        engine: Any = _Drake(experiment, values)
    else:
        engine = _Mujoco(experiment, values, elliptic=peer == 'mujoco_elliptic')
    errors = np.array([
        toss_errors(
            engine.motion(*experiment.start(int(i)), len(experiment.tosses[i].time)),
            experiment.tosses[i].q,
        )
        for i in numbers
    ])  # fmt: skip
    return Outcome(peer, dict(values), stopped(errors), engine.name, fitted, True)


class _Mujoco:
    """A box on a plane in MuJoCo."""

    name = 'MuJoCo'

    def __init__(
        self, experiment: TossExperiment, values: Mapping[str, float], elliptic: bool
    ) -> None:
        try:
            import mujoco
        except ImportError as error:
            raise ImportError(how_to_install('mujoco', 'peers')) from error

        self._mujoco = mujoco
        touching = {'friction': [values['friction'], 0.0, 0.0], 'condim': 3}
        if 'time_constant' in values:
            touching['solref'] = [values['time_constant'], values['damping_ratio']]
        spec = mujoco.MjSpec()
        spec.option.timestep = experiment.time_step
        spec.option.gravity = [0.0, 0.0, -GRAVITY]
        if elliptic:
            spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], **touching)
        body = spec.worldbody.add_body(mass=CUBE_MASS, inertia=[CUBE_MOMENT] * 3)
        body.explicitinertial = True
        body.add_freejoint()
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=[CUBE_HALF_WIDTH] * 3, mass=0.0, **touching
        )
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        self._steps = experiment.steps

    def motion(self, q: Array, v: Array, samples: int) -> Array:
        """Return configurations at the samples, shape (samples, 7)."""
        data = self._data
        self._mujoco.mj_resetData(self._model, data)
        data.qpos[:3], data.qpos[3:] = q[:3], q[[6, 3, 4, 5]]
        data.qvel[:3] = rotations(q[None, 3:])[0] @ v[:3]
        data.qvel[3:] = v[3:]
        states = [q]
        for _ in range(samples - 1):
            self._mujoco.mj_step(self._model, data, nstep=self._steps)
            states.append(data.qpos[[0, 1, 2, 4, 5, 6, 3]])
        return np.array(states)


class _Drake:
    """Eight points of a body on a half space in Drake, discrete, at its default approximation."""

    name = 'Drake'

    def __init__(self, experiment: TossExperiment, values: Mapping[str, float]) -> None:
        try:
            from pydrake.geometry import AddContactMaterial, HalfSpace, ProximityProperties, Sphere
            from pydrake.math import RigidTransform
            from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction
            from pydrake.multibody.tree import SpatialInertia, UnitInertia
            from pydrake.systems.analysis import Simulator
            from pydrake.systems.framework import DiagramBuilder
        except ImportError as error:
            raise ImportError(how_to_install('drake', 'peers')) from error

        builder = DiagramBuilder()
        self._h, self._steps = experiment.time_step, experiment.steps
        plant, _ = AddMultibodyPlantSceneGraph(builder, self._h)
        plant.mutable_gravity_field().set_gravity_vector(np.array([0.0, 0.0, -GRAVITY]))
        material = ProximityProperties()
        # both sides give way alike: each is twice as stiff as the contact
        stiffness = 2.0 * values['stiffness'] if 'stiffness' in values else None
        AddContactMaterial(
            dissipation=values.get('dissipation'), point_stiffness=stiffness,
            friction=CoulombFriction(values['friction'], values['friction']),
            properties=material,
        )  # fmt: skip
        unit = CUBE_MOMENT / CUBE_MASS
        inertia = SpatialInertia(CUBE_MASS, np.zeros(3), UnitInertia(unit, unit, unit))
        body = plant.AddRigidBody('cube', inertia)
        for i, corner in enumerate(CORNERS):
            plant.RegisterCollisionGeometry(
                body, RigidTransform(corner), Sphere(0.0), f'corner_{i}', material
            )
        plant.RegisterCollisionGeometry(
            plant.world_body(), RigidTransform(), HalfSpace(), 'ground', material
        )
        plant.Finalize()
        self._plant, self._simulator = plant, Simulator(builder.Build())

    def motion(self, q: Array, v: Array, samples: int) -> Array:
        """Return configurations at the samples, shape (samples, 7)."""
        root = self._simulator.get_mutable_context()
        context = self._plant.GetMyMutableContextFromRoot(root)
        root.SetTime(0.0)
        turn = rotations(q[None, 3:])[0]
        self._plant.SetPositions(context, np.concatenate([q[[6, 3, 4, 5]], q[:3]]))
        self._plant.SetVelocities(context, np.concatenate([turn @ v[3:], turn @ v[:3]]))
        self._simulator.Initialize()
        states = [q]
        for k in range(1, samples):
            # updates happen at multiples of h: halfway between two of them no rounding matters
            self._simulator.AdvanceTo((k * self._steps - 0.5) * self._h)
            x = self._plant.GetPositions(context)
            turn = x[[1, 2, 3, 0]] / np.linalg.norm(x[:4])  # its length drifts
            states.append(np.concatenate([x[4:7], turn]))
        return np.array(states)
