"""Simulation in maximal coordinates: one sparse system of free bodies and rows (theory 2.14).

    [ M  −Jᵀ ] [ v̇ ]   [  f ]
    [ J   0  ] [ λ ] = [ −c ]

Unknowns go from the leaves of the tree to its root, each body before the rows of the joint that
carries it: elimination in this order fills in nothing outside the blocks of M and J, and its cost
is linear in the number of bodies [Baraff 1996].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, lu_factor, lu_solve
from scipy.sparse import csc_array
from scipy.sparse.linalg import splu

from contact_sim._types import Array, IndexArray
from contact_sim._validation import checked, finite, is_finite, number_within, positive, shaped
from contact_sim.collision._contact_slots import UNUSED_GAP
from contact_sim.collision._surface import tangents
from contact_sim.collision._terrain import Terrain, TerrainLike, as_terrain
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel
from contact_sim.contact_models._ncp import Ncp
from contact_sim.dynamics._rigid_body import gravity_vector
from contact_sim.errors import InvalidInput, NonFiniteState, of_type, one_line, shown, summary
from contact_sim.maximal._mechanism import (
    BodyState,
    JointRows,
    Mechanism,
    PlacedRows,
    cross,
    turned,
)
from contact_sim.robot._constraints import Baumgarte, Projection, Stabilisation
from contact_sim.robot._coordinates import frozen
from contact_sim.robot._model import RobotModel
from contact_sim.step._contact_rows import gap_bias
from contact_sim.step._problem import ContactProblem, SolverReport
from contact_sim.step._workspace import BAUMGARTE

# --- The system

INERTIA = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), np.ones((3, 3))]]) > 0.0
"""Entries of a body's block of M that may differ from 0."""


class KktSystem:
    """Pattern of the matrix, laid out once, and its factor at the latest state.

    `coordinates` are those of the six velocities of a body that are unknown; `dense`: factor as a
    full matrix instead, to compare.
    """

    def __init__(self, rows: JointRows, coordinates: tuple[int, ...], dense: bool = False) -> None:
        self._kept, self._dense = np.array(coordinates), dense
        bodies, count = len(rows.parent), len(coordinates)
        self.body_unknown = np.full((bodies, 6), -1, dtype=np.intp)
        """Number of the unknown of each velocity, −1 for none, shape (nb, 6)."""
        self.row_unknown = np.zeros(len(rows.joint), dtype=np.intp)
        """The same of each multiplier, shape (m,)."""
        self.size = 0
        """Number of unknowns."""
        for j in range(bodies - 1, 0, -1):
            self.body_unknown[j, self._kept] = self.size + np.arange(count)
            of_joint = np.flatnonzero(rows.joint == j)
            self.row_unknown[of_joint] = self.size + count + np.arange(len(of_joint))
            self.size += count + len(of_joint)
        self._factor: Any = None
        # the entries of M and J, and their places in compressed columns
        known = self.body_unknown >= 0
        blocks = INERTIA & known[:, :, None] & known[:, None, :]
        side = np.stack([rows.parent[rows.joint], rows.joint], axis=1)
        entries = rows.structure & known[side]
        self._of_inertia, self._of_jacobian = np.flatnonzero(blocks), np.flatnonzero(entries)
        body, a, b = np.nonzero(blocks)
        row, end, k = np.nonzero(entries)
        above, below = self.body_unknown[side[row, end], k], self.row_unknown[row]
        at_row = np.concatenate([self.body_unknown[body, a], above, below])
        at_column = np.concatenate([self.body_unknown[body, b], below, above])
        self._order = np.lexsort((at_row, at_column))
        starts = np.searchsorted(at_column[self._order], np.arange(self.size + 1))
        columns = at_row[self._order].astype(np.int32), starts.astype(np.int32)  # as SuperLU wants
        self.matrix = csc_array((np.zeros(len(at_row)), *columns), shape=(self.size, self.size))
        """The matrix at the latest state."""

    def factor(self, inertia: Array, jacobian: Array) -> None:
        """Fill and factor the matrix from the blocks of M (nb, 6, 6) and J (m, 2, 6)."""
        J = jacobian.ravel()[self._of_jacobian]
        values = np.concatenate([inertia.ravel()[self._of_inertia], -J, J])
        self.matrix.data[:] = values[self._order]
        try:
            if self._dense:
                self._factor = lu_factor(self.matrix.toarray(), check_finite=False)
            else:
                self._factor = splu(self.matrix, permc_spec='NATURAL')
        except RuntimeError as error:
            raise InvalidInput(
                'maximal coordinates: M and J leave motion or joint forces undetermined; expected '
                'bodies with mass and inertia wherever a joint can move them alone'
            ) from error

    def solve(self, force: Array, right_side: Array | float = 0.0) -> tuple[Array, Array]:
        """Return accelerations (..., nb, 6) and multipliers (..., m) of the factored system.

        `force` on the bodies (..., nb, 6), `right_side` −c (..., m).
        """
        right = np.zeros((*force.shape[:-2], self.size))
        right[..., self.body_unknown[1:, self._kept]] = force[..., 1:, self._kept]
        right[..., self.row_unknown] = right_side
        if self._dense:
            solution = lu_solve(self._factor, right.T, check_finite=False).T
        else:
            solution = self._factor.solve(np.ascontiguousarray(right.T)).T
        acceleration = np.zeros(force.shape)
        unknown = self.body_unknown[1:, self._kept]
        acceleration[..., 1:, self._kept] = solution[..., unknown]
        return acceleration, solution[..., self.row_unknown]


