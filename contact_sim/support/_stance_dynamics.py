"""A robot with some of its feet held by the ground.

    M(q) v̇ + h(q, v) = Sᵀ τ + Jᵀ f,   J v = 0,   J v̇ = −J̇ v          (theory E2, E3, E8, E10)

f is the force on the robot [N]; the source's F_c = −f is exerted by the robot. Everything else in
this room is algebra on the matrices collected here. Viscous damping, dry friction and springs of
joints are not part of h: they belong to the efforts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import ArrayLike, NDArray

from contact_sim._types import Array, Indices
from contact_sim._validation import (
    checked,
    checked_fields,
    cholesky_factor,
    finite_array,
    indices,
    shaped,
)
from contact_sim.collision._detection import candidates_of, contact_rows, detect
from contact_sim.collision._detection import contact_drift as fill_drift
from contact_sim.collision._surface import Ground
from contact_sim.collision._terrain import Terrain, TerrainLike, addresses_of, as_terrain
from contact_sim.dynamics._rigid_body import gravity_vector
from contact_sim.errors import InvalidInput, UnknownName, one_line, shown
from contact_sim.robot._contact_points import contact_point_indices
from contact_sim.robot._coordinates import checked_vector
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of

# --- Ranks, null spaces and projectors of a contact Jacobian
#
# With M = L Lᵀ and J L⁻ᵀ = U Σ Vᵀ (r singular values that count):
#
#     (J M⁻¹ Jᵀ)⁺ = U_r Σ_r⁻² U_rᵀ,   N_c = I − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J = I − L⁻ᵀ V_r V_rᵀ Lᵀ
#
# so that nothing is squared and redundant rows are no special case (theory E4, E5, E10).

RANK_TOLERANCE = 1e-8
"""Singular values below this share of the largest count as zero."""


def singular_values(matrix: Array) -> Array:
    """Return the singular values of a matrix (m, n) that count as not zero, largest first."""
    if 0 in matrix.shape:
        return np.zeros(0)
    values = np.linalg.svd(matrix, compute_uv=False)
    return np.asarray(values[values > RANK_TOLERANCE * values.max()])


def rank(matrix: Array) -> int:
    """Return the rank of a matrix (m, n): how many singular values count."""
    return len(singular_values(matrix))


def conditioning(matrix: Array) -> float:
    """Return the ratio of the largest singular value to the smallest that counts; 1 if none."""
    values = singular_values(matrix)
    return float(values[0] / values[-1]) if len(values) else 1.0


@checked
def null_space_basis(matrix: Array) -> Array:
    """Return an orthonormal basis Z of null(J) of a matrix (m, n), shape (n, n − rank)."""
    if matrix.ndim != 2:
        raise InvalidInput(f'matrix: shape {matrix.shape}, expected (m, n)')
    columns = matrix.shape[1]
    if 0 in matrix.shape:
        return np.eye(columns)
    _, values, directions = np.linalg.svd(matrix)
    count = np.count_nonzero(values > RANK_TOLERANCE * values.max())
    return np.asarray(directions[count:].T.copy())


@checked
def minimal_coordinates(
    jacobian: Array, independent: NDArray[np.intp] | None = None
) -> tuple[Array, NDArray[np.intp]]:
    """Return Q_ξ = ∂q/∂ξ with J Q_ξ = 0 and the coordinates that ξ are; theory E13.

    Args:
        jacobian: J, shape (m, nv).
        independent: coordinates taken as ξ, shape (nv − rank,); None: those that leave the others
            best determined, by pivoted QR.

    Returns:
        Q_ξ, shape (nv, nv − rank), with Q_ξ[independent] = I; and `independent`.

    Raises:
        InvalidInput: coordinates that do not determine the others.
    """
    basis = null_space_basis(jacobian)
    freedom = basis.shape[1]
    if independent is None:
        pivots = (
            scipy.linalg.qr(basis.T, pivoting=True, mode='r')[-1]
            if freedom
            else np.zeros(0, np.intp)
        )
        independent = np.sort(np.asarray(pivots[:freedom], dtype=np.intp))
    chosen = indices('independent', independent, len(basis))
    if chosen.shape != (freedom,) or rank(basis[chosen]) < freedom:
        raise InvalidInput(
            f'independent = {chosen.tolist()}: these coordinates do not determine the others; '
            f'{freedom} are needed'
        )
    return np.asarray(basis @ np.linalg.inv(basis[chosen])), chosen


@dataclass(frozen=True, eq=False)
class Weighted:
    """The singular value decomposition of J L⁻ᵀ, M = L Lᵀ."""

    factor: Array  # L, lower triangle, shape (nv, nv)
    left: Array  # U_r, shape (m, r)
    values: Array  # Σ_r [1/√kg], shape (r,)
    right: Array  # V_r, shape (nv, r)

    @classmethod
    def of(cls, inertia: Array, jacobian: Array) -> Weighted:
        """Return the decomposition for M (nv, nv) and J (m, nv)."""
        L = cholesky_factor('inertia', inertia)
        kept = rank(jacobian)
        if kept == 0:
            nv, m = len(inertia), len(jacobian)
            return cls(L, np.zeros((m, 0)), np.zeros(0), np.zeros((nv, 0)))
        scaled = scipy.linalg.solve_triangular(L, jacobian.T, lower=True).T
        U, values, Vt = np.linalg.svd(scaled, full_matrices=False)
        return cls(L, U[:, :kept], values[:kept], Vt[:kept].T)

    @property
    def delassus_inverse(self) -> Array:
        """(J M⁻¹ Jᵀ)⁺ [kg], the end-effector inertia Λ of E12, shape (m, m)."""
        scaled = self.left / self.values
        return np.asarray(scaled @ scaled.T)

    @property
    def projector(self) -> Array:
        """N_c, shape (nv, nv)."""
        identity, rows = np.eye(len(self.factor)), self.right @ (self.right.T @ self.factor.T)
        return np.asarray(
            identity - scipy.linalg.solve_triangular(self.factor, rows, lower=True, trans='T')
        )

    def force(self, applied: Array, drift: Array) -> Array:
        """Return the least-norm f with J M⁻¹ (applied + Jᵀ f) = −drift, shape (m,)."""
        pushed = self.right.T @ scipy.linalg.solve_triangular(self.factor, applied, lower=True)
        modal = pushed + (self.left.T @ drift) / self.values
        return np.asarray(-self.left @ (modal / self.values))


@checked
def null_space_projector(inertia: Array, jacobian: Array) -> Array:
    """Return N_c = I − M⁻¹ Jᵀ (J M⁻¹ Jᵀ)⁺ J for M (nv, nv), J (m, nv); theory E4, E10.

    J N_c = 0, N_c² = N_c, and N_c is orthogonal in the metric M: M N_c = N_cᵀ M.

    Raises:
        InvalidInput: sizes that do not fit, an inertia that is not positive definite.
    """
    if jacobian.ndim != 2 or inertia.shape != (jacobian.shape[1],) * 2:
        raise InvalidInput(
            f'inertia {inertia.shape}, jacobian {jacobian.shape}: expected (nv, nv), (m, nv)'
        )
    return Weighted.of(inertia, jacobian).projector


# --- Feet in contact, and directions of their contact frames

DIRECTIONS = ('t1', 't2', 'n')
"""Rows of a contact frame, in the order of the contact Jacobian."""


def foot_indices(robot: RobotModel, active: Iterable[str | int]) -> tuple[int, ...]:
    """Return the indices into `robot.contact_points` of names or indices of feet or of points."""
    if isinstance(active, str) or not isinstance(active, Iterable):
        raise InvalidInput(
            f'active = {shown(active)}: expected a list of names or indices of feet'
        )
    points, indices = robot.contact_points, list[int]()
    for foot in active:
        if isinstance(foot, str):
            indices += contact_point_indices('foot', foot, robot.feet, points)
        elif not hasattr(foot, '__index__') or isinstance(foot, bool):
            raise InvalidInput(
                f'active: {shown(foot)} is neither the name nor the index of a foot'
            )
        elif not 0 <= int(foot.__index__()) < len(points):
            raise UnknownName('index of a foot', int(foot.__index__()), range(len(points)))
        else:
            indices.append(int(foot.__index__()))
    if len(set(indices)) < len(indices):
        names = [point.name for point in points]
        twice = sorted({names[i] for i in indices if indices.count(i) > 1})
        raise InvalidInput(f'active: foot {", ".join(twice)} is listed more than once')
    return tuple(indices)


def held_rows(directions: Sequence[str], feet: Iterable[int]) -> list[int]:
    """Return the rows (t1, t2, n per contact point) that `directions` holds of `feet`."""
    known = () if isinstance(directions, str) else set(directions) & set(DIRECTIONS)
    if not known or len(known) < len(directions):
        raise InvalidInput(
            f'directions = {shown(directions)}: expected some of {DIRECTIONS}, each once'
        )
    rows = [DIRECTIONS.index(direction) for direction in directions]
    return [3 * foot + row for foot in feet for row in rows]


# --- The matrices of a stance


@checked_fields
@dataclass(frozen=True, eq=False)
class StanceDynamics:
    """The matrices of a robot on held feet; m held rows, in the order of `feet`."""

    feet: tuple[str, ...]
    """Names of the feet."""
    inertia: Array
    """M with armature [kg, kg m²], shape (nv, nv)."""
    nonlinear_effects: Array
    """h = b + g, Coriolis, centrifugal and gravity force [N, N m], shape (nv,)."""
    selection_matrix: Array
    """Selection matrix S (n_joints, nv): joint velocities = S v, generalized force = Sᵀ τ."""
    contact_jacobian: Array
    """Contact Jacobian J (m, nv): velocities of the contact points in contact frames = J v."""
    drift: Array
    """J̇ v: their acceleration where v̇ = 0 [m/s²], shape (m,)."""
    velocity: Array
    """v [m/s, rad/s], shape (nv,)."""
    base_dofs: NDArray[np.intp]
    """Coordinates of the base: six of a free flyer; without one, those no joint drives."""
    position: Array
    """Contact points in world [m], shape (feet, 3)."""
    frame: Array
    """Rows t1, t2, n of their frames in world, shape (feet, 3, 3)."""

    def __post_init__(self) -> None:
        nv, m, feet = len(self.inertia), len(self.contact_jacobian), len(self.feet)
        shapes = {
            'inertia': (nv, nv), 'nonlinear_effects': (nv,), 'contact_jacobian': (m, nv),
            'selection_matrix': (len(self.selection_matrix), nv), 'drift': (m,),
            'velocity': (nv,), 'position': (feet, 3), 'frame': (feet, 3, 3),
        }  # fmt: skip
        for name, shape in shapes.items():
            shaped(f'StanceDynamics.{name}', getattr(self, name), *shape)
        cholesky_factor('StanceDynamics.inertia', self.inertia)
        object.__setattr__(
            self, 'base_dofs', indices('StanceDynamics.base_dofs', self.base_dofs, nv)
        )


@checked
def stance_dynamics(
    robot: RobotModel,
    q: ArrayLike,
    v: ArrayLike | None,
    active: Iterable[str | int],
    directions: Sequence[str] = DIRECTIONS,
    terrain: TerrainLike = 'plane',
    gravity: float | ArrayLike = 9.81,
) -> StanceDynamics:
    """Return the matrices of `robot` at q (nq,), v (nv,; None: at rest) on the feet `active`.

    Contact points and frames are those of the simulation: the points of the
    spheres nearest to the ground. A foot counts as held wherever it is, on the ground or not, and
    by the nearest feature of a ground that has several.

    Args:
        robot: any robot, with a floating or a fixed base.
        q: configuration.
        v: velocity.
        active: names or indices of the feet in contact.
        directions: which rows of each contact frame are held.
        terrain: the ground, which gives the contact frames.
        gravity: [m/s²], a number g for (0, 0, −g), or three numbers.

    Raises:
        UnknownName: a foot or terrain that does not exist.
        InvalidInput: wrong sizes, values that are not finite, a foot listed twice.
    """
    feet = foot_indices(robot, active)
    held = held_rows(directions, feet)
    q = robot.checked_configuration(q)
    v = np.zeros(robot.nv) if v is None else robot.checked_velocity(v)
    model = robot.pinocchio_model.copy()
    model.gravity.linear = gravity_vector(gravity)  # type: ignore[arg-type]
    data = data_of(model)
    upper = np.triu(pin.crba(model, data, q, pin.Convention.WORLD))
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    jacobian, drift, position, frame = _contacts(robot, model, data, as_terrain(terrain))
    return StanceDynamics(
        feet=tuple(robot.contact_points[i].name for i in feet),
        inertia=upper + np.triu(upper, 1).T,
        nonlinear_effects=np.array(pin.nonLinearEffects(model, data, q, v)).reshape(model.nv),
        selection_matrix=robot.selection_matrix,
        contact_jacobian=jacobian[held],
        drift=drift[held],
        velocity=v,
        base_dofs=unforced_dofs(robot),
        position=position[list(feet)],
        frame=frame[list(feet)],
    )


def unforced_dofs(robot: RobotModel) -> Indices:
    """Return the dofs of a floating base; of a fixed one what no joint drives (theory E8).

    That is a cart, if the motor is at its pendulum.
    """
    if robot.floating_base:
        return np.arange(6)
    return np.setdiff1d(np.arange(robot.nv), robot.joint_velocity_index)


@checked
def contact_jacobian(
    robot: RobotModel,
    q: ArrayLike,
    active: Iterable[str | int],
    directions: Sequence[str] = DIRECTIONS,
    terrain: TerrainLike = 'plane',
) -> Array:
    """Return J, rows (t1, t2, n) per foot of `active`, shape (m, nv); theory E2, E3.

    Raises:
        UnknownName, InvalidInput: as `stance_dynamics`.
    """
    return stance_dynamics(robot, q, None, active, directions, terrain).contact_jacobian


@checked
def contact_drift(
    robot: RobotModel,
    q: ArrayLike,
    v: ArrayLike,
    active: Iterable[str | int],
    directions: Sequence[str] = DIRECTIONS,
    terrain: TerrainLike = 'plane',
) -> Array:
    """Return J̇ v [m/s²], shape (m,); theory E3.

    Raises:
        UnknownName, InvalidInput: as `stance_dynamics`.
    """
    return stance_dynamics(robot, q, v, active, directions, terrain).drift


def require_feet(stance: StanceDynamics, purpose: str) -> None:
    """Raise InvalidInput where no foot stands."""
    if not stance.feet:
        raise InvalidInput(f'{purpose}: needs at least one foot in contact, the support is empty')


def _contacts(
    robot: RobotModel, model: pin.Model, data: pin.Data, terrain: Terrain
) -> tuple[Array, Array, Array, Array]:
    """Return J, J̇ v, positions and frames of all contact points; `data` has v̇ = 0."""
    spheres, slots = candidates_of(robot), terrain.features * len(robot.contact_points)
    candidates = spheres.joint, spheres.offset, spheres.radius
    pose = np.array([[*M.rotation.flatten('F'), *M.translation] for M in data.oMi])
    position, frame, gap = np.zeros((slots, 3)), np.zeros((slots, 3, 3)), np.zeros(slots)
    feature, drift = np.zeros(slots), np.zeros(3 * slots)
    ground = Ground(
        terrain.kind, terrain.data, terrain.relief, *addresses_of(terrain.kind)[:2],
        terrain.features, 0,
    )  # fmt: skip
    detect(ground, pose, *candidates, position, frame, gap, feature)
    parent = np.array(list(data.parents_fromRow)[: model.nv], dtype=np.int64)
    columns, origin = np.array(data.J.T).reshape(model.nv, 6), np.zeros(3)
    transposed = np.zeros((model.nv, 3 * slots))
    held = np.repeat(spheres.leaf_dof, terrain.features), feature
    contact_rows(columns, origin, held, parent, position, frame, np.zeros(slots), transposed)
    twist, rate = (
        np.array([M.act(m).vector for M, m in zip(data.oMi, motions, strict=True)])
        for motions in (data.v, data.a)
    )
    fill_drift(candidates, (twist, rate, origin), ground, pose, feature, frame, np.zeros(3), drift)
    slot = terrain.features * np.arange(len(spheres.joint))
    slot += gap.reshape(-1, terrain.features).argmin(axis=1)  # the nearest feature holds the foot
    rows = (3 * slot[:, None] + np.arange(3)).ravel()
    return transposed.T[rows], drift[rows], position[slot], frame[slot]


# --- Acceleration and contact forces, in three equivalent forms (theory E10, E13)
#
# Forces act on the robot [N]; the source's F_c is their negative. Redundant rows (a box on four
# corners, solo8) leave the forces undetermined: the least norm is returned, the motion is unique.


@checked
def free_acceleration(stance: StanceDynamics, generalized_force: Array) -> Array:
    """Return v̇ = M⁻¹ (Sᵀτ − h), as if no foot were held, shape (nv,).

    Raises:
        InvalidInput: forces of another shape.
    """
    applied = _applied(stance, generalized_force)
    factor = cholesky_factor('StanceDynamics.inertia', stance.inertia)
    return np.asarray(scipy.linalg.cho_solve((factor, True), applied))


@checked
def constraint_force(stance: StanceDynamics, generalized_force: Array) -> Array:
    """Return the force of the ground on the robot, shape (m,); theory E10.

    f = −(J M⁻¹ Jᵀ)⁺ (J M⁻¹ (Sᵀτ − h) + J̇ v), rows as in `stance.contact_jacobian`.

    Args:
        stance: a robot on at least one foot.
        generalized_force: Sᵀτ, see `support.generalized_force`, shape (nv,).

    Raises:
        InvalidInput: no foot is held.
    """
    require_feet(stance, 'constraint_force')
    applied = _applied(stance, generalized_force)
    return Weighted.of(stance.inertia, stance.contact_jacobian).force(applied, stance.drift)


@checked
def acceleration(stance: StanceDynamics, generalized_force: Array) -> Array:
    """Return v̇ of the KKT system M v̇ − Jᵀf = Sᵀτ − h, J v̇ = −J̇ v, shape (nv,); 2.5.

    Raises:
        InvalidInput: forces of another shape, numbers too large to be reckoned with.
    """
    M, J = stance.inertia, stance.contact_jacobian
    m = len(J)
    kkt = np.block([[M, -J.T], [J, np.zeros((m, m))]])
    right = np.concatenate([_applied(stance, generalized_force), -stance.drift])
    # rows and columns in like units, so that the cut-off of the least squares means something
    scale = np.concatenate([1.0 / np.sqrt(np.diag(M)), np.ones(m)])
    scaled = kkt * scale[:, None] * scale
    try:
        solution = np.linalg.lstsq(scaled, scale * right, rcond=1e-13)[0]
    except np.linalg.LinAlgError as error:
        raise InvalidInput(f'StanceDynamics: {error}; expected inertias of one order') from error
    return np.asarray(scale * solution)[: len(M)]


@checked
def projected_acceleration(stance: StanceDynamics, generalized_force: Array) -> Array:
    """Return v̇ from the support-consistent dynamics, shape (nv,); theory E10.

    N_cᵀ M v̇ = N_cᵀ (Sᵀτ − h) is singular (rank nv − rank J): it is completed with J v̇ = −J̇ v,
    and both are solved together.
    """
    M, J = stance.inertia, stance.contact_jacobian
    weighted = Weighted.of(M, J)
    Nt = weighted.projector.T
    # in the metric of M: x = Lᵀ v̇, the projector rows scaled by L⁻¹, the rows of J orthonormal
    L = weighted.factor
    top = np.linalg.solve(L, Nt @ M @ np.linalg.inv(L).T)
    right = np.linalg.solve(L, Nt @ _applied(stance, generalized_force))
    drift = (weighted.left.T @ stance.drift) / weighted.values
    system = np.vstack([top, weighted.right.T])
    x = np.linalg.lstsq(system, np.concatenate([right, -drift]), rcond=None)[0]
    return np.asarray(np.linalg.solve(L.T, x))


@checked
def minimal_acceleration(
    stance: StanceDynamics, generalized_force: Array, independent: NDArray[np.intp] | None = None
) -> tuple[Array, Array]:
    """Return (v̇, ξ̈) from minimal coordinates ξ; theory E13.

    v̇ = Q ξ̈ + Q̇ ξ̇ with Qᵀ M Q ξ̈ + Qᵀ (h + M Q̇ ξ̇) = Qᵀ Sᵀτ. J Q = 0 for all time gives
    J Q̇ ξ̇ = −J̇ v, and Q̇ = 0 in the rows of ξ itself: that determines Q̇ ξ̇.

    Args:
        stance: the robot.
        generalized_force: Sᵀτ, shape (nv,).
        independent: coordinates taken as ξ, see `minimal_coordinates`.
    """
    M, J = stance.inertia, stance.contact_jacobian
    Q, chosen = minimal_coordinates(J, independent)
    rest = np.setdiff1d(np.arange(len(M)), chosen)
    transport = np.zeros(len(M))
    transport[rest] = np.linalg.lstsq(J[:, rest], -stance.drift, rcond=1e-10)[0]
    applied = _applied(stance, generalized_force) - M @ transport
    xi = np.linalg.solve(Q.T @ M @ Q, Q.T @ applied)
    return np.asarray(Q @ xi + transport), np.asarray(xi)


@checked
def consistent_acceleration(stance: StanceDynamics, wanted: Array) -> Array:
    """Return the v̇ nearest to `wanted` (nv,) in the metric M with J v̇ = −J̇ v; theory E4."""
    wanted = shaped('wanted', wanted, len(stance.inertia))
    weighted = Weighted.of(stance.inertia, stance.contact_jacobian)
    pull = weighted.force(stance.inertia @ wanted, stance.drift)
    change = np.linalg.solve(stance.inertia, stance.contact_jacobian.T @ pull)
    return np.asarray(wanted + change)


@checked
def consistent_velocity(stance: StanceDynamics) -> Array:
    """Return N_c v, the velocity nearest to v in the metric M that moves no held foot; E4."""
    projector = Weighted.of(stance.inertia, stance.contact_jacobian).projector
    return np.asarray(projector @ stance.velocity)


def _applied(stance: StanceDynamics, generalized_force: Array) -> Array:
    """Return Sᵀτ − h, shape (nv,)."""
    size = len(stance.inertia)
    return shaped('generalized_force', generalized_force, size) - stance.nonlinear_effects


# --- Inverse dynamics, and torques that change forces but not motion
#
#     Sᵀ τ + Jᵀ f = M v̇ + h                                             (theory E8, E10, E14)
#
# The rows that no joint drives (the base) fix the wrench of the feet; the joints follow. A torque
# in null(N_cᵀ Sᵀ) is answered by the ground alone: it changes f, not v̇.


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Efforts and forces that give an acceleration."""

    effort: Array
    """τ of the actuated joints [N m or N], shape (n_joints,)."""
    force: Array
    """f on the robot [N], rows as in `stance.contact_jacobian`, shape (m,)."""
    residual: Array
    """Residual M v̇ + h − Sᵀτ − Jᵀf, zero in the driven rows [N, N m], shape (nv,)."""

    __repr__ = one_line


