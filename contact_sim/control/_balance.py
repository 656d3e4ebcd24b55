"""Balance controller: a robot on the soles of its feet keeps standing, also when it is pushed.

Each call solves one quadratic program in the accelerations ẇ of base and joints and the forces f
at the corners of the soles, with equations of motion as in `_inverse_dynamics`,

    minimise  ½ W_c |Σ f/(m g) − (c̈* − g)/g|²          centre of mass
            + ½ W_L |Σ (p − c) × f/(m g z) − L̇*/(m g z)|²   angular momentum about it
            + ½ Σ W_k (z/g)² (ẇ_k − ẇ*_k)²             attitude of the base, posture
            + ½ ρ |f/(m g)|²                           which shares the load
    such that M_u ẇ + h_u = J_uᵀ f                     rows that no motor drives
              J ẇ + J̇ w = −k v                         soles stay where they are
              |f_x|, |f_y| ≤ μ f_z / √2,  f_z ≥ f_min  contacts push and stick
              |τ| ≤ τ_max                              efforts
              q_min ≤ q + q̇ Δ + q̈ Δ²/2 ≤ q_max         joint positions

The centre of mass follows the divergent component of motion ξ = c + ċ/ω, ω = √(g/z), which no
later force can bring back once it has left the support polygon [Englsberger et al. 2015]: a centre
of pressure at ξ + (k/ω) (ξ − c*) brings it to c* at the rate k,

    c̈* = −(ω + k) ċ − ω k (c − c*).

Where the centre of pressure is at the edge of the soles, the angular momentum helps: W_L is much
smaller than W_c, so that trunk and arms turn for a while. The robot takes no steps.

[Englsberger et al. 2015] Three-dimensional bipedal walking control based on divergent component
of motion. IEEE Transactions on Robotics 31, 355-368.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import scipy
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import (
    LARGEST,
    checked,
    checked_fields,
    closed_attributes,
    number_within,
    positive,
)
from contact_sim.control._inverse_dynamics import (
    ACCURACY,
    BASE,
    STILL,
    UNBOUNDED,
    Answer,
    LeggedDynamics,
    passive_springs,
    symmetric,
)
from contact_sim.control._stance import rotation_vector, turned, yaw_of
from contact_sim.errors import InvalidInput, of_type, one_line, summary
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._standing_pose import (
    STANDING,
    lowest_heights,
    polygon_centre,
    polygon_margin,
)
from contact_sim.robot._trees import data_of
from contact_sim.solvers._dense import (
    cholesky,
    cholesky_solve,
    dot,
    nearest_point,
    split_normal,
)
from contact_sim.solvers._jit import kernel

# --- The corners of the soles

ON_GROUND = 1e-3
"""Height up to which a contact point stands [m]."""
MOST_CORNERS = 6
"""Contact points per foot in the program: those that span the largest area."""
LEAST_SUPPORT = 2e-3
"""Least radius of a circle inside the support polygon [m]; what is narrower is a line."""


def standing_points(robot: RobotModel, pose: str) -> tuple[ContactPoint, ...]:
    """Return the contact points on the ground in a pose, of each body the corners of their hull.

    Raises:
        UnknownName: a pose that the robot does not have.
    """
    points, q = robot.contact_points, robot.reference_configuration(pose)
    low = lowest_heights(robot.pinocchio_model, points, q)
    down = [p for p, z in zip(points, low, strict=True) if z < low.min() + ON_GROUND]
    joints = dict.fromkeys(p.joint for p in down)
    chosen: list[ContactPoint] = []
    for joint in joints:
        of_foot = [p for p in down if p.joint == joint]
        chosen += [of_foot[k] for k in _corners(places_of(robot, of_foot, q)[:, :2])]
    return tuple(chosen)


def places_of(
    robot: RobotModel, points: list[ContactPoint] | tuple[ContactPoint, ...], q: Array
) -> Array:
    """Return where the lowest points of contact spheres are at q (nq,) [m], shape (n, 3)."""
    model = robot.pinocchio_model
    data = data_of(model)
    pin.forwardKinematics(model, data, q)
    centres = [data.oMi[model.getJointId(p.joint)].act(p.offset) for p in points]
    lowest: Array = np.array(centres) - np.outer([p.radius for p in points], [0.0, 0.0, 1.0])
    return lowest


def _corners(places: Array) -> list[int]:
    """Return at most MOST_CORNERS of points (n, 2), in turn, whose hull has much of the area."""
    if polygon_margin(places, places.mean(axis=0)) < 1e-6:  # a point, or points on a line
        along = places - places.mean(axis=0)
        way = along @ np.linalg.svd(along)[2][0]
        return sorted({int(np.argmin(way)), int(np.argmax(way))})
    corners = [int(k) for k in scipy.spatial.ConvexHull(places).vertices]
    while len(corners) > MOST_CORNERS:
        hull = places[corners]
        before, after = np.roll(hull, 1, axis=0) - hull, np.roll(hull, -1, axis=0) - hull
        lost = np.abs(before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0])
        del corners[int(np.argmin(lost))]
    return corners


LIGHT = 1e-4
"""Inertia of a free passive motion, over that of the robot as a whole, that is neglected."""


def cannot_balance(robot: RobotModel, pose: str = STANDING) -> str:
    """Return why no controller can keep a robot standing in a pose without steps, or ''.

    The reasons are those of its structure; whether it is strong enough is another matter.

    Raises:
        UnknownName: a pose that the robot does not have.
    """
    if not of_type('robot', robot, RobotModel).floating_base:
        return 'its base is fixed: there is nothing to balance'
    if not robot.contact_points:
        return 'it has no contact points: nothing touches the ground'
    if not robot.n_joints:
        return 'no joint is driven'
    if len(robot.loops):
        q = robot.reference_configuration(pose)
        free = robot.loops.free_motions(q, robot.joint_velocity_index, passive_springs(robot))
        if free is None:
            return 'closed loops hold some of its driven joints'
        M = symmetric(pin.crba(robot.pinocchio_model, data_of(robot.pinocchio_model), q))
        heaviest = np.einsum('ik,ij,jk->k', free, M, free).max(initial=0.0)
        if heaviest > LIGHT * M[3:6, 3:6].diagonal().min():
            return 'joints in closed loops do not follow the driven joints'
    points = standing_points(robot, pose)
    places = places_of(robot, points, robot.reference_configuration(pose))[:, :2]
    inside = polygon_margin(places, polygon_centre(places)) if _has_area(places) else 0.0
    if inside < LEAST_SUPPORT:
        some = '1 contact point is' if len(points) == 1 else f'{len(points)} contact points are'
        return (
            f'in pose {pose!r} {some} on the ground and enclose no area: it stands on points or a '
            'line, and has to step'
        )
    return ''


def _has_area(places: Array) -> bool:
    return polygon_margin(places, places.mean(axis=0)) > 0.0


@dataclass(frozen=True, eq=False)
class Footing:
    """How far the centre of pressure can be from the middle of the soles, in a pose at rest.

    Distances [m] forward, back, left and right of the heading, shape (4,). A push that changes the
    speed of the centre of mass by v is too much for a robot that neither steps nor swings its body
    where v > ω d, with d the distance in its direction.
    """

    edge: Array
    """To the edge of the support polygon."""
    reach: Array
    """The same with efforts within their limits, 0: not at all; at most as far as `edge`.

    Negative where the centre of pressure cannot be in the middle.
    """
    carries: bool
    """Whether efforts within their limits carry the robot in its pose, at rest."""
    omega: float
    """ω = √(g/z) with z the height of the centre of mass over the soles [1/s]."""

    __repr__ = one_line


HEADINGS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
"""Forward, back, left and right."""


def polygon_reach(places: Array, place: Array, ways: Array) -> Array:
    """Return how far a place (2,) in the hull of points (n, 2) is from its edge along ways."""
    faces = scipy.spatial.ConvexHull(places).equations
    towards, gap = faces[:, :2] @ ways.T, -(faces[:, :2] @ place + faces[:, 2])
    along = np.where(towards > 1e-12, gap[:, None] / np.maximum(towards, 1e-12), np.inf)
    return np.asarray(along.min(axis=0))


# --- Gains and weights


@checked_fields
@dataclass(frozen=True)
class BalanceTuning:
    """Gains and weights of `Balance`, without units: rates are over ω = √(g/z).

    z is the height of the centre of mass in the pose.
    """

    rate: float = 1.0
    """k: how fast the divergent component returns, over ω."""
    height_rate: float = 2.0
    """Of the height of the centre of mass, critically damped, over ω."""
    attitude_rate: float = 2.0
    """Of the attitude of the base, critically damped, over ω."""
    posture_rate: float = 2.0
    """Of the joints, critically damped, over ω."""
    momentum_rate: float = 2.0
    """Of the decay of the angular momentum, over ω."""
    foot_rate: float = 10.0
    """Of the decay of the speed of the soles, over ω."""
    centre: float = 1000.0
    """W_c: weight of the centre of mass."""
    momentum: float = 1.0
    """W_L: weight of the angular momentum."""
    attitude: float = 1.0
    """Weight of the attitude of the base."""
    posture: float = 0.01
    """Weight of each joint."""
    load: float = 1e-3
    """ρ: weight of the forces."""
    smallest_force: float = 0.02
    """f_min over the mean share of the weight of a contact point."""

    def __post_init__(self) -> None:
        for field in fields(self):
            number_within(f'BalanceTuning.{field.name}', getattr(self, field.name), LARGEST)
        for name in ('centre', 'attitude', 'posture', 'load'):
            positive(f'BalanceTuning.{name}', getattr(self, name), '')
        if self.smallest_force >= 1.0:
            raise InvalidInput(
                f'BalanceTuning.smallest_force = {self.smallest_force}: expected less than 1'
            )


SPRUNG = BalanceTuning(
    height_rate=0.8, attitude_rate=0.8, posture_rate=0.8, momentum_rate=0.8, foot_rate=4.0
)
"""For legs with passive springs, which are taken as rigid: slower than they swing."""

# --- The controller

GRAVITY = 9.81
FREE = 1e-4
"""Weight of accelerations that follow from others, such as that of the base's origin."""
PREVIEW = 0.1
"""Δ: time in which no joint may reach its limit [s]."""
HARDEST_STOP = 5.0
"""Largest acceleration away from a joint limit, over g/z."""


