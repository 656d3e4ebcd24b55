"""Simulation in maximal coordinates: free bodies joined by constraint rows (theory 2.14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from contact_sim._types import Array
from contact_sim._validation import checked, finite, is_finite, number_within, positive, shaped
from contact_sim.collision._terrain import TerrainLike, as_terrain
from contact_sim.contact_models import as_contact_model
from contact_sim.contact_models._base import ContactModel
from contact_sim.contact_models._ncp import Ncp
from contact_sim.dynamics._rigid_body import gravity_vector
from contact_sim.errors import InvalidInput, NonFiniteState, of_type, shown
from contact_sim.maximal._mechanism import BodyState, Mechanism, PlacedRows
from contact_sim.maximal._system import ContactForces, GroundContacts, KktSystem
from contact_sim.robot._constraints import Baumgarte, Projection, Stabilisation
from contact_sim.robot._coordinates import frozen
from contact_sim.robot._model import RobotModel

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
        """Largest |h|: how far joints are apart [m], and cosines of angles that are right."""
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


# --- The simulator

LARGEST_ERROR = 1e-13
"""|h| [m, −] up to which positions are projected, for bodies within a metre of the origin."""
FROZEN_PROJECTIONS, MOST_PROJECTIONS = 10, 20
"""Newton steps with the matrix of the step's start, and all of them."""


class MaximalSimulator:
    """A robot whose bodies have all their coordinates, with joints as constraints.

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
        self._ground = (
            None
            if contact_model is None
            else self._ground_contacts(contact_model, terrain, friction)
        )
        self.reset()

    def _ground_contacts(
        self, contact_model: str | ContactModel, terrain: TerrainLike, friction: float
    ) -> GroundContacts:
        law, plane = as_contact_model(contact_model), self.mechanism.plane
        if plane is not None or not isinstance(law, Ncp):
            raise InvalidInput(
                f'contact_model = {shown(contact_model)}, plane = {plane}: in maximal coordinates '
                "contact is that of 'ncp', and in space"
            )
        ground = as_terrain(terrain)
        if ground.regions:
            raise InvalidInput(
                'terrain: friction and restitution of regions are left out in maximal '
                'coordinates: take terrain.with_regions(())'
            )
        mu = number_within('friction', friction, np.inf)
        return GroundContacts(self.mechanism, ground, mu, law)

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
            contacts = self._ground.solve(state, self._blocks, free, h, self._response)
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

    def _response(self, force: Array) -> tuple[Array, Array]:
        """Return the accelerations and multipliers of forces (..., nb, 6) alone."""
        return self.system.solve(force, np.zeros((*force.shape[:-2], len(self._rows.error))))

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