@checked
def inverse_dynamics(
    stance: StanceDynamics, acceleration: ArrayLike, force: ArrayLike | None = None
) -> InverseDynamics:
    """Return the efforts for v̇ = `acceleration` (nv,).

    The robot gets this acceleration if J v̇ = −J̇ v (`consistent_acceleration`) and `residual`
    is zero: what no joint drives and the feet cannot hold, the line between two feet say, cannot
    be chosen.

    Args:
        stance: the robot.
        acceleration: v̇, shape (nv,).
        force: f of the feet [N], shape (m,); None: of those that carry the base, the least norm.

    Raises:
        InvalidInput: a wrong length or a value that is not finite.
    """
    S, J = stance.selection_matrix, stance.contact_jacobian
    v_dot = checked_vector('acceleration', acceleration, len(stance.inertia))
    needed = stance.inertia @ v_dot + stance.nonlinear_effects
    if force is None:
        free = np.flatnonzero(~S.any(axis=0))  # what no joint drives
        f = np.linalg.pinv(J[:, free].T, rcond=1e-10) @ needed[free]
    else:
        f = checked_vector('force', force, len(J))
    rest = needed - J.T @ f
    effort = S @ rest
    return InverseDynamics(effort, np.asarray(f), np.asarray(rest - S.T @ effort))