# --- Contact of spheres on free bodies with the ground
#
#     G = J_c K⁻¹ J_cᵀ,   u_f = J_c v_f
#
# with K⁻¹ f the accelerations of the system under forces f: joints answer contact forces at once.
# The contact problem is that of `Simulator` (theory 0, 2.11).


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Contact forces of a step and their effect on bodies and joints."""

    acceleration: Array
    """Added to the bodies, shape (nb, 6)."""
    held: Array
    """Added to the multipliers of the joints, shape (m,)."""
    force: Array
    """On each contact point of the robot [N], world axes, shape (n, 3)."""
    solver: SolverReport | None
    """How the problem was solved; None: nothing touched."""

    __repr__ = one_line


class GroundContacts:
    """Spheres of a robot on a ground with friction μ, without restitution."""

    def __init__(
        self, mechanism: Mechanism, terrain: Terrain, friction: float, model: Ncp
    ) -> None:
        self._terrain, self._friction, self._model = terrain, friction, model
        robot, tree = mechanism.robot, mechanism.tree
        points = robot.contact_points or robot.body_points
        joints = [robot.pinocchio_model.getJointId(point.joint) for point in points]
        self._body: IndexArray = tree.body_of_joint[joints].astype(np.intp)
        offsets = np.array([point.offset for point in points]).reshape(-1, 3)
        own = turned(tree.axes[self._body].transpose(0, 2, 1), offsets)
        self._offset = own - tree.body[self._body, 1:4]
        self._radius = np.array([point.radius for point in points])

    def solve(
        self, state: BodyState, blocks: Array, free: Array, h: float, system: KktSystem
    ) -> ContactForces:
        """Return the contact forces of a step.

        Contacts that close within the step are added until no further one does. `blocks` are of M,
        `free` the velocities after the step without contact, (nb, 6).
        """
        # the contacts that spheres may have, with their frames; each on the body of its sphere
        lever = turned(state.rotation[self._body], self._offset)
        distance, normals = self._terrain.contacts(state.position[self._body] + lever)
        sphere, slot = np.nonzero(distance < UNUSED_GAP)
        gap, n = distance[sphere, slot] - self._radius[sphere], normals[sphere, slot]
        frames = np.array([[*tangents(*normal), normal] for normal in n]).reshape(-1, 3, 3)
        # velocity of the contact point, rows t1, t2, n, per velocity of its body, (nc, 3, 6); the
        # point is halfway between sphere and ground, see collision/_detection.py
        at = lever[sphere] - (self._radius[sphere] + 0.5 * gap)[:, None] * n
        rows = np.concatenate([frames, cross(at[:, None], frames)], axis=2)
        body = self._body[sphere]
        force = np.zeros((len(self._body), 3))
        after, solver = free, None
        active = np.zeros(len(gap), dtype=bool)
        added: tuple[Array, Array] = (np.zeros_like(free), system.solve(0.0 * free)[1])
        impulse = np.zeros((0, 3))
        while True:
            approach = (rows[:, 2] * after[body]).sum(axis=1)
            closing = (gap + h * approach < 0.0) | active
            if closing.sum() <= active.sum():
                break
            active = closing
            # what unit forces along each row exert on all bodies, and how these move
            count = int(active.sum())
            units, bodies = np.arange(3 * count), np.repeat(body[active], 3)
            wrenches = np.zeros((3 * count, len(free), 6))
            wrenches[units, bodies] = rows[active].reshape(-1, 6)
            moves, holds = system.solve(wrenches)
            # the contact problem of these contacts
            J = wrenches[:, 1:].reshape(3 * count, -1)
            G = J @ moves[:, 1:].reshape(len(moves), -1).T
            bias = np.zeros((count, 3))
            bias[:, 2] = [gap_bias(distance, h, BAUMGARTE) for distance in gap[active]]
            problem = ContactProblem.from_dynamics(
                block_diag(*blocks[1:]), J, state.velocity[1:].ravel(), free[1:].ravel(),
                np.full(count, self._friction), gap[active], bias.ravel(), h,
                delassus=0.5 * (G + G.T),
            )  # fmt: skip
            solution = self._model.solve(problem)
            rates, solver = solution.impulse / h, solution.solver
            added = np.tensordot(rates, moves, 1), rates @ holds
            after, impulse = free + h * added[0], solution.impulse.reshape(-1, 3)
        along = (impulse[:, None] @ frames[active])[:, 0] / h
        np.add.at(force, sphere[active], along)
        return ContactForces(*added, force, solver)


# --- Report of a step


@dataclass(frozen=True, eq=False)
class MaximalReport:
    """State, drift and energy after a step; accelerations and forces during it."""

    time: float
    """At the end of the step [s]."""
    state: BodyState
    """At the end of the step."""
    acceleration: Array
    """Of the centres of mass [m/s²], then angular [rad/s²], world axes, shape (nb, 6)."""
    multipliers: Array
    """λ, force along the rows, shape (m,)."""
    contacts: ContactForces | None
    """Forces of the ground; None without a contact model."""
    _rows_before: PlacedRows
    _rows: PlacedRows
    _mechanism: Mechanism
    _gravity: Array

    @property
    def drift(self) -> float:
        """Largest error |h| of the joint rows: distances [m] and cosines of right angles."""
        return float(np.abs(self._rows.error).max(initial=0.0))

    @property
    def drift_rate(self) -> float:
        """Largest |ḣ| [m/s, 1/s]."""
        return float(np.abs(self._rows.rate(self.state.velocity)).max(initial=0.0))

    @property
    def joint_force(self) -> Array:
        """Force of the joint that carries each body on it, world axes [N], shape (nb, 3).

        What its rows exert; the effort of a joint that slides is not part of it.
        """
        return self._rows_before.wrenches(self.multipliers)[:, :3]

    @property
    def energy(self) -> float:
        """T + U of all bodies [J]; U = 0 with the centre of mass in the origin."""
        return self._mechanism.energy(self.state, self._gravity)

    @property
    def q(self) -> Array:
        """Configuration in Pinocchio's convention, angles in (−π, π], shape (nq,)."""
        return self._mechanism.reduced(self.state)[0]

    @property
    def v(self) -> Array:
        """Velocity in Pinocchio's convention, shape (nv,)."""
        return self._mechanism.reduced(self.state)[1]

    __repr__ = one_line