@closed_attributes(friction='give it to Balance(robot, friction=...)')
class Balance:
    """Whole-body inverse dynamics that keep a robot standing on its soles.

    The first call, and every call with a time before the last one, decides about the heading. The
    centre of mass is kept above the middle of the soles, wherever these are.

    Args:
        robot: with a floating base, on contact points that enclose an area. Joints that are not
            driven are free, or follow driven ones.
        pose: name of the reference pose whose joints, attitude and height are kept.
        friction: μ that it assumes [-].
        tuning: gains and weights; None: `BalanceTuning()`, slower on legs with springs (SPRUNG).

    Raises:
        InvalidInput: a robot that no controller can balance without steps; says why.
        UnknownName: a pose that the robot does not have.
    """

    tuning: BalanceTuning
    """Gains and weights."""
    pose: str
    """Name of the pose that is kept."""
    points: tuple[ContactPoint, ...]
    """Contact points at which the ground is expected to push: corners of the soles."""
    dynamics: LeggedDynamics
    """Of the robot on these points."""

    def __init__(
        self,
        robot: RobotModel,
        pose: str = STANDING,
        friction: float = 0.5,
        tuning: BalanceTuning | None = None,
    ) -> None:
        of_type('robot', robot, RobotModel)
        usual = SPRUNG if passive_springs(robot) else BalanceTuning()
        self.tuning = t = of_type('tuning', tuning or usual, BalanceTuning)
        self.pose = of_type('pose', pose, str)
        why = cannot_balance(robot, pose)
        if why:
            raise InvalidInput(f'balance of robot {robot.name}: {why}')
        self.points = standing_points(robot, pose)
        self.dynamics = d = LeggedDynamics(robot, self.points)
        q = robot.reference_configuration(pose)
        d.update(q, np.zeros(robot.nv))
        self._share = shares_of_centre(d.foot[:, :2])
        feet = [p.joint for p in self.points]
        order = list(dict.fromkeys(feet))
        self._foot_of_point = np.array([order.index(joint) for joint in feet])
        self._height = z = float(d.centre_of_mass[2] - self._share @ d.foot[:, 2])
        if not z > 0.0:
            raise InvalidInput(
                f'balance of robot {robot.name}: in pose {pose!r} the centre of mass is '
                f'{-z:.3g} m below its soles'
            )
        self._attitude = turned(-yaw_of(d.rotation)) @ d.rotation
        self._joints = robot.joint_positions(q)
        self._omega = omega = float(np.sqrt(GRAVITY / z))
        n = len(d.w)
        # all columns of w but the base and the driven joints are passive
        self._driven = (
            np.arange(6, n) if len(robot.loops) else np.array(robot.joint_velocity_index)
        )
        weights = np.full(n, FREE / omega**4)
        weights[:3] = FREE / GRAVITY**2
        weights[3:6] = t.attitude / omega**4
        weights[self._driven] = t.posture / omega**4
        damping, dry = robot.joint_damping.copy(), robot.joint_friction.copy()
        if len(robot.loops):  # the rest is in the terms of the dynamics
            damping, dry = (
                np.concatenate([np.zeros(6), part[robot.joint_velocity_index]])
                for part in (damping, dry)
            )
        damping[BASE], dry[BASE] = 0.0, 0.0
        self._undriven = undriven = np.setdiff1d(np.arange(n), self._driven)
        low, high, limited = _limits(robot)
        self._limit = np.minimum(robot.effort_limit, 1e6)
        self._range = low, high
        self._constants = Constants(
            robot.total_mass, z, omega, positive('friction', friction, '') / np.sqrt(2.0),
            t.smallest_force / len(self.points), t.centre, t.momentum, t.load,
            1.0 / np.sqrt(weights), np.array([damping, dry]), self._driven, undriven, limited,
            self._limit, self._foot_of_point,
        )  # fmt: skip
        self._last, self._yaw = np.nan, 0.0
        self.answer(0.0, q, np.zeros(robot.nv))  # compiles kernels where that is still to be done
        self._last = np.nan

    def effort(self, time: float, q: Array, v: Array) -> Array:
        """Return the joint efforts [N m] for the state q (nq,), v (nv,) at `time` [s]."""
        return self.answer(time, q, v).effort

    @checked
    def answer(self, time: float, q: Array, v: Array) -> Answer:
        """Return efforts, forces at `points` and acceleration for the state at `time` [s].

        `solved` is False where no forces in the cones keep all limits of efforts and positions;
        then the answer keeps the cones, and efforts are cut at their limits.
        """
        d, t = self.dynamics, self.tuning
        d.update(q, v)
        if not time >= self._last:
            self._yaw = yaw_of(d.rotation)
        self._last = time
        omega = self._omega
        # momentum of the whole robot, from the rows of the base
        inertia = symmetric(d.upper_inertia)
        momentum = inertia[:6] @ d.w
        linear = d.rotation @ momentum[:3]
        lever = d.centre_of_mass - d.q[:3]
        angular = d.rotation @ momentum[3:] - np.cross(lever, linear)
        # the centre of mass, to the middle of the soles at the height of the pose
        middle = self._share @ d.foot
        off = d.centre_of_mass - middle - [0.0, 0.0, self._height]
        speed = linear / d.robot.total_mass
        k, up = t.rate * omega, t.height_rate * omega
        centre = -(omega + k) * speed - omega * k * off
        centre[2] = -2.0 * up * speed[2] - up**2 * off[2]
        # accelerations that the rest should have
        wanted = np.zeros(len(d.w))
        wanted[:3] = d.rotation.T @ centre - np.cross(v[3:6], v[:3])
        turn = rotation_vector(d.rotation.T @ turned(self._yaw) @ self._attitude)
        turning = t.attitude_rate * omega
        wanted[3:6] = turning**2 * np.array(turn) - 2.0 * turning * v[3:6]
        position, rate = d.robot.joint_positions(d.q), d.robot.joint_velocities(d.v)
        error = self._joints - position
        error = np.where(d.robot.continuous_joints, (error + np.pi) % (2.0 * np.pi) - np.pi, error)
        posture = t.posture_rate * omega
        wanted[self._driven] = posture**2 * error - 2.0 * posture * rate
        low, high = stopping(*self._range, position, rate, HARDEST_STOP * omega**2)
        effort, force, acceleration, solved = balance(
            inertia, d.nonlinear_effects, d.jacobian, d.drift, d.w, d.foot, d.foot_velocity,
            d.centre_of_mass, centre, -t.momentum_rate * omega * angular, wanted,
            t.foot_rate * omega, low, high, self._constants,
        )  # fmt: skip
        return Answer(effort, force, d.acceleration(acceleration), solved)

    def footing(self) -> Footing:
        """Return how far the centre of pressure can move in the pose; takes some 50 ms."""
        d, robot = self.dynamics, self.dynamics.robot
        d.update(robot.reference_configuration(self.pose), np.zeros(robot.nv))
        ways = HEADINGS @ turned(yaw_of(d.rotation))[:2, :2].T
        middle = self._share @ d.foot
        edge = polygon_reach(d.foot[:, :2], middle[:2], ways)
        limits = self._limits_of_forces()
        farthest = [self._pressure(way, middle[:2], *limits) for way in ways]
        return Footing(edge, np.array(farthest), self._carries(*limits), self._omega)

    def _limits_of_forces(self) -> tuple[Array, Array, Array]:
        """Return rows (M, −m g Jᵀ) of x = (ẇ, f/(m g)), and C, top: cones, efforts C x ≤ top."""
        d, driven = self.dynamics, self._driven
        side, least = self._constants.side, self._constants.least_force
        weight, n = self._constants.mass * GRAVITY, len(d.foot)
        rows = np.hstack([symmetric(d.upper_inertia), -weight * d.jacobian.T])
        cone = [[1.0, 0, -side], [-1, 0, -side], [0, 1, -side], [0, -1, -side], [0, 0, -1.0]]
        cones = np.hstack([np.zeros((5 * n, len(d.w))), np.kron(np.eye(n), cone)])
        efforts, still = rows[driven] / weight, d.nonlinear_effects[driven] / weight
        bound = self._limit / weight
        top = [np.tile([0.0, 0.0, 0.0, 0.0, -least], n), bound - still, bound + still]
        return rows, np.vstack([cones, efforts, -efforts]), np.concatenate(top)

    def _carries(self, rows: Array, C: Array, top: Array) -> bool:
        """Return whether there are forces under which the dynamics stay at rest."""
        u, n = self._undriven, len(self.dynamics.w)
        found = scipy.optimize.linprog(
            np.zeros(C.shape[1] - n), C[:, n:], top, rows[u, n:],
            -self.dynamics.nonlinear_effects[u], bounds=(None, None), method='highs',
        )  # fmt: skip
        return bool(found.status == 0)

    def _pressure(self, way: Array, middle: Array, rows: Array, C: Array, top: Array) -> float:
        """Return how far from `middle` along `way` the centre of pressure can be, 0: not at all.

        With accelerations that keep soles, height and angular momentum as they are.
        """
        d, u = self.dynamics, self._undriven
        n_w, n_f = len(d.w), len(d.drift)
        moment = np.hstack([pin.skew(place - d.centre_of_mass) for place in d.foot])
        lift = np.tile([0.0, 0.0, 1.0], len(d.foot))
        away = np.kron((d.foot[:, :2] - middle) @ way, [0.0, 0.0, 1.0])
        across = np.kron((d.foot[:, :2] - middle) @ [-way[1], way[0]], [0.0, 0.0, 1.0])
        equations = np.vstack([
            rows[u], np.hstack([d.jacobian, np.zeros((n_f, n_f))]),
            np.hstack([np.zeros((5, n_w)), np.vstack([moment, lift, across])]),
        ])  # fmt: skip
        right = np.concatenate([-d.nonlinear_effects[u], -d.drift, [0.0, 0.0, 0.0, 1.0, 0.0]])
        # HiGHS needs columns of like size, light fingers move fast, and rows that are independent
        size = np.linalg.norm(np.vstack([equations, C]), axis=0)
        cost = np.concatenate([np.zeros(n_w), -away]) / size
        found = scipy.optimize.linprog(
            cost, C / size, top, *orthonormal(equations / size, right), bounds=(None, None),
            method='highs',
        )  # fmt: skip
        return float(-found.fun) if found.status == 0 else 0.0

    def __repr__(self) -> str:
        return summary(self, robot=self.dynamics.robot.name, pose=self.pose)