@checked
def effort_null_space(stance: StanceDynamics) -> Array:
    """Return an orthonormal basis of null(N_cᵀ Sᵀ), shape (n_joints, k); theory E11.

    Efforts along it change the contact forces and leave v̇ alone. Its dimension is that of the
    internal forces that the joints can make.
    """
    Z = null_space_basis(stance.contact_jacobian)
    return null_space_basis(Z.T @ stance.selection_matrix.T)


@checked
def force_of_effort(stance: StanceDynamics, effort: ArrayLike) -> Array:
    """Return the change of f from an additional effort (n_joints,), shape (m,); least norm.

    Raises:
        InvalidInput: no foot is held, a wrong length, or a value that is not finite.
    """
    require_feet(stance, 'force_of_effort')
    tau = checked_vector('effort', effort, len(stance.selection_matrix))
    weighted = Weighted.of(stance.inertia, stance.contact_jacobian)
    return weighted.force(stance.selection_matrix.T @ tau, np.zeros(len(stance.drift)))


# --- Impulse transfer when feet touch down and stay (theory E12)
#
#     Λ = (J M⁻¹ Jᵀ)⁺,   𝓕 = −Λ J v⁻,   v⁺ = v⁻ + M⁻¹ Jᵀ 𝓕 = N_c v⁻
#
# 𝓕 acts on the robot; the source's impulse Λ J v⁻ is exerted by the robot.


