"""Arrays of one simulation, laid out once: what contact models work on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim.contact.problem import ContactProblem
from contact_sim.contact.record import MEMORY, Record, Sizes
from contact_sim.dynamics.terms import DynamicsTerms
from contact_sim.robot.model import RobotModel

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass
class ContactRows:
    """A contact problem in contiguous arrays; only the first `nc` contacts and `n` rows count.

    Fields are those of ContactProblem; `delassus` is flat, row by row, `impulse` is the guess and
    the answer, and `memory_next` what a model with a memory leaves for the next step.
    """

    nc: int
    n: int
    delassus: Array
    g: Array
    free_velocity: Array
    start_velocity: Array
    friction: Array
    gap: Array
    impulse: Array
    lower: Array
    upper: Array
    inverse_weight: Array
    memory: Array
    memory_next: Array
    time_step: float

    @classmethod
    def empty(cls, sizes: Sizes) -> ContactRows:
        """Return room for the largest problem of a simulation."""
        n, nc, ns = sizes.rows, sizes.nc, sizes.ns
        return cls(
            0, 0, np.zeros(n * n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(nc),
            np.zeros(nc), np.zeros(n), np.zeros(ns), np.zeros(ns), np.zeros(n),
            np.zeros((nc, MEMORY)), np.zeros((nc, MEMORY)), 0.0,
        )  # fmt: skip

    @classmethod
    def of(cls, problem: ContactProblem, guess: Array | None = None) -> ContactRows:
        """Return the rows of an explicit problem, starting from `guess` [N s] (default zero)."""
        impulse = np.zeros(problem.n_rows) if guess is None else np.array(guess, dtype=float)
        return cls(
            problem.n_contacts, problem.n_rows, problem.delassus.flatten(), problem.g,
            problem.free_velocity.copy(), problem.start_velocity.copy(), problem.friction.copy(),
            problem.gap.copy(), impulse, problem.lower.copy(), problem.upper.copy(),
            problem.inverse_weight.copy(), problem.memory.copy(), problem.memory.copy(),
            problem.time_step,
        )  # fmt: skip


@dataclass(frozen=True)
class Spheres:
    """Contact spheres of a robot as arrays."""

    joint: Indices
    """Pinocchio joint index of each sphere, shape (nc,)."""
    leaf_dof: Indices
    """Last dof of that joint, −1 on the world, shape (nc,)."""
    offset: Array
    """Centre in the joint frame [m], shape (nc, 3)."""
    radius: Array
    """Radius [m], shape (nc,)."""
    name: tuple[str, ...] = ()
    """Names of the contact points, length nc."""


def spheres_of(robot: RobotModel) -> Spheres:
    """Return the contact points of a robot as arrays."""
    model, points = robot.pinocchio_model, robot.contact_points
    joint = [model.getJointId(point.joint) for point in points]
    return Spheres(
        joint=np.array(joint, dtype=np.int64),
        leaf_dof=np.array([leaf_dof(model.joints[j]) for j in joint], dtype=np.int64),
        offset=np.array([point.offset for point in points], dtype=float).reshape(-1, 3),
        radius=np.array([point.radius for point in points], dtype=float),
        name=tuple(point.name for point in points),
    )


def leaf_dof(joint: object) -> int:
    """Return the last dof of a joint, −1 for the world."""
    return int(joint.idx_v + joint.nv - 1) if joint.nv else -1  # type: ignore[attr-defined]


def reference_inverse_weight(terms: DynamicsTerms, spheres: Spheres, dofs: Indices) -> Array:
    """Return how easily each row moves in the neutral configuration [1/kg], shape (3 nc + ns,).

    For a contact the mean of the diagonal of J M⁻¹ Jᵀ, J the velocity of the centre of mass of the
    body that carries it; for a scalar row the diagonal of M⁻¹ at its dof.
    """
    model = terms.model
    data = model.createData()
    q = pin.neutral(model)
    pin.computeJointJacobians(model, data, q)
    upper = np.triu(pin.crba(model, data, q))
    inverse = np.linalg.inv(upper + np.triu(upper, 1).T)
    values = []
    for joint in spheres.joint.tolist():
        centre = pin.SE3(np.eye(3), data.oMi[joint].act(model.inertias[joint].lever))
        world = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.WORLD)
        J = centre.toActionMatrixInverse()[:3] @ world
        values += 3 * [float(np.trace(J @ inverse @ J.T)) / 3.0]
    return np.array([*values, *np.diag(inverse)[dofs]])


class Workspace:
    """Record, scratch and constants of one simulation.

    Attributes:
        terms: Pinocchio's terms at the current configuration.
        record: what the step starts from and leaves behind.
        rows: the current contact problem.
        spheres: contact spheres.
        plane: unit normal and offset of the ground, shape (4,).
        damping: viscous joint damping [N m s/rad], shape (nv,).
        friction_dof: dof of every dry-friction row, shape (ns,).
        friction_effort: dry friction of these rows [N m], shape (ns,).
        restitution: e of every contact [-], shape (nc,).
        stabilisation: share β of a penetration taken out per step [-] and approach speed below
            which impacts are plastic [m/s], shape (2,).
        reach: (T, κ) of the law in force, see `delassus.within_reach`, and the margin: the gap
            within which every contact takes part [m], shape (3,).
        inverse_weight: mean diagonal of the Delassus matrix in the neutral configuration for every
            row of the record [1/kg], see `reference_inverse_weight`.
        factor: L with M̂ = Lᵀ L, shape (nv, nv).
        Y: L⁻ᵀ Jᵀ of the problem rows, shape (nv, n) in the front of a flat array.
        row_of: row of the record behind each problem row.
        increment: tangent vector of the step, shape (nv,).
        v_after: v_next in the axes after the step, shape (nv,).
    """

    def __init__(
        self,
        terms: DynamicsTerms,
        spheres: Spheres,
        damping: Array,
        joint_friction: Array,
        n_joints: int,
    ) -> None:
        nv = terms.model.nv
        self.terms = terms
        self.spheres = spheres
        self.damping = damping.copy()
        self.friction_dof = np.flatnonzero(joint_friction).astype(np.int64)
        self.friction_effort = joint_friction[self.friction_dof].copy()
        nc, ns = len(spheres.joint), len(self.friction_dof)
        self.sizes = Sizes(terms.model.nq, nv, n_joints, nc, ns)
        self.record = Record(self.sizes)
        self.rows = ContactRows.empty(self.sizes)
        self.plane = np.array([0.0, 0.0, 1.0, 0.0])
        self.restitution = np.zeros(nc)
        self.stabilisation = np.array([0.2, 0.05])
        self.reach = np.zeros(3)
        self.inverse_weight = reference_inverse_weight(terms, spheres, self.friction_dof)
        self.factor = np.zeros((nv, nv))
        self.Y = np.zeros(self.sizes.rows * nv)
        self.row_of = np.zeros(self.sizes.rows, dtype=np.int64)
        self.increment = np.zeros(nv)
        self.v_after = np.zeros(nv)
        for k, dof in enumerate(self.friction_dof):
            self.record.jacobian_transposed[dof, 3 * nc + k] = 1.0

    def set_time_step(self, h: float) -> None:
        """Use the time step h [s]; the boxes of dry friction scale with it."""
        self.record.time_step[0] = h
        self.rows.time_step = h
        self.record.upper[:] = h * self.friction_effort
        self.record.lower[:] = -self.record.upper