def shares_of_centre(places: Array) -> Array:
    """Return shares (n,) with which points (n, 2) have the middle of their hull as their mean."""
    n, middle = len(places), polygon_centre(places)
    rows = np.vstack([places.T - middle[:, None], np.ones(n)])
    even = np.full(n, 1.0 / n)
    return np.asarray(even + np.linalg.pinv(rows) @ ([0.0, 0.0, 1.0] - rows @ even))


def _limits(robot: RobotModel) -> tuple[Array, Array, NDArray[np.intp]]:
    """Return lower and upper limits of the limited joints, and which of the driven they are."""
    low, high = robot.lower_position_limit, robot.upper_position_limit
    limited = np.flatnonzero((low > -1e6) & (high < 1e6) & (low < high))
    return low, high, limited


def stopping(
    low: Array, high: Array, position: Array, speed: Array, most: float
) -> tuple[Array, Array]:
    """Return the accelerations between which joints stay in their range for PREVIEW, (n_joints,).

    At most `most` [rad/s²] away from a limit.
    """
    reached = position + PREVIEW * speed
    scale = 2.0 / PREVIEW**2
    return np.minimum(scale * (low - reached), most), np.maximum(scale * (high - reached), -most)


# --- The program
#
# Unknowns are y with ẇ = ẇ* + y_w/√W and f/(m g) = f* + L⁻ᵀ y_f, where L Lᵀ is the Hessian of all
# that depends on f, and f* its minimum: the cost is ½ |y|². The equations become orthonormal rows
# Q y = c by Gram and Schmidt; rows that follow from those before are left out. In what remains
# free, the nearest point of a polyhedron is searched.