@dataclass(frozen=True, eq=False)
class ImpulseTransfer:
    """A plastic impact of all held rows at once."""

    impulse: Array
    """𝓕 on the robot [N s], rows as in `stance.contact_jacobian`, shape (m,)."""
    velocity: Array
    """v⁺ [m/s, rad/s], shape (nv,)."""
    end_effector_inertia: Array
    """Λ [kg], shape (m, m)."""
    energy_change: float
    """T(v⁺) − T(v⁻) [J], at most 0."""
    energy_change_by_velocity: float
    """The same as −½ Δvᵀ M Δv [J]."""
    energy_change_by_contact: float
    """The same as −½ ṙ⁻ᵀ Λ ṙ⁻ with ṙ⁻ = J v⁻ [J]."""

    __repr__ = one_line


@checked
def impulse_transfer(stance: StanceDynamics) -> ImpulseTransfer:
    """Return the plastic impact that stops the held rows, with v⁻ = `stance.velocity`.

    Redundant rows share the impulse with least norm.

    Raises:
        InvalidInput: no foot is held.
    """
    require_feet(stance, 'impulse_transfer')
    M, J, before = stance.inertia, stance.contact_jacobian, stance.velocity
    weighted = Weighted.of(M, J)
    impulse = weighted.force(M @ before, np.zeros(len(J)))
    after = weighted.projector @ before
    change, approach = after - before, J @ before
    Lambda = weighted.delassus_inverse
    return ImpulseTransfer(
        impulse=impulse,
        velocity=after,
        end_effector_inertia=Lambda,
        energy_change=float(0.5 * (after @ M @ after - before @ M @ before)),
        energy_change_by_velocity=float(-0.5 * change @ M @ change),
        energy_change_by_contact=float(-0.5 * approach @ Lambda @ approach),
    )


