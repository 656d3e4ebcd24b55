"""The arrays of many worlds of one robot, and what each world may have of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import listed
from contact_sim.arrays.fields import INDEX_FIELDS, places_of
from contact_sim.collision.terrain import TerrainLike, as_terrain
from contact_sim.contact.workspace import Workspace, ground_indices
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.contact_models.time_stepping.model import TimeSteppingModel
from contact_sim.dynamics.gravity import gravity_vector
from contact_sim.errors import InvalidInput
from contact_sim.numbers import positive, real_array
from contact_sim.robot.actuators import Actuators
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.checks import per_world

Array = NDArray[np.float64]
LAW_FIELDS = ('reach', 'law', 'damping_inertia', 'options', 'support_command', 'springs')
"""Fields that belong to the contact model of a world."""
ROBOT_FIELDS = (
    'body', 'total_mass', 'inverse_weight', 'armature', 'damping', 'interval_lower',
    'interval_upper', 'lower', 'upper', 'effort_limit', 'velocity_limit', 'saturation_effort',
    'lag_decay', 'delay',
)  # fmt: skip
"""Fields that follow from masses and actuators of a world."""


class WorldArrays:
    """Numbers and indices of n worlds, one row each, laid out as those of one simulation.

    Attributes:
        n: number of worlds.
        numbers: shape (n, length).
        indices: shape (n, length).
        template: a workspace with the layout of every world.
        terrains: the ground of every world, length n.
        law: the contact model of world 0; those of the others differ in parameters only.
    """

    def __init__(
        self,
        robot: RobotModel,
        n: int,
        contact_model: str | ContactModel | Sequence[ContactModel],
        terrain: TerrainLike | Sequence[TerrainLike],
        time_step: float,
        actuators: Sequence[Actuators] | None = None,
    ) -> None:
        self.n = n
        self._robots = robots_of(robot, n, actuators)
        self.terrains = one_or_each('terrain', terrain, as_terrain, n)
        self._models = one_or_each('contact_model', contact_model, as_contact_model, n)
        self._h = positive('time_step', time_step, 's')
        first = with_room(self._robots)
        self.template = template = Workspace(first, self.terrains[0], self._h, first.constraints)
        if template.tree.unsupported:
            names = ', '.join(template.tree.unsupported)
            raise InvalidInput(f'Worlds: joints {names} have no compiled kernels; use Simulator')
        self.numbers = np.repeat(template.numbers, n, axis=0)
        self.indices = np.repeat(template.indices, n, axis=0)
        self._places = places_of(template.sizes)
        self.law = self._checked_law()
        self.change_terrains(np.arange(n), self.terrains)

    def field(self, name: str) -> Any:
        """Return a view of one field of all worlds, shape (n, ...)."""
        start, stop, shape = self._places[name]
        array = self.indices if name in INDEX_FIELDS else self.numbers
        return array[:, start:stop].reshape(self.n, *shape)

    def set_gravity(self, gravity: float | ArrayLike) -> None:
        """Use a gravity for all worlds, or one for each, (n, 3) [m/s²].

        Raises:
            InvalidInput: another shape, or values that are not finite.
        """
        value = real_array('gravity', gravity)
        if value.ndim == 2 and (value.shape != (self.n, 3) or not np.isfinite(value).all()):
            raise InvalidInput(f'gravity: shape {value.shape}, expected ({self.n}, 3), finite')
        self.field('gravity')[:] = value if value.ndim == 2 else gravity_vector(gravity)

    def set_robots(self, masses: ArrayLike | None) -> None:
        """Use the actuators of every world, and masses (njoints − 1,) or (n, njoints − 1) [kg].

        Raises:
            InvalidInput: another shape, masses that are not > 0, dry friction in other joints
                than in world 0, a delay that is no multiple of the time step.
        """
        robots = self._robots
        if masses is not None:
            bodies = robots[0].pinocchio_model.njoints - 1
            rows = per_world('masses', masses, self.n, bodies)
            if not (rows > 0.0).all():
                raise InvalidInput('masses: expected values > 0')
            robots = [with_masses(robot, row) for robot, row in zip(robots, rows, strict=True)]
        for i, robot in enumerate(robots):
            own = Workspace(robot, self.terrains[i], self._h, robot.constraints)
            if not np.array_equal(own.interval_dof, self.template.interval_dof):
                raise InvalidInput(
                    f'actuators of world {i}: dry friction in other joints than in world 0'
                )
            for name in ROBOT_FIELDS:
                self.field(name)[i] = getattr(own, name)

    def set_laws(self) -> None:
        """Write the contact model of every world; gravity and masses have to be set before."""
        template, first = self.template, self._models[0]
        same = all(model is first for model in self._models)
        same = same and len(np.unique(self.field('total_mass'))) == 1
        same = same and (self.field('gravity') == self.field('gravity')[0]).all()
        for i, model in enumerate(self._models[:1] if same else self._models):
            template.data.gravity[:] = self.field('gravity')[i]
            template.total_mass[:] = self.field('total_mass')[i]
            template.data.springs[:] = 0.0
            model.bind(template)
            for name in LAW_FIELDS:
                self.field(name)[slice(None) if same else i] = getattr(template, name)

    def of(self, world: int) -> Workspace:
        """Return a workspace with the values of one world."""
        own = self.template.copy(self.terrains[world])
        own.numbers[0], own.indices[0] = self.numbers[world], self.indices[world]
        return own

    def change_terrains(
        self, which: NDArray[np.int64], terrain: TerrainLike | Sequence[TerrainLike]
    ) -> None:
        """Put the worlds `which` on other grounds, one for all or one for each.

        Raises:
            InvalidInput: another number of grounds, or one with other features.
        """
        chosen = one_or_each('terrain', terrain, as_terrain, len(which))
        for i, ground in zip(which, chosen, strict=True):
            if ground.features != self.terrains[0].features:
                raise InvalidInput(
                    f'terrain of world {i} has {ground.features} features, that of world 0 '
                    f'{self.terrains[0].features}'
                )
        for i, ground in zip(which, chosen, strict=True):
            self.terrains[i] = ground
            self.field('terrain')[i] = ground.data
            self.field('ground')[i] = ground_indices(ground)

    def _checked_law(self) -> TimeSteppingModel:
        first = self._models[0]
        for i, model in enumerate(self._models):
            if not isinstance(model, TimeSteppingModel):
                raise InvalidInput(
                    f'Worlds: contact model {model.name!r} has no compiled step; use Simulator'
                )
            if model.compiled is not first.compiled:
                raise InvalidInput(
                    f'contact_model of world {i} is {model.name!r}, that of world 0 '
                    f'{first.name!r}: expected one class'
                )
        assert isinstance(first, TimeSteppingModel)
        return first


def robots_of(
    robot: RobotModel, n: int, actuators: Sequence[Actuators] | None
) -> list[RobotModel]:
    """Return the robot of every world, one for all where nothing differs.

    Raises:
        InvalidInput: another number than n of actuators, or actuators of other joints.
    """
    if actuators is None:
        return [robot] * n
    actuators = listed('actuators', actuators)
    if len(actuators) != n:
        raise InvalidInput(f'actuators: {len(actuators)} given, expected {n}')
    return [robot.with_actuators(own) for own in actuators]


def with_room(robots: Sequence[RobotModel]) -> RobotModel:
    """Return a robot whose arrays have room for what the actuators of all of these remember."""
    first = robots[0]
    if all(robot is first for robot in robots):
        return first
    most = {
        name: np.max([getattr(robot.actuators, name) for robot in robots], axis=0)
        for name in ('delay', 'time_constant')
    }
    return first.with_actuators(None, **most)


def one_or_each(name: str, value: Any, checked: Callable[[Any], Any], n: int) -> list[Any]:
    """Return n checked values, of one for all or of n."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [checked(value)] * n
    if len(value) != n:
        raise InvalidInput(f'{name}: {len(value)} given, expected one or {n}')
    return [checked(one) for one in value]


def with_masses(robot: RobotModel, masses: ArrayLike) -> RobotModel:
    """Return `robot` with other masses (njoints − 1,) [kg]; inertias scale with them.

    Raises:
        RobotDescriptionError: masses with which no motion can be computed.
    """
    model = robot.pinocchio_model.copy()
    for joint, mass in enumerate(real_array('masses', masses), 1):
        inertia = model.inertias[joint]
        if inertia.mass > 0.0:
            scale = mass / inertia.mass
            model.inertias[joint] = type(inertia)(mass, inertia.lever, scale * inertia.inertia)
    return replace(robot, pinocchio_model=model)
