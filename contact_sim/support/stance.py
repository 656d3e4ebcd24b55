"""A robot with some of its feet held by the ground.

    M(q) v̇ + h(q, v) = Sᵀ τ + Jᵀ f,   J v = 0,   J v̇ = −J̇ v          (theory E2, E3, E8, E10)

f is the force on the robot [N]; the source's F_c = −f is exerted by the robot. Everything else in
this room is algebra on the matrices collected here. Viscous damping and dry friction of joints are
not part of h: they belong to the efforts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from contact_sim.arguments import checked, checked_fields
from contact_sim.collision.candidates import candidates_of
from contact_sim.collision.detect import contact_drift as fill_drift
from contact_sim.collision.detect import contact_rows, detect
from contact_sim.collision.ground import addresses_of
from contact_sim.collision.kinds import Ground
from contact_sim.collision.terrain import Terrain, TerrainLike, as_terrain
from contact_sim.dynamics.gravity import gravity_vector
from contact_sim.errors import InvalidInput
from contact_sim.numbers import cholesky_factor, indices, shaped
from contact_sim.robot.model import RobotModel
from contact_sim.support.feet import DIRECTIONS, foot_indices, held_rows

Array = NDArray[np.float64]


@checked_fields
@dataclass(frozen=True, eq=False)
class Stance:
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
            shaped(f'Stance.{name}', getattr(self, name), *shape)
        cholesky_factor('Stance.inertia', self.inertia)
        object.__setattr__(self, 'base_dofs', indices('Stance.base_dofs', self.base_dofs, nv))


@checked
def stance_dynamics(
    robot: RobotModel,
    q: ArrayLike,
    v: ArrayLike | None,
    active: Iterable[str | int],
    directions: Sequence[str] = DIRECTIONS,
    terrain: TerrainLike = 'plane',
    gravity: float | ArrayLike = 9.81,
) -> Stance:
    """Return the matrices of `robot` at q (nq,), v (nv,; None: at rest) on the feet `active`.

    Contact points and frames are those of the simulation (collision/detect.py): the points of the
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
    data = model.createData()
    upper = np.triu(pin.crba(model, data, q, pin.Convention.WORLD))
    pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
    points = _contacts(robot, model, data, as_terrain(terrain))
    return Stance(
        feet=tuple(robot.contact_points[i].name for i in feet),
        inertia=upper + np.triu(upper, 1).T,
        nonlinear_effects=np.array(pin.nonLinearEffects(model, data, q, v)).reshape(model.nv),
        selection_matrix=robot.selection_matrix,
        contact_jacobian=points.jacobian[held],
        drift=points.drift[held],
        velocity=v,
        base_dofs=base_dofs(robot),
        position=points.position[list(feet)],
        frame=points.frame[list(feet)],
    )


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


def base_dofs(robot: RobotModel) -> NDArray[np.intp]:
    """Return the coordinates of the base (theory E8), shape (n_b,).

    A floating base has six. Of a robot without one they are the coordinates that no joint drives,
    such as the cart of a cart-pendulum whose motor sits at the pendulum.
    """
    if robot.floating_base:
        return np.arange(6)
    return np.setdiff1d(np.arange(robot.nv), robot.joint_velocity_index)


def require_feet(stance: Stance, purpose: str) -> None:
    """Raise InvalidInput where no foot stands."""
    if not stance.feet:
        raise InvalidInput(f'{purpose}: needs at least one foot in contact, the support is empty')


def require_floating_base(robot: RobotModel, purpose: str) -> None:
    """Raise InvalidInput for a robot without a floating base."""
    if not robot.floating_base:
        raise InvalidInput(
            f'{purpose}: needs a floating base, but the base of robot {robot.name} is fixed; '
            'it has one where floating_base is true as it is loaded'
        )


@dataclass(frozen=True, eq=False)
class _Contacts:
    """All contact points of a robot, standing or not."""

    jacobian: Array
    drift: Array
    position: Array
    frame: Array


def _contacts(robot: RobotModel, model: pin.Model, data: pin.Data, terrain: Terrain) -> _Contacts:
    """Return the contact points after crba in WORLD and forward kinematics with v̇ = 0."""
    spheres, slots = candidates_of(robot), terrain.features * len(robot.candidates)
    candidates = spheres.joint, spheres.offset, spheres.radius
    pose = np.array([[*M.rotation.flatten('F'), *M.translation] for M in data.oMi])
    position, frame, gap = np.zeros((slots, 3)), np.zeros((slots, 3, 3)), np.zeros(slots)
    feature, drift = np.zeros(slots), np.zeros(3 * slots)
    ground = Ground(
        terrain.kind, terrain.data, terrain.relief, *addresses_of(terrain.kind), terrain.features
    )  # fmt: skip
    detect(ground, pose, *candidates, position, frame, gap, feature)
    parent = np.array(list(data.parents_fromRow)[: model.nv], dtype=np.int64)
    columns, origin = np.array(data.J.T).reshape(model.nv, 6), np.zeros(3)
    leaf, transposed = (
        np.repeat(spheres.leaf_dof, terrain.features),
        np.zeros((model.nv, 3 * slots)),
    )
    held = leaf, feature
    contact_rows(columns, origin, held, parent, position, frame, np.zeros(slots), transposed)
    twist, rate = (
        np.array([M.act(m).vector for M, m in zip(data.oMi, motions, strict=True)])
        for motions in (data.v, data.a)
    )
    fill_drift(candidates, (twist, rate, origin), ground, pose, feature, frame, np.zeros(3), drift)
    slot = terrain.features * np.arange(len(spheres.joint))
    slot += gap.reshape(-1, terrain.features).argmin(axis=1)  # the nearest feature holds the foot
    rows = (3 * slot[:, None] + np.arange(3)).ravel()
    return _Contacts(transposed.T[rows], drift[rows], position[slot], frame[slot])