class Constants(NamedTuple):
    """What does not change from call to call."""

    mass: float
    height: float
    """z [m]."""
    omega: float
    side: float
    """μ/√2."""
    least_force: float
    """f_min over m g."""
    centre: float
    """W_c."""
    momentum: float
    """W_L."""
    load: float
    """ρ."""
    scale: Array
    """1/√W, shape (n_w,)."""
    friction: Array
    """Damping and dry friction of all columns of w, shape (2, n_w)."""
    driven: NDArray[np.intp]
    """Columns of the driven joints, shape (n_joints,)."""
    undriven: NDArray[np.intp]
    """All others."""
    limited: NDArray[np.intp]
    """Which of the driven joints have limits of position."""
    limit: Array
    """τ_max, shape (n_joints,)."""
    foot_of_point: NDArray[np.intp]
    """Number of the foot of each point, shape (n_points,)."""


DEPENDENT = 1e-8
"""Remainder over length, up to which a row follows from the rows before it [-]."""


@kernel
def balance(
    M,
    h,
    J,
    drift,
    w,
    points,
    speeds,
    centre,
    wanted_centre,
    wanted_momentum,
    wanted,
    foot_rate,
    low,
    high,
    constants,
):
    """Return τ (n_joints,), forces (n_points, 3), ẇ (n_w,), and whether all limits hold.

    M (n_w, n_w), h (n_w,), J (3 n_points, n_w), drift (3 n_points,) and w (n_w,) are those of the
    dynamics; `points` (n_points, 3) and their `speeds`; `centre` (3,) of mass; c̈*, L̇* and ẇ* are
    wanted; joint accelerations stay between `low` and `high` (n_joints,).
    """
    scale, n_w, n_f = constants.scale, w.shape[0], J.shape[0]
    inverse, best = cost_of_forces(points, centre, wanted_centre, wanted_momentum, constants)
    x = np.empty(n_w + n_f)  # x*, the minimum of the cost
    for k in range(n_w):
        x[k] = wanted[k]
    for k in range(n_f):
        x[n_w + k] = best[k]
    E, b = equations(M, h, J, drift, w, points, speeds, foot_rate, constants)
    T, t = efforts_of(M, h, J, w, constants)
    G, lower, upper = inequalities(T, t, low, high, points.shape[0], constants)
    # from x to y: x = x* + S y
    for i in range(b.shape[0]):
        b[i] -= dot(E[i], x)
    for i in range(lower.shape[0]):
        shift = dot(G[i], x)
        lower[i] -= shift
        upper[i] -= shift
    in_y(E, scale, inverse)
    in_y(G, scale, inverse)
    y, solved = nearest(E, b, G, lower, upper, 5 * points.shape[0], t.shape[0])
    # the answer
    weight, limit = constants.mass * GRAVITY, constants.limit
    acceleration, force = np.empty(n_w), np.empty((points.shape[0], 3))
    for k in range(n_w):
        x[k] += scale[k] * y[k]
        acceleration[k] = x[k]
    for k in range(n_f):
        for e in range(k, n_f):
            x[n_w + k] += inverse[e, k] * y[n_w + e]
        force[k // 3, k % 3] = weight * x[n_w + k]
    torque = np.empty(t.shape[0])
    for i in range(t.shape[0]):
        torque[i] = min(max(dot(T[i], x) + t[i], -limit[i]), limit[i])
    return torque, force, acceleration, solved


@kernel
def cost_of_forces(points, centre, wanted_centre, wanted_momentum, constants):
    """Return L⁻¹ (n_f, n_f) and the minimum f* (n_f,) of the cost that depends on the forces."""
    mass, z, W_c, W_L, load = (
        constants.mass,
        constants.height,
        constants.centre,
        constants.momentum,
        constants.load,
    )
    n_f = 3 * points.shape[0]
    # force and moment about the centre of mass over m g and m g z
    wrench, target = np.zeros((6, n_f)), np.empty(6)
    for i in range(points.shape[0]):
        c = 3 * i
        for r in range(3):
            wrench[r, c + r] = 1.0
            s, u = (r + 1) % 3, (r + 2) % 3  # (a × f)_r = a_s f_u − a_u f_s
            wrench[3 + r, c + u] = (points[i, s] - centre[s]) / z
            wrench[3 + r, c + s] = (centre[u] - points[i, u]) / z
    for r in range(3):
        target[r] = wanted_centre[r] / GRAVITY
        target[3 + r] = wanted_momentum[r] / (mass * GRAVITY * z)
    target[2] += 1.0
    H, best = np.zeros((n_f, n_f)), np.zeros(n_f)
    for r in range(6):
        W = W_c if r < 3 else W_L
        for a in range(n_f):
            best[a] += W * wrench[r, a] * target[r]
            for e in range(n_f):
                H[a, e] += W * wrench[r, a] * wrench[r, e]
    L, inverse = np.zeros((n_f, n_f)), np.eye(n_f)
    cholesky(H, load, L)
    for k in range(n_f):  # L⁻¹, by columns
        for a in range(k, n_f):
            total = inverse[a, k]
            for e in range(k, a):
                total -= L[a, e] * inverse[e, k]
            inverse[a, k] = total / L[a, a]
    cholesky_solve(L, best)
    return inverse, best


@kernel
def equations(M, h, J, drift, w, points, speeds, foot_rate, constants):
    """Return E x = b: rows that no motor drives, and the feet that stay."""
    weight, friction = constants.mass * GRAVITY, constants.friction
    undriven, foot_of_point = constants.undriven, constants.foot_of_point
    n_w, n_f, n_u = w.shape[0], J.shape[0], undriven.shape[0]
    n_feet = foot_of_point[points.shape[0] - 1] + 1
    E, b = np.zeros((n_u + 6 * n_feet, n_w + n_f)), np.zeros(n_u + 6 * n_feet)
    for i in range(n_u):
        u = undriven[i]
        b[i] = -h[u] - friction[0, u] * w[u] - friction[1, u] * np.tanh(w[u] / STILL)
        for k in range(n_w):
            E[i, k] = M[u, k]
        for k in range(n_f):
            E[i, n_w + k] = -weight * J[k, u]
    feet_rows(E, b, n_u, J, drift, points, speeds, foot_rate, foot_of_point, n_feet)
    return E, b


@kernel
def efforts_of(M, h, J, w, constants):
    """Return the efforts of the driven joints as T x + t."""
    weight, friction, driven = constants.mass * GRAVITY, constants.friction, constants.driven
    n_w, n_f, n_d = w.shape[0], J.shape[0], driven.shape[0]
    T, t = np.empty((n_d, n_w + n_f)), np.empty(n_d)
    for i in range(n_d):
        j = driven[i]
        t[i] = h[j] + friction[0, j] * w[j] + friction[1, j] * np.tanh(w[j] / STILL)
        for k in range(n_w):
            T[i, k] = M[j, k]
        for k in range(n_f):
            T[i, n_w + k] = -weight * J[k, j]
    return T, t


@kernel
def inequalities(T, t, low, high, n_points, constants):
    """Return lower ≤ G x ≤ upper: cones, then efforts, then accelerations of limited joints."""
    mass, z, omega = constants.mass, constants.height, constants.omega
    side, least = constants.side, constants.least_force
    driven, limited, limit = constants.driven, constants.limited, constants.limit
    n_d, n = T.shape
    unit, n_w = mass * GRAVITY * z, n - 3 * n_points
    m = 5 * n_points + n_d + limited.shape[0]
    G, lower, upper = np.zeros((m, n)), np.full(m, -UNBOUNDED), np.full(m, UNBOUNDED)
    for i in range(n_points):
        c = n_w + 3 * i
        for r in range(4):
            G[5 * i + r, c + r // 2] = 1.0 if r % 2 else -1.0
            G[5 * i + r, c + 2] = -side
            upper[5 * i + r] = 0.0
        G[5 * i + 4, c + 2] = -1.0
        upper[5 * i + 4] = -least
    for i in range(n_d):
        row = 5 * n_points + i
        for k in range(n):
            G[row, k] = T[i, k] / unit
        lower[row], upper[row] = (-limit[i] - t[i]) / unit, (limit[i] - t[i]) / unit
    for i in range(limited.shape[0]):
        row, j = 5 * n_points + n_d + i, limited[i]
        G[row, driven[j]] = 1.0 / omega**2
        lower[row], upper[row] = low[j] / omega**2, high[j] / omega**2
    return G, lower, upper


@kernel
def nearest(E, b, G, lower, upper, n_cones, n_efforts):
    """Return the y (n,) of least length with E y = b and the limits, and whether it keeps all.

    Where the limits contradict each other it does without those of positions, then without those
    of efforts.
    """
    # solutions of the equations: y = Qᵀ c, and what is orthogonal to Q
    Q, right = orthonormal(E, b)
    for i in range(lower.shape[0]):
        shift = remove_parts(Q, right, G[i])
        lower[i] -= shift
        upper[i] -= shift
    n, m = E.shape[1], lower.shape[0]
    solved, y = False, np.zeros(n)
    for rows in (m, n_cones + n_efforts, n_cones):
        for k in range(n):
            y[k] = 0.0
        if nearest_point(G[:rows], lower[:rows], upper[:rows], ACCURACY, y):
            solved = rows == m
            break
    for i in range(right.shape[0]):
        for k in range(n):
            y[k] += right[i] * Q[i, k]
    return y, solved


@kernel
def feet_rows(E, b, first, J, drift, points, speeds, foot_rate, foot_of_point, n_feet):
    """Fill the rows from `first` on: the points of each foot are braked, as a rigid body.

    Of each foot the mean of its points, and their moment about it.
    """
    n_w = J.shape[1]
    for foot in range(n_feet):
        middle, arm, count, row = np.zeros(3), np.empty(3), 0, first + 6 * foot
        for i in range(points.shape[0]):
            if foot_of_point[i] == foot:
                count += 1
                for r in range(3):
                    middle[r] += points[i, r]
        for i in range(points.shape[0]):
            if foot_of_point[i] != foot:
                continue
            for r in range(3):
                arm[r] = points[i, r] - middle[r] / count
            for r in range(3):
                s, u = (r + 1) % 3, (r + 2) % 3  # (a × p)_r = a_s p_u − a_u p_s
                b[row + r] -= (foot_rate * speeds[i, r] + drift[3 * i + r]) / count
                b[row + 3 + r] -= arm[s] * (foot_rate * speeds[i, u] + drift[3 * i + u])
                b[row + 3 + r] += arm[u] * (foot_rate * speeds[i, s] + drift[3 * i + s])
                for k in range(n_w):
                    E[row + r, k] += J[3 * i + r, k] / count
                    E[row + 3 + r, k] += arm[s] * J[3 * i + u, k] - arm[u] * J[3 * i + s, k]


@kernel
def in_y(rows, scale, inverse):
    """Overwrite rows (m, n) in x by those in y; `inverse` is L⁻¹."""
    n_w, n_f = scale.shape[0], inverse.shape[0]
    for i in range(rows.shape[0]):
        for k in range(n_w):
            rows[i, k] *= scale[k]
        # r L⁻ᵀ from the last on: entry k needs those before it
        for k in range(n_f - 1, -1, -1):
            total = 0.0
            for e in range(k + 1):
                total += rows[i, n_w + e] * inverse[k, e]
            rows[i, n_w + k] = total


@kernel
def remove_parts(Q, c, row):
    """Take the parts along orthonormal rows Q (k, n) out of a row (n,); return their c (k,)."""
    # four sums at once: fast, and with the same bits on any number of threads, unlike BLAS
    n, total = row.shape[0], 0.0
    for j in range(Q.shape[0]):
        a0, a1, a2, a3, k = 0.0, 0.0, 0.0, 0.0, 0
        while k + 3 < n:
            a0 += Q[j, k] * row[k]
            a1 += Q[j, k + 1] * row[k + 1]
            a2 += Q[j, k + 2] * row[k + 2]
            a3 += Q[j, k + 3] * row[k + 3]
            k += 4
        while k < n:
            a0 += Q[j, k] * row[k]
            k += 1
        part = (a0 + a1) + (a2 + a3)
        total += part * c[j]
        for k in range(n):
            row[k] -= part * Q[j, k]
    return total


@kernel
def orthonormal(E, b):
    """Return orthonormal rows Q (k, n) and c (k,) with the same solutions: E y = b ⇔ Q y = c."""
    m, n = E.shape
    Q, c, share, k = np.empty((m, n)), np.empty(m), np.empty(n), 0
    for i in range(m):
        size = np.sqrt(dot(E[i], E[i]))
        if size == 0.0:
            continue
        left = split_normal(Q, k, E[i], 1.0, share, Q[k])
        if left <= DEPENDENT * size:
            continue
        right = b[i]
        for j in range(k):
            right -= share[j] * c[j]
        c[k] = right / left
        for j in range(n):
            Q[k, j] /= left
        k += 1
    return Q[:k], c[:k]
