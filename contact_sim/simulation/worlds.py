"""Worlds: many worlds of one robot, stepped together in compiled threads.

Every world has its own state, friction, masses, gains, model parameters, pushes and terrain data;
what it does is, to the bit, what a `Simulator` with the same settings does, whatever the number of
threads. A world whose motion is no longer finite stops alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked, listed
from contact_sim.arrays.step_data import KEPT
from contact_sim.collision.terrain import TerrainLike
from contact_sim.contact_models.protocol import ContactModel
from contact_sim.contact_models.time_stepping.actuation import (
    DIRECT,
    JOINT_PD,
    NOT_FINITE,
    READY,
)
from contact_sim.contact_models.time_stepping.stepper import refresh
from contact_sim.dynamics.integrators import integrator_code
from contact_sim.errors import InvalidInput, of_type
from contact_sim.numbers import count, finite, indices, real_array
from contact_sim.robot.actuation import JointCommand
from contact_sim.robot.actuators import Actuators
from contact_sim.robot.configuration import frozen
from contact_sim.robot.frames import frame_called
from contact_sim.robot.model import RobotModel
from contact_sim.simulation.checks import (
    checked_robot,
    per_world,
    per_world_contact,
)
from contact_sim.simulation.compilation import announced
from contact_sim.simulation.constraint_settings import check_integrator
from contact_sim.simulation.divergence import crossed_limits
from contact_sim.simulation.placement import standing_on
from contact_sim.simulation.report import StepContext, StepReport
from contact_sim.simulation.world_arrays import WorldArrays

Array = NDArray[np.float64]
Controller = Callable[[Array, Array, Array], ArrayLike]
"""(time (n,), q (n, nq), v (n, nv)) → joint efforts (n, n_joints) [N m]."""
CHUNKS = 4
"""Pieces of work per thread: worlds may take differently long."""


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


class Worlds:
    """Steps n worlds of one robot.

    Args:
        robot: what moves in every world.
        n: number of worlds.
        contact_model: a time-stepping model by name or instance, or n instances of one class.
        terrain: a terrain by name or value, or n with as many features.
        friction: Coulomb coefficients [-]: one number, (nc,), (n, 1) or (n, nc); one per contact
            point in the place of nc holds for all its contacts.
        restitution: Newton coefficients in [0, 1], likewise.
        time_step: h [s], the same in all worlds.
        gravity: [m/s²], a number g for (0, 0, −g), (3,) or (n, 3).
        masses: masses of the bodies of Pinocchio's joints 1, 2, ... [kg], (njoints − 1,) or
            (n, njoints − 1); their inertias scale with them. None: those of the robot.
        threads: number of threads; None: the number of cores.
        integrator: as of `Simulator`, the same in all worlds.
        actuators: n of them; None: those of the robot. Which joints have dry friction is the same
            in all worlds.

    Raises:
        InvalidInput: n < 1, arrays of the wrong length, values outside what is allowed, a contact
            model without compiled steps (hybrid), joints that only Pinocchio knows.
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
    ) -> None:
        self.robot, self.n = checked_robot(robot), count('n', n)
        self._threads = count('threads', threads or os.cpu_count() or 1)
        try:
            arrays = WorldArrays(robot, self.n, contact_model, terrain, time_step, actuators)
        except MemoryError as error:
            raise InvalidInput(f'n = {n}: no memory for so many worlds') from error
        self._arrays = arrays
        self._field, sizes = arrays.field, arrays.template.sizes
        arrays.template.integrator[0] = integrator_code(integrator)
        check_integrator(arrays.template)
        self._field('integrator')[:] = arrays.template.integrator
        arrays.set_gravity(gravity)
        self._field('default_friction')[:] = per_world_contact('friction', friction, self.n, sizes)
        self._field('default_restitution')[:] = per_world_contact(
            'restitution', restitution, self.n, sizes, 1.0
        )
        if not (masses is None and actuators is None):
            arrays.set_robots(masses)
        arrays.set_laws()
        self._compiled = arrays.law.compiled.advance
        self._executor = ThreadPoolExecutor(self._threads)
        with announced(type(arrays.law).__module__):
            self.reset()
            self._run_chunk(slice(0, 1), 0)

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
            self._arrays.change_terrains(which, terrain)
        starts = self._starts(q, which)
        speeds = np.zeros((1, self.robot.nv)) if v is None else np.atleast_2d(real_array('v', v))
        speeds = np.broadcast_to(_rows('v', speeds, len(which)), (len(which), speeds.shape[1]))
        for place, (start, speed) in zip(which, zip(starts, speeds, strict=True), strict=True):
            q = self.robot.checked_configuration(start)
            self.robot.loops.check(q, f'world {place}')
            self._field('q')[place] = q
            self._field('v')[place] = self.robot.checked_velocity(speed)
        for name in (*KEPT, 'command'):
            self._field(name)[which] = 0.0
        self._field('friction')[which] = self._field('default_friction')[which]
        self._field('clock')[which] = (time, time, 0.0)
        self._field('status')[which] = READY
        arrays = self._arrays
        numbers, indices = arrays.numbers[which], arrays.indices[which]
        refresh(numbers, indices, arrays.template.layout)
        arrays.numbers[which], arrays.indices[which] = numbers, indices
        for name in ('q', 'v', 'position', 'frame', 'gap', 'feature', 'memory', 'energy'):
            self._field(f'{name}_start')[which] = self._field(name)[which]

    def _starts(self, q: ArrayLike | None, which: NDArray[np.int64]) -> Array:
        if q is not None:
            given = np.atleast_2d(real_array('q', q))
            return np.broadcast_to(_rows('q', given, len(which)), (len(which), given.shape[1]))
        poses: dict[int, Array] = {}
        for i in which:
            terrain = self._arrays.terrains[i]
            if id(terrain) not in poses:
                poses[id(terrain)] = standing_on(self.robot, terrain)
        return np.array([poses[id(self._arrays.terrains[i])] for i in which])

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
        """Whether each world goes on, shape (n,)."""
        return np.asarray(self._field('status')[:, 0] == READY)

    @property
    def stopped(self) -> dict[int, str]:
        """Reason for every world that has stopped, by its number; `reset` lets it go on."""
        return {int(i): self._reason(int(i)) for i in np.flatnonzero(~self.running)}

    @property
    def bytes_per_world(self) -> int:
        """Memory of one world [bytes]."""
        return int(self._arrays.numbers[0].nbytes + self._arrays.indices[0].nbytes)

    @checked
    def report(self, world: int) -> StepReport:
        """Return the full report of the last step of one world.

        Raises:
            InvalidInput: a world that does not exist.
        """
        (place,) = self._chosen([world])
        own = self._arrays.of(int(place))
        return StepReport(own.data.buffer.copy(), StepContext(own))

    def _reason(self, world: int) -> str:
        status, time = int(self._field('status')[world, 0]), float(self.time[world])
        if status == NOT_FINITE:
            reason = crossed_limits(self._arrays.of(world), self.robot)
            return (
                f'world {world} stopped at t = {time:g} s: the step would not be finite: {reason}'
            )
        joint = self.robot.joint_names[status - 1]
        return f'world {world} stopped at t = {time:g} s: effort of joint {joint!r} is not finite'

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
        one = isinstance(command, JointCommand)
        commands = [command] * self.n if one else listed('command', command)
        for each in commands:
            of_type('command', each, JointCommand)
        if len(commands) != self.n:
            raise InvalidInput(f'command: {len(commands)} commands, expected {self.n}')
        for field, name in (
            ('target', 'position'), ('target_velocity', 'velocity'), ('feed_forward', 'effort'),
            ('kp', 'stiffness'), ('kd', 'damping'),
        ):  # fmt: skip
            rows = np.array([getattr(one, name) for one in commands])
            self._field(field)[:] = per_world(
                f'command.{name}', rows, self.n, self.robot.n_joints, least=-np.inf
            )
        self._field('control')[:] = JOINT_PD
        return self._recorded(count('steps', steps), every, None)

    @checked
    def run(self, controller: Controller, steps: int, period: int = 1, every: int = 0) -> Rollout:
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
        model, tree = self.robot.pinocchio_model, self._arrays.template.tree
        placed = frame_called(model, frame)
        values = per_world('wrenches', wrenches, self.n, 6, least=-np.inf)
        body = tree.body_of_joint[placed.parentJoint]
        self._field('wrench')[:] = values
        self._field('wrench_point')[:] = tree.axes[body].T @ placed.placement.translation
        self._field('wrench_body')[:] = body

    def _recorded(
        self, steps: int, every: int, controlled: tuple[Controller, int] | None
    ) -> Rollout:
        if every < 0:
            raise InvalidInput(f'every = {every}: expected a whole number of at least 0')
        instants, left, since = [], steps, 0
        while left:
            chunk = min(left, every - since if every else left)
            if controlled is not None:
                chunk = min(chunk, controlled[1])
                self._command(controlled[0])
            self._advance(chunk)
            left, since = left - chunk, since + chunk
            if since == every or not left:
                instants.append(self._instant())
                since = 0
        return Rollout(*(np.array(values) for values in zip(*instants, strict=True)))

    def _command(self, controller: Controller) -> None:
        efforts = real_array('controller', controller(self.time, self.q, self.v))
        shape = (self.n, self.robot.n_joints)
        if efforts.shape != shape:
            raise InvalidInput(f'controller: efforts of shape {efforts.shape}, expected {shape}')
        self._field('command')[:] = efforts

    def _instant(self) -> tuple[Array, Array, Array, Array]:
        names = ('q', 'v', 'effort')
        return self.time, *(self._field(name).copy() for name in names)  # type: ignore[return-value]

    def _advance(self, steps: int) -> None:
        pieces = min(self.n, CHUNKS * self._threads if self._threads > 1 else 1)
        edges = np.linspace(0, self.n, pieces + 1).astype(int)
        chunks = [slice(a, b) for a, b in pairwise(edges)]
        if len(chunks) == 1:
            self._run_chunk(chunks[0], steps)
            return
        for done in [self._executor.submit(self._run_chunk, chunk, steps) for chunk in chunks]:
            done.result()

    def _run_chunk(self, chunk: slice, steps: int) -> None:
        arrays = self._arrays
        layout = arrays.template.layout
        self._compiled(arrays.numbers[chunk], arrays.indices[chunk], layout, steps)

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
