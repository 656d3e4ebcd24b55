"""Algebra of a contact Jacobian, and geometry of its support: pure functions of arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from contact_sim._types import Array
from contact_sim._validation import checked, cholesky_factor, indices
from contact_sim.errors import InvalidInput

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
    """Return the singular values of a matrix (m, n), largest first; none for an empty one."""
    if 0 in matrix.shape:
        return np.zeros(0)
    return np.asarray(np.linalg.svd(matrix, compute_uv=False))


def counting(values: Array) -> NDArray[np.bool_]:
    """Return which singular values, largest first, count as different from zero."""
    return np.asarray(values > RANK_TOLERANCE * values.max(initial=0.0))


def rank(matrix: Array) -> int:
    """Return the rank of a matrix (m, n): singular values above RANK_TOLERANCE of the largest."""
    return int(np.count_nonzero(counting(singular_values(matrix))))


def conditioning(matrix: Array) -> float:
    """Return the ratio of the largest singular value to the smallest that counts; 1 if none."""
    values = singular_values(matrix)
    kept = values[counting(values)]
    return float(kept[0] / kept[-1]) if len(kept) else 1.0


@checked
def null_space_basis(matrix: Array) -> Array:
    """Return an orthonormal basis Z of null(J) of a matrix (m, n), shape (n, n − rank)."""
    if matrix.ndim != 2:
        raise InvalidInput(f'matrix: shape {matrix.shape}, expected (m, n)')
    columns = matrix.shape[1]
    if 0 in matrix.shape:
        return np.eye(columns)
    _, values, directions = np.linalg.svd(matrix)
    return np.asarray(directions[np.count_nonzero(counting(values)) :].T.copy())


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
        pivots = qr(basis.T, pivoting=True, mode='r')[-1] if freedom else np.zeros(0, np.intp)
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

    factor: Array
    """Factor L, lower triangle, shape (nv, nv)."""
    left: Array
    """U_r, shape (m, r)."""
    values: Array
    """Σ_r [1/√kg], shape (r,)."""
    right: Array
    """V_r, shape (nv, r)."""

    @classmethod
    def of(cls, inertia: Array, jacobian: Array) -> Weighted:
        """Return the decomposition for M (nv, nv) and J (m, nv)."""
        L = cholesky_factor('inertia', inertia)
        kept = rank(jacobian)
        if kept == 0:
            nv, m = len(inertia), len(jacobian)
            return cls(L, np.zeros((m, 0)), np.zeros(0), np.zeros((nv, 0)))
        scaled = solve_triangular(L, jacobian.T, lower=True).T
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
        return np.asarray(identity - solve_triangular(self.factor, rows, lower=True, trans='T'))

    def force(self, applied: Array, drift: Array) -> Array:
        """Return the least-norm f with J M⁻¹ (applied + Jᵀ f) = −drift, shape (m,)."""
        pushed = self.right.T @ solve_triangular(self.factor, applied, lower=True)
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


# --- Support polygons, and rigid motions of the base as lines in space

ON_LINE = 1e-9
"""Distance within which a point lies on a line, as a share of the distances involved."""
AXES = ('x', 'y', 'z')


@dataclass(frozen=True, eq=False)
class RigidMotion:
    """A rigid motion of the base: along a direction, or about a line (a screw if `pitch` ≠ 0)."""

    name: str
    """In words, e.g. 'rotation about the line LF_FOOT - RH_FOOT'."""
    twist: Array
    """Linear velocity of the base origin and angular velocity, world axes, unit length, (6,)."""
    direction: Array
    """Unit vector of the translation, or along the axis of the rotation, world, (3,)."""
    point: Array
    """Point of the axis nearest to the base origin [m], world, (3,); the origin if it turns not"""
    pitch: float
    """Translation along the axis per radian [m]; inf for a translation."""


def base_motion(twist: Array, origin: Array, landmarks: dict[str, Array]) -> RigidMotion:
    """Return the motion that a twist (6,) at `origin` (3,) is, named after landmarks on its axis.

    Args:
        twist: linear velocity of the origin, then angular velocity, world axes.
        origin: of the base [m], world.
        landmarks: points [m] by name, the feet.
    """
    unit = twist / np.linalg.norm(twist)
    linear, omega = unit[:3], unit[3:]
    speed = float(np.linalg.norm(omega))
    if speed <= ON_LINE:
        name = f'translation along {_direction_words(linear)}'
        return RigidMotion(name, unit, linear, origin, np.inf)
    axis = omega / speed
    point = origin + np.cross(omega, linear) / speed**2
    pitch = float(axis @ linear) / speed
    on_axis = [name for name, place in landmarks.items() if _on_line(place, point, axis)]
    kind = 'rotation' if abs(pitch) <= ON_LINE else f'screw of pitch {pitch:.4g} m'
    return RigidMotion(
        f'{kind} about {_line_words(on_axis, axis, point)}', unit, axis, point, pitch
    )


def named_motions(
    null_space: Array, origin: Array, landmarks: dict[str, Array]
) -> tuple[RigidMotion, ...]:
    """Return motions that span a space of twists (6, k), plain ones first.

    Translations along and rotations about the world axes, through the middle of the landmarks,
    are taken where they lie in the space; the rest of an orthonormal basis follows.
    """
    count = null_space.shape[1]
    arm = np.mean(list(landmarks.values()), axis=0) - origin if landmarks else np.zeros(3)
    plain = [np.concatenate([axis, np.zeros(3)]) for axis in np.eye(3)]
    plain += [np.concatenate([np.cross(arm, axis), axis]) for axis in np.eye(3)]
    chosen: list[Array] = []
    for twist in [*plain, *null_space.T]:
        inside = null_space @ (null_space.T @ twist)
        whole = np.linalg.norm(inside - twist) <= ON_LINE * np.linalg.norm(twist)
        if len(chosen) < count and whole and _new(twist, chosen):
            chosen.append(twist)
    return tuple(base_motion(twist, origin, landmarks) for twist in chosen)


def convex_hull(points: Array) -> NDArray[np.intp]:
    """Return the corners of the convex hull of points (n, 2) in the plane, counter-clockwise.

    Points inside, and on an edge between two others, are left out; two points make a line.
    """
    order = np.lexsort((points[:, 1], points[:, 0])).tolist()
    size = float(np.max(np.ptp(points, axis=0)))
    lower, upper = _chain(points, order, size), _chain(points, order[::-1], size)
    corners = lower[:-1] + upper[:-1] if len(order) > 1 else order
    return np.array(corners, dtype=np.intp)


def support_polygon(points: Array, normals: Array) -> Array:
    """Return the corners of the support polygon, counter-clockwise seen from above, (k, 3).

    Args:
        points: contact points of the standing feet [m], world, shape (n, 3).
        normals: of the ground, world; the first gives the plane of the polygon.
    """
    if len(points) == 0:
        return np.zeros((0, 3))
    normal = normals[0]
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    axes = np.stack([first, np.cross(normal, first)], axis=1)
    return np.asarray(points[convex_hull(points @ axes)])


def distance_inside(polygon: Array, point: Array) -> float:
    """Return how far a point (2,) lies inside a counter-clockwise polygon (n, 2).

    Negative outside. A polygon of one or two corners has no inside.
    """
    if len(polygon) == 0:
        return -np.inf
    start, edge = polygon, np.roll(polygon, -1, axis=0) - polygon
    length = np.linalg.norm(edge, axis=1)
    share = np.einsum('ij,ij->i', point - start, edge) / np.maximum(length, 1e-150) ** 2
    nearest = start + np.clip(share, 0.0, 1.0)[:, None] * edge
    distance = float(np.linalg.norm(point - nearest, axis=1).min())
    relative = point - start
    left = edge[:, 0] * relative[:, 1] - edge[:, 1] * relative[:, 0]
    return distance if len(polygon) > 2 and (left >= 0.0).all() else -distance


def _chain(points: Array, order: list[int], size: float) -> list[int]:
    chain: list[int] = []
    for i in order:
        while len(chain) > 1 and _turn(*points[[*chain[-2:], i]]) <= 1e-12 * size * size:
            chain.pop()
        if not chain or np.abs(points[i] - points[chain[-1]]).max() > 1e-12 * size:
            chain.append(i)
    return chain


def _turn(a: Array, b: Array, c: Array) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def _new(twist: Array, chosen: list[Array]) -> bool:
    if not chosen:
        return True
    matrix = np.array([t / np.linalg.norm(t) for t in [*chosen, twist]])
    return bool(np.linalg.svd(matrix, compute_uv=False)[-1] > 1e-6)


def _on_line(place: Array, point: Array, axis: Array) -> bool:
    reach = place - point
    far = max(1.0, float(np.linalg.norm(reach)))
    return bool(np.linalg.norm(np.cross(axis, reach)) <= 1e-7 * far)


def _direction_words(direction: Array) -> str:
    axis = int(np.argmax(np.abs(direction)))
    if abs(direction[axis]) >= 1.0 - ON_LINE:
        return AXES[axis]
    return '({:.4g}, {:.4g}, {:.4g})'.format(*direction)


def _line_words(on_axis: list[str], axis: Array, point: Array) -> str:
    if len(on_axis) > 1:
        return 'the line ' + ' - '.join(on_axis)
    if on_axis:
        return f'{_direction_words(axis)} through {on_axis[0]}'
    return _direction_words(axis) + ' through ({:.4g}, {:.4g}, {:.4g})'.format(*point)