# --- The simulator

LARGEST_ERROR = 1e-13
"""|h| [m, −] up to which positions are projected, for bodies within a metre of the origin."""
FROZEN_PROJECTIONS, MOST_PROJECTIONS = 10, 20
"""Newton steps with the matrix of the step's start, and all of them."""


class MaximalSimulator:
    """Simulation of a robot in maximal coordinates, with joints as constraints.

    For teaching and comparison: `Simulator` has the same motion to O(h), without drift and in a
    fraction of the time. Limits of joints and actuators do not act here; contact does where a
    contact model is given.

    Args:
        robot: any tree of revolute, prismatic, spherical, planar and universal joints and free
            flyers; joints without friction, damping and rotor inertia.
        time_step: h [s].
        gravity: [m/s²], a number g for (0, 0, −g), or three numbers.
        stabilisation: `Projection()`, or `Baumgarte(alpha)`, whose 0 leaves the drift alone.
        plane: 'xy', 'xz' or 'yz': all bodies move in this plane and have three coordinates.
        solver: 'sparse', or 'dense' to compare.
        contact_model: 'ncp' or an Ncp; None: nothing touches the ground.
        terrain: as for `Simulator`.
        friction: Coulomb coefficient of all contacts [-].

    Raises:
        InvalidInput: a value outside its bounds; a robot with something that is missing here;
            another contact model, or contact in a plane.
        UnknownName: a plane, contact model or terrain that does not exist.
    """

    @checked
    def __init__(
        self,
        robot: RobotModel,
        time_step: float = 1e-3,
        gravity: float | ArrayLike = 9.81,
        stabilisation: Stabilisation | None = None,
        plane: str | None = None,
        solver: Literal['sparse', 'dense'] = 'sparse',
        contact_model: str | ContactModel | None = None,
        terrain: TerrainLike = 'plane',
        friction: float = 0.8,
    ) -> None:
        self.robot = of_type('robot', robot, RobotModel)
        self.time_step = positive('time_step', time_step, 's')
        self.gravity: Array = frozen(gravity_vector(gravity))
        self.stabilisation = Projection() if stabilisation is None else stabilisation
        if not isinstance(self.stabilisation, Projection | Baumgarte):
            raise InvalidInput(
                f'stabilisation = {shown(stabilisation)}: expected Projection or Baumgarte'
            )
        if not isinstance(solver, str) or solver not in ('sparse', 'dense'):
            raise InvalidInput(f"solver = {shown(solver)}: expected 'sparse' or 'dense'")
        self.mechanism = Mechanism(robot, plane)
        self.system = KktSystem(
            self.mechanism.rows, self.mechanism.coordinates, dense=solver == 'dense'
        )
        self._projects = isinstance(self.stabilisation, Projection)
        self._ground = None
        if contact_model is not None:
            law = as_contact_model(contact_model)
            if plane is not None or not isinstance(law, Ncp):
                raise InvalidInput(
                    f'contact_model = {shown(contact_model)}, plane = {plane}: in maximal '
                    "coordinates contact is that of 'ncp', and in space"
                )
            ground = as_terrain(terrain)
            if ground.regions:
                raise InvalidInput(
                    'terrain: friction and restitution of regions are left out in maximal '
                    'coordinates: take terrain.with_regions(())'
                )
            mu = number_within('friction', friction, np.inf)
            self._ground = GroundContacts(self.mechanism, ground, mu, law)
        self.reset()

    @checked
    def reset(
        self, q: ArrayLike | None = None, v: ArrayLike | None = None, time: float = 0.0
    ) -> None:
        """Start again from q (nq,), v (nv,) at `time` [s]; default: the reference pose at rest.

        Raises:
            InvalidInput: wrong sizes, values that are not finite, a quaternion that is not unit,
                bodies out of the plane.
        """
        start = self.robot.reference_configuration() if q is None else q
        velocity = np.zeros(self.robot.nv) if v is None else self.robot.checked_velocity(v)
        state = self.mechanism.bodies_at(self.robot.checked_configuration(start), velocity)
        self.time = finite('time', time)
        self._go_to(state)

    def _go_to(self, state: BodyState) -> None:
        self.state = state
        self._rows: PlacedRows = self.mechanism.rows.at(state)

    @property
    def q(self) -> Array:
        """Configuration in Pinocchio's convention, angles in (−π, π], shape (nq,)."""
        return self.mechanism.reduced(self.state)[0]

    @property
    def v(self) -> Array:
        """Velocity in Pinocchio's convention, shape (nv,)."""
        return self.mechanism.reduced(self.state)[1]

    @property
    def energy(self) -> float:
        """T + U of all bodies [J]; U = 0 with the centre of mass in the origin."""
        return self.mechanism.energy(self.state, self.gravity)

    def acceleration(self, effort: ArrayLike | None = None) -> tuple[Array, Array]:
        """Return accelerations of the bodies, (nb, 6), and multipliers of the rows, (m,), now.

        In flight; of the centres of mass [m/s²] and angular [rad/s²], such that ḧ = 0, or
        ḧ = −kd ḣ − kp h with Baumgarte's feedback.

        Args:
            effort: of the actuated joints [N m or N], shape (n_joints,); None: none.

        Raises:
            InvalidInput: efforts of another shape, or not finite; a singular system.
        """
        rows, v = self._rows, self.state.velocity
        right_side = rows.drift(v)
        if isinstance(self.stabilisation, Baumgarte):
            kp, kd = self.stabilisation.kp, self.stabilisation.kd
            right_side = right_side + kd * rows.rate(v) + kp * rows.error
        return self._solved(effort, right_side)

    def step(self, effort: ArrayLike | None = None) -> MaximalReport:
        """Advance by h; see `acceleration`.

        Semi-implicit: velocities by the accelerations at the start of the step, then positions by
        the new velocities. With Projection the new velocities satisfy J v⁺ = 0, and positions are
        projected afterwards.

        Raises:
            InvalidInput: efforts of another shape, or not finite; a singular system.
            NonFiniteState: the state stopped being finite.
        """
        h, state, before = self.time_step, self.state, self._rows
        if self._projects:
            acceleration, forces = self._solved(effort, before.rate(state.velocity) / h)
        else:
            acceleration, forces = self.acceleration(effort)
        contacts = None
        if self._ground is not None:
            free = state.velocity + h * acceleration
            contacts = self._ground.solve(state, self._blocks, free, h, self.system)
            acceleration, forces = acceleration + contacts.acceleration, forces + contacts.held
        velocity = state.velocity + h * acceleration
        moved = BodyState(state.position, state.rotation, velocity).moved(h * velocity)
        end = self._projected(moved) if self._projects else moved
        if not all(is_finite(x) for x in (end.position, end.rotation, velocity)):
            raise NonFiniteState(f'step from t = {self.time:g} s: not finite; reset to go on')
        self._go_to(end)
        self.time += h
        return MaximalReport(
            self.time, self.state, acceleration, forces, contacts, before, self._rows,
            self.mechanism, self.gravity,
        )  # fmt: skip

    def _solved(self, effort: ArrayLike | None, right_side: Array) -> tuple[Array, Array]:
        """Return accelerations and multipliers with J v̇ + `right_side` = 0."""
        self._blocks = self.mechanism.inertia_blocks(self.state)
        force = self.mechanism.forces(self.state, self._blocks, self.gravity)
        if effort is not None:
            effort = shaped('effort', effort, self.robot.n_joints)
            force += self.mechanism.drive(self.state, effort)
        self.system.factor(self._blocks, self._rows.jacobian)
        return self.system.solve(force, -right_side)

    def _projected(self, state: BodyState) -> BodyState:
        """Return the bodies moved onto h = 0; what is left after the last step is drift."""
        still = np.zeros((len(state.position), 6))
        enough = LARGEST_ERROR * max(1.0, float(np.abs(state.position).max()))
        for k in range(MOST_PROJECTIONS):
            rows = self.mechanism.rows.at(state)
            if np.abs(rows.error).max(initial=0.0) <= enough:
                break
            if k >= FROZEN_PROJECTIONS:  # bodies that have turned far
                self.system.factor(self.mechanism.inertia_blocks(state), rows.jacobian)
            state = state.moved(self.system.solve(still, -rows.error)[0])
        return state

    def __repr__(self) -> str:
        return summary(self, robot=self.robot.name, time=self.time, time_step=self.time_step)
