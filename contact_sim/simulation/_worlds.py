"""Worlds: many worlds of one robot, stepped together in compiled threads.

Every world has its own state, friction, masses, gains, model parameters, pushes and terrain data;
what it does is, to the bit, what a `Simulator` with the same settings does, whatever the number of
threads. A world whose motion is no longer finite stops alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array
from contact_sim._validation import (
    LARGEST,
    as_tuple,
    checked,
    closed_attributes,
    count,
    finite,
    indices,
    positive,
    real_array,
)
from contact_sim.arrays._fields import INDEX_FIELDS, STATE, places_of
from contact_sim.arrays._views import PERSISTENT_FIELDS, address_of, places_of_worlds
from contact_sim.collision._terrain import Terrain, TerrainLike, as_terrain
from contact_sim.constraints._constraint_rows import constraint_table, with_reference_pose
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel, TimeSteppingModel, refresh
from contact_sim.contact_models._stages import DIRECT, JOINT_PD, NOT_FINITE, READY
from contact_sim.dynamics._integration import integrator_code
from contact_sim.dynamics._rigid_body import gravity_vector
from contact_sim.errors import InvalidInput, of_type, one_line
from contact_sim.robot._actuators import Actuators, JointCommand
from contact_sim.robot._constraints import Constraint, Holonomic, checked_constraints
from contact_sim.robot._coordinates import find_frame, frozen
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._judge import crossed_limits, judge_steps
from contact_sim.simulation._placement import (
    check_integrator,
    closed_configuration,
    place_checked,
)
from contact_sim.simulation._report import StepContext, StepReport
from contact_sim.simulation._running import announced
from contact_sim.simulation._state import standing_on
from contact_sim.simulation._user_values import MOMENT_COEFFICIENTS, checked_robot, over_features
from contact_sim.step._problem import Residuals
from contact_sim.step._workspace import FOUND_OF_GROUND, Workspace, ground_indices
from contact_sim.terrain import ScanGrid

if TYPE_CHECKING:
    from contact_sim.derivatives._runs import BatchLinearisation, WorldDerivatives

BatchController = Callable[[Array, Array, Array], ArrayLike]
"""(time (n,), q (n, nq), v (n, nv)) → joint efforts (n, n_joints) [N m]."""
CHUNKS = 4
"""Pieces of work per thread: worlds may take differently long."""
LAW_FIELDS = (
    'reach', 'law', 'damping_inertia', 'implicit_springs', 'options', 'support_command', 'springs',
)  # fmt: skip
"""Fields that belong to the contact model of a world."""
ROBOT_FIELDS = (
    'body', 'total_mass', 'inverse_weight', 'armature', 'damping', 'interval_lower',
    'interval_upper', 'lower', 'upper', 'effort_limit', 'velocity_limit', 'saturation_effort',
    'lag_decay', 'delay',
)  # fmt: skip
"""Fields that follow from masses and actuators of a world."""


SCRATCH_FIELDS = frozenset({'delassus', 'row_response', 'newton_matrix'})
"""Largest fields of what a step writes before it reads it: with the square of the rows."""


def without_scratch(template: Workspace, n: int) -> Array:
    """Return the numbers of n worlds like `template`; scratch is zero, and takes no memory yet."""
    numbers = np.zeros((n, template.numbers.shape[1]))
    for name, (first, last, _) in places_of(template.sizes).items():
        if name not in INDEX_FIELDS and name not in SCRATCH_FIELDS:
            numbers[:, first:last] = template.numbers[0, first:last]
    return numbers


@dataclass(frozen=True, eq=False)
class Rollout:
    """States of all worlds at T instants."""

    time: Array
    """[s], shape (T, n)."""
    q: Array
    """Configurations, shape (T, n, nq)."""
    v: Array
    """Velocities, shape (T, n, nv)."""
    effort: Array
    """Joint efforts of the step before, after saturation [N m], shape (T, n, n_joints)."""

    __repr__ = one_line


READ_ONLY = {
    'q': 'call reset(q), reset(q, v), or reset(q, worlds=[...])',
    'v': 'call reset(q, v)',
    'time': 'call reset(time=...)',
    'robot': 'make new Worlds(robot, n)',
    'n': 'make new Worlds(robot, n)',
    'running': 'reset(worlds=[...]) lets stopped worlds go on',
    'stopped': 'reset(worlds=[...]) lets stopped worlds go on',
    **dict.fromkeys(
        ('friction', 'restitution', 'contact_model', 'time_step', 'gravity'),
        'give it to Worlds(robot, n, ...)',
    ),
    'terrain': 'call reset(terrain=...)',
}
"""Attributes of Worlds that cannot be assigned, and what to do instead."""


@closed_attributes(**READ_ONLY)
class Worlds:
    """Simulation of n worlds of one robot in parallel.

    Args:
        robot: what moves in every world.
        n: number of worlds.
        contact_model: a time-stepping model by name or instance, or n instances of one class.
        terrain: a terrain by name or value, or n with as many features.
        friction: Coulomb coefficients [-]: one number, (nc,), (n, 1) or (n, nc); one per contact
            point in the place of nc holds for all its contacts.
        restitution: Newton coefficients in [0, 1], likewise.
        torsional_friction: r_s [m] of the contacts with the ground, likewise, see `Simulator`.
        rolling_friction: r_r [m], likewise.
        time_step: h [s], the same in all worlds.
        gravity: [m/s²], a number g for (0, 0, −g), (3,) or (n, 3).
        masses: masses of the bodies of Pinocchio's joints 1, 2, ... [kg], (njoints − 1,) or
            (n, njoints − 1); their inertias scale with them. None: those of the robot.
        threads: number of threads; None: the number of cores.
        integrator: as of `Simulator`, the same in all worlds.
        actuators: n of them; None: those of the robot. Which joints have dry friction is the same
            in all worlds.
        constraints: bilateral constraints besides those of the robot, a list for all worlds or n
            lists, whose places, speeds and feedback may differ. Those without a place hold where
            each world is at its reset.

    Raises:
        InvalidInput: n < 1, arrays of the wrong length, values outside what is allowed, a contact
            model without compiled steps (hybrid), joints that only Pinocchio knows, constraints
            that are Python functions or differ in more than numbers.
        UnknownName: a contact model, terrain or integrator that does not exist.
    """

    @checked
    def __init__(
        self,
        robot: RobotModel,
        n: int,
        contact_model: str | ContactModel | Sequence[ContactModel] = 'ncp',
        terrain: TerrainLike | Sequence[TerrainLike] = 'plane',
        friction: float | ArrayLike = 0.8,
        restitution: float | ArrayLike = 0.0,
        time_step: float = 1e-3,
        gravity: float | ArrayLike = 9.81,
        masses: ArrayLike | None = None,
        threads: int | None = None,
        integrator: str = 'semi_implicit',
        actuators: Sequence[Actuators] | None = None,
        torsional_friction: float | ArrayLike = 0.0,
        rolling_friction: float | ArrayLike = 0.0,
        constraints: Sequence[Constraint] | Sequence[Sequence[Constraint]] = (),
    ) -> None:
        self._robot, self._n = checked_robot(robot), count('n', n)
        self._declared = constraints_of_worlds(self._robot, constraints, self._n)
        self._threads = count('threads', threads or os.cpu_count() or 1)
        try:
            moments = [
                (name, real_array(name, numbers))
                for name, numbers in zip(
                    MOMENT_COEFFICIENTS, (torsional_friction, rolling_friction), strict=True
                )
            ]
            some = any(bool(numbers.any()) for _, numbers in moments)
            robots = self._allocate(contact_model, terrain, time_step, actuators, some)
        except MemoryError as error:
            raise InvalidInput(f'n = {n}: no memory for so many worlds') from error
        template = self._template
        template.integrator[0] = integrator_code(integrator)
        check_integrator(template)
        self._field('integrator')[:] = template.integrator
        value = real_array('gravity', gravity)
        if value.ndim == 2 and (value.shape != (self.n, 3) or not np.isfinite(value).all()):
            raise InvalidInput(f'gravity: shape {value.shape}, expected ({self.n}, 3), finite')
        self._field('gravity')[:] = value if value.ndim == 2 else gravity_vector(gravity)
        for name, numbers, largest in (
            ('friction', friction, np.inf), ('restitution', restitution, 1.0),
        ):  # fmt: skip
            rows = over_features(real_array(name, numbers), template.sizes)
            rows = per_world(name, rows, self.n, template.sizes.nc, largest)
            self._field(f'default_{name}')[:] = rows
        for name, numbers in moments if template.has_moments else ():
            rows = over_features(numbers, template.sizes)
            rows = per_world(name, rows, self.n, template.sizes.nc)
            self._field(name)[:] = rows[:, : template.sizes.n_ground]
        if not (masses is None and actuators is None):
            self._set_robots(robots, masses)
        self._set_laws()
        self._compiled = self._law.compiled.advance
        self._executor = ThreadPoolExecutor(self._threads)
        self._linearisation: BatchLinearisation | None = None
        with announced(self._law):
            self.reset()
            self._run_chunk(slice(0, 1), 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> Worlds:
        """Refuse: its parts know each other's addresses.

        Raises:
            InvalidInput: always; the message says what to do instead.
        """
        raise InvalidInput(
            'Worlds cannot be copied; make others with the same arguments and `reset` them to the '
            'q and v of these'
        )

    def __repr__(self) -> str:
        running, h = int(np.count_nonzero(self.running)), self._template.data.time_step[0]
        return (
            f'Worlds({self.n} of {self.robot.name!r}, {self._law.name}, {running} running, '
            f'h = {h:g} s, {self._threads} threads)'
        )

    @property
    def robot(self) -> RobotModel:
        """What moves in every world."""
        return self._robot

    @property
    def n(self) -> int:
        """Number of worlds."""
        return self._n

    @property
    def terrain(self) -> tuple[Terrain, ...]:
        """The ground of every world."""
        return tuple(self._terrains)

    # ---------------------------------------------------------------- arrays, one row per world

    def _allocate(
        self,
        contact_model: str | ContactModel | Sequence[ContactModel],
        terrain: TerrainLike | Sequence[TerrainLike],
        time_step: float,
        actuators: Sequence[Actuators] | None,
        moments: bool,
    ) -> list[RobotModel]:
        """Make the arrays, laid out as those of one simulation; return the robot of each world."""
        n, robots = self.n, [self.robot] * self.n
        self._judged: tuple[Array, NDArray[np.int64]] | None = None  # copies for `write_steps`
        self._contexts: dict[int, StepContext] = {}  # of reports, made when one is asked for
        if actuators is not None:
            actuators = as_tuple('actuators', actuators)
            if len(actuators) != n:
                raise InvalidInput(f'actuators: {len(actuators)} given, expected {n}')
            robots = [self.robot.with_actuators(own) for own in actuators]
        self._terrains = one_or_each('terrain', terrain, as_terrain, n)
        self._models = one_or_each('contact_model', contact_model, as_contact_model, n)
        h, first = positive('time_step', time_step, 's'), robots[0]
        if any(robot is not first for robot in robots):  # room for what all actuators remember
            most = {
                name: np.max([getattr(robot.actuators, name) for robot in robots], axis=0)
                for name in ('delay', 'time_constant')
            }
            first = first.with_actuators(None, **most)
        start = standing_on(self.robot, self._terrains[0])
        placed = [with_reference_pose(first, own, start) for own in self._declared[0]]
        self._template = template = Workspace(first, self._terrains[0], h, placed, moments)
        if template.tree.unsupported:
            names = ', '.join(template.tree.unsupported)
            raise InvalidInput(f'Worlds: joints {names} have no compiled kernels; use Simulator')
        self._tables = [template.table] * n
        self._check_constraints(start)
        self._numbers = without_scratch(template, n)
        self._indices = np.repeat(template.indices, n, axis=0)
        self._places = places_of(template.sizes)
        law = self._models[0]  # those of the others differ in parameters only
        for i, model in enumerate(self._models):
            if not isinstance(model, TimeSteppingModel):
                raise InvalidInput(
                    f'Worlds: contact model {model.name!r} has no compiled step; use Simulator'
                )
            if model.compiled is not law.compiled:
                raise InvalidInput(
                    f'contact_model of world {i} is {model.name!r}, that of world 0 '
                    f'{law.name!r}: expected one class'
                )
        self._law = law
        self._change_terrains(np.arange(n), self._terrains)
        return robots

    def _check_constraints(self, q: Array) -> None:
        """Check that the constraints of all worlds differ in numbers only; q is any (nq,)."""
        indices = self._template.table.indices
        for i, declared in enumerate(self._declared):
            if declared is not self._declared[0]:
                placed = [with_reference_pose(self.robot, own, q) for own in declared]
                table = constraint_table(self.robot, self._template.tree, placed)
                if not np.array_equal(table.indices, indices):
                    raise InvalidInput(
                        f'constraints of world {i}: expected those of world 0, on the same frames '
                        'and joints; only places, speeds and feedback may differ'
                    )

    def _place_constraints(self, world: int, q: Array) -> None:
        """Let the constraints of a world hold, those without a place where it is at q (nq,)."""
        template = self._template
        place_checked(template, self._declared[world], q)
        self._tables[world] = template.table
        for name in ('bilateral_places', 'bilateral_laws'):
            self._field(name)[world] = getattr(template, name)
        self._contexts.pop(world, None)

    def _field(self, name: str) -> Any:
        """Return a view of one field of all worlds, shape (n, ...)."""
        start, stop, shape = self._places[name]
        array = self._indices if name in INDEX_FIELDS else self._numbers
        return array[:, start:stop].reshape(self.n, *shape)

    def _set_robots(self, robots: list[RobotModel], masses: ArrayLike | None) -> None:
        """Use the actuators of every world, and masses (njoints − 1,) or (n, njoints − 1) [kg]."""
        if masses is not None:
            rows = per_world('masses', masses, self.n, self.robot.pinocchio_model.njoints - 1)
            if not (rows > 0.0).all():
                raise InvalidInput('masses: expected values > 0')
            robots = [with_masses(robot, row) for robot, row in zip(robots, rows, strict=True)]
        h = float(self._template.data.time_step[0])
        for i, robot in enumerate(robots):
            own = Workspace(
                robot, self._terrains[i], h, robot.constraints, self._template.has_moments
            )
            if not np.array_equal(own.interval_dof, self._template.interval_dof):
                raise InvalidInput(
                    f'actuators of world {i}: dry friction in other joints than in world 0'
                )
            for name in ROBOT_FIELDS:
                self._field(name)[i] = getattr(own, name)

    def _set_laws(self) -> None:
        """Write the contact model of every world; gravity and masses have to be set before."""
        template, first = self._template, self._models[0]
        same = all(model is first for model in self._models)
        same = same and len(np.unique(self._field('total_mass'))) == 1
        same = same and (self._field('gravity') == self._field('gravity')[0]).all()
        for i, model in enumerate(self._models[:1] if same else self._models):
            template.data.gravity[:] = self._field('gravity')[i]
            template.total_mass[:] = self._field('total_mass')[i]
            template.data.springs[:] = 0.0
            model.bind(template)
            for name in LAW_FIELDS:
                self._field(name)[slice(None) if same else i] = getattr(template, name)

    def _change_terrains(
        self, which: NDArray[np.int64], terrain: TerrainLike | Sequence[TerrainLike]
    ) -> None:
        """Put the worlds `which` on other grounds, one for all or one for each."""
        chosen = one_or_each('terrain', terrain, as_terrain, len(which))
        for i, ground in zip(which, chosen, strict=True):
            if ground.features != self._terrains[0].features:
                raise InvalidInput(
                    f'terrain of world {i} has {ground.features} features, that of world 0 '
                    f'{self._terrains[0].features}'
                )
        self._judged = None
        for i, ground in zip(which, chosen, strict=True):
            self._terrains[i] = ground
            self._contexts.pop(int(i), None)
            self._field('terrain')[i] = ground.data
            self._field('ground')[i] = ground_indices(ground)
            for name in FOUND_OF_GROUND:  # on the ground before
                self._field(name)[i] = 0.0

    def _workspace_of(self, world: int) -> Workspace:
        """Return a workspace with the values of one world."""
        own = self._template.copy(self._terrains[world])
        own.numbers[0], own.indices[0] = self._numbers[world], self._indices[world]
        own.table = self._tables[world]
        return own

    # ---------------------------------------------------------------- state

    def reset(
        self,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        time: float = 0.0,
        worlds: ArrayLike | None = None,
        terrain: TerrainLike | Sequence[TerrainLike] | None = None,
    ) -> None:
        """Start again, all worlds or those listed in `worlds`.

        Args:
            q: configurations, (nq,) or one row per world; default: standing on the terrain.
            v: velocities, (nv,) or one row per world; default: at rest.
            time: [s].
            worlds: indices of the worlds.
            terrain: another ground for them, or one for each, with as many features.

        Raises:
            InvalidInput: wrong sizes, values that are not finite, worlds that do not exist, a
                ground with other features.
        """
        which, time = self._chosen(worlds), finite('time', time)
        if terrain is not None:
            self._change_terrains(which, terrain)
        starts = self._starts(q, which)
        speeds = np.zeros((1, self.robot.nv)) if v is None else np.atleast_2d(real_array('v', v))
        speeds = np.broadcast_to(_rows('v', speeds, len(which)), (len(which), speeds.shape[1]))
        for place, (start, speed) in zip(which, zip(starts, speeds, strict=True), strict=True):
            q = self.robot.checked_configuration(start)
            self.robot.loops.check(q, f'world {place}')
            if self._declared[place] != self.robot.constraints:
                self._place_constraints(int(place), q)
            self._field('q')[place] = q
            self._field('v')[place] = self.robot.checked_velocity(speed)
        for name in (*PERSISTENT_FIELDS, 'command'):
            self._field(name)[which] = 0.0
        self._field('friction')[which] = self._field('default_friction')[which]
        self._field('clock')[which] = (time, time, 0.0)
        self._field('status')[which] = READY
        # in place: copies would cost the memory of the scratch of all worlds
        every = np.array_equal(which, np.arange(self.n))
        for rows in [slice(0, self.n)] if every else [slice(i, i + 1) for i in which]:
            refresh(self._numbers[rows], self._indices[rows], self._template.layout)
        for name in STATE:
            self._field(f'{name}_start')[which] = self._field(name)[which]

    def _starts(self, q: ArrayLike | None, which: NDArray[np.int64]) -> Array:
        if q is not None:
            rows = np.atleast_2d(real_array('q', q))
            return np.broadcast_to(_rows('q', rows, len(which)), (len(which), rows.shape[1]))
        poses: dict[tuple[int, int], Array] = {}
        keys = [(id(self._terrains[i]), id(self._declared[i])) for i in which]
        for i, key in zip(which, keys, strict=True):
            if key not in poses:
                pose = standing_on(self.robot, self._terrains[i])
                if self._declared[i] != self.robot.constraints:
                    pose = closed_configuration(self._template, self._declared[i], pose)
                poses[key] = pose
        return np.array([poses[key] for key in keys])

    @property
    def time(self) -> Array:
        """Simulated time of every world [s], shape (n,)."""
        return frozen(self._field('clock')[:, 0])

    @property
    def q(self) -> Array:
        """Configurations, a read-only copy, shape (n, nq)."""
        return frozen(self._field('q'))

    @property
    def v(self) -> Array:
        """Velocities, a read-only copy, shape (n, nv)."""
        return frozen(self._field('v'))

    @property
    def running(self) -> NDArray[np.bool_]:
        """Whether each world is still running, shape (n,)."""
        return np.asarray(self._field('status')[:, 0] == READY)

    @property
    def stopped(self) -> dict[int, str]:
        """Reason for every world that has stopped, by its number; `reset` lets it go on."""
        reasons = {}
        for world in map(int, np.flatnonzero(~self.running)):
            status, time = int(self._field('status')[world, 0]), float(self.time[world])
            if status == NOT_FINITE:
                limits = crossed_limits(self._workspace_of(world), self.robot)
                reason = f'the step would not be finite: {limits}'
            else:
                reason = f'effort of joint {self.robot.joint_names[status - 1]!r} is not finite'
            reasons[world] = f'world {world} stopped at t = {time:g} s: {reason}'
        return reasons

    @property
    def bytes_per_world(self) -> int:
        """Memory of one world [bytes]."""
        return int(self._numbers[0].nbytes + self._indices[0].nbytes)

    @checked
    def report(self, world: int) -> StepReport:
        """Return the full report of the last step of one world.

        Raises:
            InvalidInput: a world that does not exist.
        """
        place = world if 0 <= world < self.n else int(self._chosen([world])[0])
        if place not in self._contexts:
            self._contexts[place] = StepContext(self._workspace_of(place))
        length = self._template.sizes.length
        return StepReport(self._numbers[place, :length].copy(), self._contexts[place])

    def write_steps(self, places: ArrayLike, numbers: Array, residuals: Array) -> None:
        """Write what `write_step` of all reports does, at once.

        Args:
            places: where the numbers stand in the step data, shape (m,).
            numbers: out, of the last step of every world, shape (n, m).
            residuals: out, in the order of the fields of `Residuals`, shape (n, fields).

        Raises:
            InvalidInput: places that do not exist, arrays of other shapes.
        """
        if self._judged is None:
            self._judged = self._numbers.copy(), self._indices.copy()
        length = self._template.sizes.length
        places = indices('places', real_array('places', places), length)
        for name, array, columns in (
            ('numbers', numbers, len(places)), ('residuals', residuals, len(Residuals._fields)),
        ):  # fmt: skip
            of_type(name, array, np.ndarray)
            fits = array.shape == (self.n, columns) and array.dtype == np.float64
            if not (fits and array.flags.c_contiguous):
                raise InvalidInput(
                    f'{name}: {array.dtype} of shape {array.shape}, expected float64 of '
                    f'({self.n}, {columns}), one row after the other'
                )
        layout = self._template.layout
        judge_steps(self._numbers, *self._judged, layout, length, places, numbers, residuals)

    # ---------------------------------------------------------------- stepping

    def step(self, effort: ArrayLike, steps: int = 1) -> None:
        """Advance all worlds under constant joint efforts (n, n_joints) or (n_joints,) [N m].

        Raises:
            InvalidInput: efforts of the wrong shape or not finite; nothing is stepped.
        """
        command = per_world('effort', effort, self.n, self.robot.n_joints, least=-np.inf)
        self._field('command')[:] = command
        self._field('control')[:] = DIRECT
        self._advance(count('steps', steps))

    def derivatives(self, effort: ArrayLike) -> WorldDerivatives:
        """Return the derivatives of the steps that `step(effort)` would take; nothing moves.

        Raises:
            InvalidInput: efforts of the wrong shape, worlds that have no derivatives, that have
                stopped or are pushed.
        """
        from contact_sim.derivatives._runs import BatchLinearisation, refuse_pushes

        command = per_world('effort', effort, self.n, self.robot.n_joints, least=-np.inf)
        refuse_pushes(self._field('wrench_body'))
        if self._linearisation is None:
            self._linearisation = BatchLinearisation(self._template, self._law, self._threads)
        commands = np.broadcast_to(command, (self.n, self.robot.n_joints))
        return self._linearisation.of_step(self._numbers, self._indices, commands, self._executor)

    @checked
    def follow(
        self, command: JointCommand | Sequence[JointCommand], steps: int, every: int = 0
    ) -> Rollout:
        """Advance by `steps` steps of joint PD with feed-forward, evaluated in every step.

        Args:
            command: targets and gains for all worlds, or n of them.
            steps: number of steps.
            every: steps between two instants of the rollout; 0: only the end.

        Raises:
            InvalidInput: commands of the wrong number or length.
        """
        commands = as_tuple(
            'command', [command] * self.n if isinstance(command, JointCommand) else command
        )
        for own in commands:
            of_type('command', own, JointCommand)
        if len(commands) != self.n:
            raise InvalidInput(f'command: {len(commands)} commands, expected {self.n}')
        for field, name in (
            ('target', 'position'), ('target_velocity', 'velocity'), ('feed_forward', 'effort'),
            ('kp', 'stiffness'), ('kd', 'damping'),
        ):  # fmt: skip
            rows = np.array([getattr(own, name) for own in commands])
            self._field(field)[:] = per_world(
                f'command.{name}', rows, self.n, self.robot.n_joints, least=-np.inf
            )
        self._field('control')[:] = JOINT_PD
        return self._recorded(count('steps', steps), every, None)

    @checked
    def run(
        self, controller: BatchController, steps: int, period: int = 1, every: int = 0
    ) -> Rollout:
        """Advance by `steps` steps; `controller` gives the efforts every `period` steps.

        Args:
            controller: (time (n,), q (n, nq), v (n, nv)) → efforts (n, n_joints) [N m]. Efforts
                of one world that are not finite stop that world.
            steps: number of steps.
            period: steps between two calls of the controller.
            every: steps between two instants of the rollout, a multiple of `period`; 0: the end.

        Raises:
            InvalidInput: efforts of the wrong shape.
        """
        period = count('period', period)
        if every % period:
            raise InvalidInput(f'every = {every}: expected a multiple of period = {period}')
        self._field('control')[:] = DIRECT
        return self._recorded(count('steps', steps), every, (controller, period))

    @checked
    def push(self, frame: str, wrenches: ArrayLike) -> None:
        """Apply a wrench at a frame from now on: force [N], torque [N m], world axes.

        Args:
            frame: name of the frame, at whose origin the wrench acts.
            wrenches: (6,) or (n, 6); zeros end the push.

        Raises:
            UnknownName: a frame that does not exist.
            InvalidInput: wrong sizes, values that are not finite.
        """
        model, tree = self.robot.pinocchio_model, self._template.tree
        placed = find_frame(model, frame)
        values = per_world('wrenches', wrenches, self.n, 6, least=-np.inf)
        body = tree.body_of_joint[placed.parentJoint]
        self._field('wrench')[:] = values
        self._field('wrench_point')[:] = tree.axes[body].T @ placed.placement.translation
        self._field('wrench_body')[:] = body

    @checked
    def frame_placements(self, frame: str) -> tuple[Array, Array]:
        """Return where a frame is in every world: origins (n, 3) [m], axes by columns (n, 3, 3).

        Raises:
            UnknownName: a frame that does not exist.
        """
        placed, tree = find_frame(self.robot.pinocchio_model, frame), self._template.tree
        body = tree.body_of_joint[placed.parentJoint]
        pose = self._field('pose')[:, body]
        axes = pose[:, :9].reshape(-1, 3, 3).swapaxes(1, 2) @ tree.axes[body].T
        origins = pose[:, 9:] + axes @ placed.placement.translation
        return origins, axes @ placed.placement.rotation

    @checked
    def height_scan(self, grid: ScanGrid | None = None, frame: str = '') -> Array:
        """Return how far the ground is below a frame around it in every world [m].

        Args:
            grid: the points; None: `ScanGrid()`, 17 x 11.
            frame: name of the frame; '' is the base.

        Returns:
            As `ScanGrid.below`, shape (n, points): inf where there is no ground.

        Raises:
            UnknownName: a frame that does not exist.
        """
        origins, axes = self.frame_placements(frame or self.robot.base_frame)
        return of_type('grid', ScanGrid() if grid is None else grid, ScanGrid).below(
            self._terrains, origins, np.arctan2(axes[:, 1, 0], axes[:, 0, 0])
        )

    def _recorded(
        self, steps: int, every: int, controlled: tuple[BatchController, int] | None
    ) -> Rollout:
        if every < 0:
            raise InvalidInput(f'every = {every}: expected a whole number of at least 0')
        instants, left, since = [], steps, 0
        while left:
            chunk = min(left, every - since if every else left)
            if controlled is not None:
                controller, period = controlled
                chunk = min(chunk, period)
                efforts = real_array('controller', controller(self.time, self.q, self.v))
                shape = (self.n, self.robot.n_joints)
                if efforts.shape != shape:
                    raise InvalidInput(
                        f'controller: efforts of shape {efforts.shape}, expected {shape}'
                    )
                self._field('command')[:] = efforts
            self._advance(chunk)
            left, since = left - chunk, since + chunk
            if since == every or not left:
                rows = (self._field(name).copy() for name in ('q', 'v', 'effort'))
                instants.append((self.time, *rows))
                since = 0
        return Rollout(*(np.array(values) for values in zip(*instants, strict=True)))

    def _advance(self, steps: int) -> None:
        pieces = min(self.n, CHUNKS * self._threads if self._threads > 1 else 1)
        if pieces == 1:
            self._run_chunk(slice(None), steps)
            return
        edges = np.linspace(0, self.n, pieces + 1).astype(int)
        chunks = [slice(a, b) for a, b in pairwise(edges)]
        for done in [self._executor.submit(self._run_chunk, chunk, steps) for chunk in chunks]:
            done.result()

    def _run_chunk(self, chunk: slice, steps: int) -> None:
        places = places_of_worlds(
            self._numbers[chunk], self._indices[chunk], self._template.layout
        )
        self._compiled(address_of(places), steps)

    def _chosen(self, worlds: ArrayLike | None) -> NDArray[np.int64]:
        if worlds is None:
            return np.arange(self.n)
        chosen = indices('worlds', np.atleast_1d(real_array('worlds', worlds)), self.n)
        if chosen.size == 0:
            raise InvalidInput('worlds: expected at least one')
        return chosen.astype(np.int64)


def _rows(name: str, values: Array, n: int) -> Array:
    if values.ndim != 2 or values.shape[0] not in (1, n):
        raise InvalidInput(f'{name}: shape {values.shape}, expected one row or {n}')
    return values


def per_world(
    name: str,
    value: float | ArrayLike,
    n: int,
    length: int,
    largest: float = np.inf,
    least: float = 0.0,
) -> Array:
    """Return numbers in [least, largest], one row per world, shape (n, length)."""
    numbers = real_array(name, value)
    allowed = ((), (length,), (n, 1), (n, length))
    if numbers.shape not in allowed:
        raise InvalidInput(
            f'{name}: shape {numbers.shape}, expected one number, ({length},), ({n}, 1) or '
            f'({n}, {length})'
        )
    within = (np.abs(numbers) <= LARGEST) & (numbers >= least) & (numbers <= largest)
    if not within.all():
        worst = numbers[~within].flat[0]
        raise InvalidInput(f'{name}: {worst} is not a finite value in [{least:g}, {largest:g}]')
    return np.broadcast_to(numbers, (n, length))


def one_or_each(name: str, value: Any, checked: Callable[[Any], Any], n: int) -> list[Any]:
    """Return n checked values, of one for all or of n."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [checked(value)] * n
    if len(value) != n:
        raise InvalidInput(f'{name}: {len(value)} given, expected one or {n}')
    return [checked(item) for item in value]