# --- Base and joint rows of the equation of motion (theory E14)
#
#     [M_bb M_bj; M_jb M_jj] (v̇_b; v̇_j) + (h_b; h_j) = (0; τ) + (J_bᵀ; J_jᵀ) f
#
# The base rows are Newton's and Euler's equations of the whole robot.


@dataclass(frozen=True, eq=False)
class Partition:
    """Blocks of the equation of motion; b base, j all other coordinates."""

    base_dofs: NDArray[np.intp]
    """Coordinates of the base, shape (n_b,)."""
    joint_dofs: NDArray[np.intp]
    """All others, shape (nv − n_b,)."""
    inertia_bb: Array
    """M_bb, shape (n_b, n_b)."""
    inertia_bj: Array
    """M_bj, shape (n_b, nv − n_b)."""
    inertia_jj: Array
    """M_jj, shape (nv − n_b, nv − n_b)."""
    nonlinear_effects_b: Array
    """h_b [N, N m], shape (n_b,)."""
    nonlinear_effects_j: Array
    """h_j [N m], shape (nv − n_b,)."""
    contact_jacobian_b: Array
    """J_b, shape (m, n_b)."""
    contact_jacobian_j: Array
    """J_j, shape (m, nv − n_b)."""

    def base_residual(self, acceleration: ArrayLike, force: ArrayLike) -> Array:
        """Return M_bb v̇_b + M_bj v̇_j + h_b − J_bᵀ f [N, N m], zero in every motion, (n_b,).

        Args:
            acceleration: v̇, shape (nv,).
            force: f on the robot [N], shape (m,).

        Raises:
            InvalidInput: a wrong length or a value that is not finite.
        """
        size = len(self.base_dofs) + len(self.joint_dofs)
        v_dot = checked_vector('acceleration', acceleration, size)
        f = checked_vector('force', force, len(self.contact_jacobian_b))
        finite_array('acceleration', v_dot), finite_array('force', f)  # their products, too
        inertial = self.inertia_bb @ v_dot[self.base_dofs]
        inertial += self.inertia_bj @ v_dot[self.joint_dofs]
        return np.asarray(inertial + self.nonlinear_effects_b - self.contact_jacobian_b.T @ f)

    __repr__ = one_line


@checked
def split_base(stance: StanceDynamics) -> Partition:
    """Return the base and joint blocks of a stance.

    Raises:
        InvalidInput: a robot that has neither a floating base nor a coordinate without a drive.
    """
    b = stance.base_dofs
    if not len(b):
        raise InvalidInput('split_base: every coordinate is driven, there is no base')
    j = np.setdiff1d(np.arange(len(stance.inertia)), b)
    M, h, J = stance.inertia, stance.nonlinear_effects, stance.contact_jacobian
    return Partition(
        base_dofs=b,
        joint_dofs=j,
        inertia_bb=M[np.ix_(b, b)],
        inertia_bj=M[np.ix_(b, j)],
        inertia_jj=M[np.ix_(j, j)],
        nonlinear_effects_b=h[b],
        nonlinear_effects_j=h[j],
        contact_jacobian_b=J[:, b],
        contact_jacobian_j=J[:, j],
    )