def constraints_of_worlds(
    robot: RobotModel, constraints: Sequence[Any], n: int
) -> list[tuple[Constraint, ...]]:
    """Return the constraints of each world, those of the robot first."""
    given = as_tuple('constraints', constraints, 'a list of constraints')
    if given and not isinstance(given[0], Constraint):
        if len(given) != n:
            raise InvalidInput(f'constraints: {len(given)} lists given, expected one or {n}')
        each = [checked_constraints((*robot.constraints, *own)) for own in given]
    else:
        each = [checked_constraints((*robot.constraints, *given))] * n
    for constraint in (one for own in each for one in own):
        if isinstance(constraint, Holonomic):
            raise InvalidInput(
                f'constraint {constraint.name!r} is a Python function, which Worlds cannot call; '
                'use Simulator'
            )
    return each


def with_masses(robot: RobotModel, masses: ArrayLike) -> RobotModel:
    """Return `robot` with other masses (njoints − 1,) [kg]; inertias scale with them."""
    model = robot.pinocchio_model.copy()
    for joint, mass in enumerate(real_array('masses', masses), 1):
        inertia = model.inertias[joint]
        if inertia.mass > 0.0:
            scale = mass / inertia.mass
            model.inertias[joint] = type(inertia)(mass, inertia.lever, scale * inertia.inertia)
    return replace(robot, pinocchio_model=model)
