"""Arrays of a simulation, and kernels that read the robot model from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pinocchio as pin

from contact_sim import _reading
from contact_sim._types import Array, Indices
from contact_sim.arrays import _fields as f
from contact_sim.arrays._fields import (
    FIELDS,
    INDEX_FIELDS,
    PAIR_NUMBERS,
    Sizes,
    layout_table,
    places_of,
)
from contact_sim.arrays._views import (
    ADDRESSES,
    Arrays,
    StepData,
    frames,
    integers,
    matrix,
    stage_on_demand,
    vector,
)
from contact_sim.collision._bodies_on_ground import (
    any_near_ground,
    carriers_of,
    detect_on_ground,
)
from contact_sim.collision._body_pairs import (
    CLOSED_GAP,
    detect_pairs,
    fill_pair_rows,
    meeting_dof,
    pair_drift,
)
from contact_sim.collision._contact_slots import CONTACTS, NO_FEATURE, clear_pool, pair_of
from contact_sim.collision._detection import candidates_of, leaf_dof
from contact_sim.collision._shapes import most_edges, shapes_of
from contact_sim.collision._solid_contacts import place_solids
from contact_sim.collision._surface import PLANES, Ground
from contact_sim.collision._terrain import Terrain, addresses_of, fill_coefficients
from contact_sim.constraints._constraint_rows import COUNT, constraint_table
from contact_sim.dynamics import _articulated
from contact_sim.dynamics._tree import Tree, tree_of
from contact_sim.errors import InvalidInput, shown, summary
from contact_sim.robot._collision_pairs import Collisions
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._coordinates import PositionLimit
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import MOST_FREEDOMS, data_of, trees_of
from contact_sim.solvers._delassus import EVERYWHERE, limbs_of
from contact_sim.solvers._jit import call_with_arrays, kernel, numbers_at, pointer
from contact_sim.step._bilateral_rows import bilateral_task
from contact_sim.step._contact_rows import contact_branches, islands_of
from contact_sim.step._moment_rows import moment_task
from contact_sim.step._tree_newton import tree_numbers

BAUMGARTE, RESTITUTION_THRESHOLD = 0.2, 0.05
"""Share of a penetration taken out per step [-]; approach speed of plastic impacts [m/s]."""
FOUND_OF_GROUND = (
    'near_facets', 'solid_facets', 'corner_room', 'clearances', 'solid_clearances', 'flat_spots',
    'in_use',
)  # fmt: skip
"""What searches find on the ground and keep: zeros on another one."""
GROUND_FIELDS = frozenset({'terrain', 'ground', *FOUND_OF_GROUND})
"""Fields with the numbers of the ground."""
TIME_STEP_FIELDS = frozenset({'time_step', 'lower', 'upper', 'lag_decay', 'delay', 'delay_line'})
"""Fields that follow from the time step."""
CONSTRAINT_FIELDS = frozenset(
    {'dof_island', 'contact_island', 'interval_island', 'solid_island', 'pair_groups'}
    | {name for name in FIELDS if name.startswith('bilateral')}
)
"""Fields that follow from the constraints."""

cached_places = lru_cache(maxsize=64)(places_of)
"""Cached: single problems are solved by the thousand, and have few sizes."""

OPEN, STICK, SLIP = 0, 1, 2
STICTION_SPEED = 1e-9
"""Tangential speed below which a loaded contact counts as sticking [m/s]."""


Places = Mapping[str, tuple[int, int, tuple[int, ...]]]


class Workspace:
    """Numbers, indices and layout of one simulation, with views of every field by its name.

    Args:
        robot: what moves.
        terrain: ground.
        h: time step [s].
        constraints: bilateral constraints with their places.
        moments: whether the contacts with the ground have rows for moments.
        formed: whether M is formed in any case, also that of a deep tree.

    Raises:
        UnknownName: a frame or joint of a constraint that the robot does not have.
        InvalidInput: a delay of an actuator that is no multiple of h, a joint of a constraint
            with several degrees of freedom.

    Attributes:
        sizes: sizes of the simulation.
        numbers: the first array of arrays/_fields.py with one world in it, shape (1, length).
        indices: the second array, shape (1, length).
        layout: the third.
        data: the state before and after a step and its results: the front of `numbers`.
        robot: what moves.
        model: Pinocchio's model of the robot.
        names: names of the contacts, length nc.
        table: the bilateral constraints.
    """

    def __init__(
        self,
        robot: RobotModel,
        terrain: Terrain,
        h: float,
        constraints: Sequence[Constraint] = (),
        moments: bool = False,
        formed: bool = False,
    ) -> None:
        model = robot.pinocchio_model
        tree = tree_of(model)
        self.table = constraint_table(robot, tree, constraints)
        limited = [joints_of(robot, limit) for limit in robot.position_limits]
        ties = [[joint.idx_v for joint in joints] for joints in limited]
        self._islands = islands_of(tree.dof_parent, [*ties, *self.table.coupled_dofs])
        self.robot, self.model, self.tree = robot, model, tree
        collisions = robot.collisions
        check_grounded(collisions, terrain)
        self._shapes = shapes_of(collisions.solids if collisions.slots else ())
        self.sizes = self._sizes(terrain, h, moments, formed)
        self.names = contact_names(robot, terrain)
        self._allocate()
        self._fill_robot(robot, tree)
        self._fill_ground(robot, terrain, tree)
        self._fill_pairs(robot, tree)
        self.fill_constraints()
        for name in ('effort_limit', 'velocity_limit', 'saturation_effort'):
            getattr(self, name)[:] = getattr(robot.actuators, name)
        self.lag_decay[:] = robot.actuators.lag_decay(h)
        self.delay[:] = robot.actuators.delay_steps(h)
        self.set_time_step(h)

    def _sizes(self, terrain: Terrain, h: float, moments: bool, formed: bool) -> Sizes:
        tree = self.tree
        deep = not formed and not tree.unsupported and _articulated.is_deep(tree.dof_parent)
        robot, islands, table = self.robot, self._islands, self.table
        candidates, actuators = len(robot.contact_points), robot.actuators
        collisions, solids = robot.collisions, robot.collisions.solids
        n_moments = candidates * terrain.features * moments
        dry = int(np.count_nonzero(robot.joint_friction))
        return Sizes(
            nq=robot.nq, nv=robot.nv, n_joints=robot.n_joints,
            nc=candidates * terrain.features + collisions.slots,
            ns=dry + 3 * n_moments + len(robot.position_limits), n_moments=n_moments,
            n_bodies=len(self.tree.kind), n_candidates=candidates,
            n_flyers=len(self.tree.free_flyer_v), n_limits=len(robot.position_limits),
            n_islands=int(islands.max(initial=0)) + 1,
            n_delay=int(actuators.delay_steps(h).max(initial=0)),
            n_lags=robot.n_joints if actuators.time_constant.any() else 0,
            n_springs=len(robot.springs),
            n_solids=len(solids),
            n_pairs=len(collisions.pairs) + len(collisions.grounded),
            n_grounded=len(collisions.grounded),
            n_carriers=len({solids[k].joint for k in collisions.grounded_places}),
            n_shape_numbers=len(self._shapes[0]),
            n_on_face=2 * most_edges(*self._shapes) if collisions.pairs else 0,
            n_pair_groups=len(pair_groups(robot, islands)), n_pair_slots=collisions.slots,
            n_constraints=len(table.constraints), nb=table.rows, deep=deep,
        )  # fmt: skip

    def _allocate(self) -> None:
        places = cached_places(self.sizes)
        lengths = {
            indices: max(stop for name, (_, stop, _) in places.items()
                         if (name in INDEX_FIELDS) == indices)
            for indices in (False, True)
        }  # fmt: skip
        self._places = places
        self.layout = layout_table(places)
        needed, most = 8 * (lengths[False] + lengths[True]), _reading.limits().bytes
        what = (
            f'a step with {self.sizes.nv} degrees of freedom and {self.sizes.rows} rows of '
            'contacts, friction and limits'
        )
        if needed > most:
            raise _reading.beyond(what, f'it takes {needed / 1e6:.0f} MB', 'bytes')
        try:
            self.numbers = np.zeros((1, lengths[False]))
            self.indices = np.zeros((1, lengths[True]), dtype=np.int64)
        except MemoryError as error:
            raise InvalidInput(f'{what}: there are no {needed / 1e6:.0f} MB for it') from error
        self.data = StepData(self.sizes, self.numbers[0, : self.sizes.length])

    def __getattr__(self, name: str) -> Any:
        """Return the view of a field, made at its first use."""
        places = self.__dict__.get('_places', {})
        if name not in places:
            raise AttributeError(f'Workspace has no field {name!r}')
        start, stop, shape = places[name]
        array = self.indices if name in INDEX_FIELDS else self.numbers
        view = array[0, start:stop].reshape(shape)
        self.__dict__[name] = view
        return view

    @property
    def arrays(self) -> tuple[Array, Indices, Indices]:
        """Arguments of compiled entries: numbers, indices, layout."""
        return self.numbers, self.indices, self.layout

    def copy(self, terrain: Terrain | None = None) -> Workspace:
        """Return a copy, optionally with the values of `terrain`."""
        other = object.__new__(Workspace)
        for name in ('sizes', 'robot', 'model', 'tree', 'names', 'table'):
            setattr(other, name, getattr(self, name))
        # the arrays that the kernels know by address are kept alive
        other._kept = self._kept if terrain is None else (terrain.relief, terrain.region_numbers)
        other._allocate()
        other.numbers[:], other.indices[:] = self.numbers, self.indices
        return other

    def with_formed_inertia(self) -> Workspace:
        """Return a copy whose steps form the mass matrix; its M is not filled yet."""
        other = object.__new__(Workspace)
        for name in ('robot', 'model', 'tree', 'names', 'table', '_kept'):
            setattr(other, name, getattr(self, name))
        other.sizes = replace(self.sizes, deep=False)
        other._allocate()
        other.take_values(self.numbers[0], self.indices[0], self._places)
        return other

    def take_values(self, numbers: Array, indices: Indices, places: Places) -> None:
        """Take the values of all fields of the same shape from arrays with other places."""
        for name, (first, last, shape) in places.items():
            if shape == self._places[name][2]:
                array = indices if name in INDEX_FIELDS else numbers
                getattr(self, name)[...] = array[first:last].reshape(shape)

    def on(self, terrain: Terrain) -> Workspace:
        """Return a copy for another ground.

        What belongs to contacts starts anew where these are more or fewer than before.
        """
        h = float(self.data.time_step[0])
        other = Workspace(self.robot, terrain, h, self.table.constraints, self.has_moments)
        return self._with_values_in(other, GROUND_FIELDS)

    def under(self, terrain: Terrain, constraints: Sequence[Constraint]) -> Workspace:
        """Return a workspace for the same ground and other constraints with the same values."""
        h = float(self.data.time_step[0])
        other = Workspace(self.robot, terrain, h, constraints, self.has_moments)
        return self._with_values_in(other, CONSTRAINT_FIELDS)

    def with_time_step(self, h: float, terrain: Terrain) -> Workspace:
        """Return a workspace for the same ground and the time step h [s] with the same values.

        Raises:
            InvalidInput: a delay of an actuator that is no multiple of h.
        """
        other = Workspace(self.robot, terrain, h, self.table.constraints, self.has_moments)
        other.delay_line[:] = self.command
        return self._with_values_in(other, TIME_STEP_FIELDS)

    def with_moments(self, moments: bool, terrain: Terrain) -> Workspace:
        """Return a workspace for the same ground, with or without rows for moments."""
        h, contacts = float(self.data.time_step[0]), 3 * self.sizes.nc
        other = self._with_values_in(
            Workspace(self.robot, terrain, h, self.table.constraints, moments),
            frozenset({'moments'}),
        )
        # impulses of contacts, dry friction and limits, the guess of the next step
        dry = self.sizes.ns - self.sizes.n_limits - 3 * self.sizes.n_moments
        front, limits = slice(contacts + dry), slice(self.sizes.rows - self.sizes.n_limits, None)
        other.data.impulse[front] = self.data.impulse[front]
        other.data.impulse[other.sizes.rows - other.sizes.n_limits :] = self.data.impulse[limits]
        return other

    @property
    def has_moments(self) -> bool:
        """Whether the contacts with the ground have rows for moments."""
        return self.sizes.n_moments > 0

    def _with_values_in(self, other: Workspace, own: frozenset[str]) -> Workspace:
        """Return `other` with the values of all fields of the same shape but its own."""
        for name, (_, _, shape) in self._places.items():
            if name not in own and shape == other._places[name][2]:
                getattr(other, name)[:] = getattr(self, name)
        return other

    def set_time_step(self, h: float) -> None:
        """Use the time step h [s]; the boxes of dry friction scale with it."""
        self.data.time_step[0] = h
        # the rest belongs to each step
        friction = slice(self.sizes.ns - self.sizes.n_limits - 3 * self.sizes.n_moments)
        self.data.lower[friction] = h * self.interval_lower[friction]
        self.data.upper[friction] = h * self.interval_upper[friction]

    def _fill_robot(self, robot: RobotModel, tree: Tree) -> None:
        for name in ('kind', 'parent', 'q_index', 'v_index', 'dof_parent', 'free_flyer_q',
                     'free_flyer_v', 'placement', 'body', 'armature'):  # fmt: skip
            getattr(self, name)[:] = getattr(tree, name)
        self.external_terms[0] = bool(tree.unsupported)
        self.limb[:], self.rooted[0] = limbs_of(tree.dof_parent)
        (
            self.tree_begin[:], self.tree_end[:], self.tree_rooted[:], self.tree_parent[:],
            self.tree_limb[:],
        ) = tree_numbers(tree.dof_parent)  # fmt: skip
        for k, parent in enumerate(tree.dof_parent):
            self.floats[k] = k in tree.free_flyer_v if parent < 0 else self.floats[parent]
        self.flyer_end[:] = [end_of_tree(tree.dof_parent, k) for k in tree.free_flyer_v]
        self.pose[:, [0, 4, 8]] = 1.0
        self.damping[:] = robot.joint_damping
        sprung = [self.model.joints[self.model.getJointId(one.joint)] for one in robot.springs]
        self.spring_q[:] = [joint.idx_q for joint in sprung]
        self.spring_v[:] = [joint.idx_v for joint in sprung]
        self.joint_stiffness[:] = [spring.stiffness for spring in robot.springs]
        self.joint_rest[:] = [spring.rest for spring in robot.springs]
        self.total_mass[0] = robot.total_mass
        joints = [self.model.joints[self.model.getJointId(name)] for name in robot.joint_names]
        self.joint_q[:] = [joint.idx_q for joint in joints]
        self.joint_v[:] = [joint.idx_v for joint in joints]
        self.joint_unbounded[:] = [joint.nq == 2 for joint in joints]
        self.wrench_body[0] = -1
        self._fill_intervals(robot, tree)

    def _fill_intervals(self, robot: RobotModel, tree: Tree) -> None:
        # dry friction: one row per dof with friction, λ ∈ [−h τ, h τ]
        dry, first = np.flatnonzero(robot.joint_friction), 3 * self.sizes.nc
        first_limit = self.sizes.ns - self.sizes.n_limits
        rows = self.jacobian_transposed[:, first:]
        self.interval_dof[: len(dry)] = dry
        self.interval_upper[: len(dry)] = robot.joint_friction[dry]
        self.interval_lower[:] = -self.interval_upper
        rows[dry, np.arange(len(dry))] = 1.0
        # limits: one row per limit, entries `shares` at one or two dofs
        for i, limit in enumerate(robot.position_limits):
            joints = joints_of(robot, limit)
            dofs, k = [joint.idx_v for joint in joints], first_limit + i
            rows[dofs, k] = limit.shares
            self.limit_q[i], self.limit_other_q[i] = joints[0].idx_q, joints[-1].idx_q
            self.limit_share[i, : len(dofs)] = limit.shares
            self.limit_range[i] = limit.lower, limit.upper
            self.limit_restitution[k] = limit.restitution
            self.interval_dof[k] = dofs[0] if len(dofs) == 1 else EVERYWHERE
            held = limit.holds
            self.held[dofs[0]] |= held and len(dofs) == 1
            self.interval_lower[k], self.interval_upper[k] = (-np.inf, np.inf) if held else (0, 0)
        # where a row has entries, and the island that it belongs to
        alone = self.interval_dof >= 0  # entries at one dof only
        self.interval_end[:] = np.where(alone, tree.dof_parent[self.interval_dof], -1)
        if self.sizes.ns:
            self.interval_some_dof[:] = (rows != 0.0).argmax(axis=0)
            if self.has_moments:  # J is that of each step, on the branch of the contact
                leaves = np.repeat(candidates_of(robot).leaf_dof, 3 * self.sizes.features)
                moments = slice(len(dry), first_limit)
                self.interval_dof[moments], self.interval_end[moments] = leaves, -1
                self.interval_some_dof[moments] = leaves.clip(min=0)
                self.moments[0] = moment_task.address
            self.interval_island[:] = self._islands[self.interval_some_dof]

    def _fill_ground(self, robot: RobotModel, terrain: Terrain, tree: Tree) -> None:
        spheres, features = candidates_of(robot), terrain.features
        # contact spheres in the axes of their bodies
        self.candidate_body[:] = tree.body_of_joint[spheres.joint]
        turn = tree.axes[self.candidate_body]  # from the axes of the joint into those of the body
        self.offset[:] = np.einsum('iab,ia->ib', turn, spheres.offset)
        self.radius[:] = spheres.radius
        self.terrain[:] = terrain.data
        self._kept = terrain.relief, terrain.region_numbers  # known by address: kept alive
        self.ground[:] = ground_indices(terrain)
        self.leaf_dof[:] = np.repeat(spheres.leaf_dof, features)
        self.dof_island[:] = self._islands
        islands = np.append(self._islands, 0)  # the last one: of the world, −1
        self.contact_island[: self.sizes.n_ground] = islands[self.leaf_dof]
        self.stabilisation[:] = BAUMGARTE, RESTITUTION_THRESHOLD
        # reference diagonals of G in the neutral pose, as MuJoCo approximates them
        of_intervals = self.jacobian_transposed[:, 3 * self.sizes.nc :]
        of_joints, intervals = reference_inverse_weights(self.model, of_intervals)
        slots = 3 * self.sizes.n_ground
        self.inverse_weight[:slots] = np.repeat(of_joints[spheres.joint], 3 * features)
        self.inverse_weight[3 * self.sizes.nc :] = intervals
        self._of_joints = of_joints

    def _fill_pairs(self, robot: RobotModel, tree: Tree) -> None:
        collisions = robot.collisions
        solids = collisions.solids
        if not collisions.slots:
            return
        joints = [self.model.getJointId(solid.joint) for solid in solids]
        leaves = [leaf_dof(self.model.joints[j]) for j in joints]
        self.solid_body[:] = tree.body_of_joint[joints]
        for i, (solid, body) in enumerate(zip(solids, self.solid_body, strict=True)):
            placement = solid.placement
            turn = tree.axes[body].T  # from the axes of the joint into those of the body
            columns = (turn @ placement.rotation).T.ravel()
            self.solid_place[i] = *columns, *(turn @ placement.translation)
            self.solid_size[i] = *solid.half, solid.radius
        self.solid_reach[:] = [solid.reach for solid in solids]
        self.solid_island[:] = solid_islands(robot, self._islands)
        self.pair_groups[:] = np.ravel(pair_groups(robot, self._islands))
        rows = self.pairs.reshape(-1, PAIR_NUMBERS)
        for k, (i, j) in enumerate(robot.collisions.ordered.tolist()):
            meeting = meeting_dof(tree.dof_parent, leaves[i], leaves[j])
            rows[k] = i, j, leaves[i], leaves[j], meeting
            self.pair_weight[k] = self._of_joints[joints[i]] + self._of_joints[joints[j]]
        # a solid and the ground: entries on one branch
        for k, i in enumerate(collisions.grounded_places.tolist(), len(collisions.pairs)):
            rows[k] = i, -1, leaves[i], -1, -1
            self.pair_weight[k] = self._of_joints[joints[i]]
        self.carriers[:], self.carrier_box[:] = carriers_of(
            self.solid_body, self.solid_place, self.solid_size, collisions
        )
        if collisions.slots:
            self.shapes[:], self.shape_begin[:] = self._shapes
        # what a simulation does not search is not compiled for it
        self.pair_search[FIRST_ON_GROUND] = len(collisions.pairs)
        if collisions.grounded:
            self.pair_search[ON_GROUND] = 1
        if collisions.pairs:
            self.pair_search[OF_BODIES] = find_between_bodies.address

    def use_pair_drift(self) -> None:
        """Let `fill_pair_drift` be called, by laws at acceleration level."""
        if self.sizes.n_pairs:
            self.pair_search[DRIFT] = find_pair_drift.address

    def fill_constraints(self) -> None:
        """Write the numbers of the constraints in `table`."""
        if not self.table.constraints:
            return
        self.bilateral_indices[:] = self.table.indices.ravel()
        counts = self.table.indices[:, COUNT]
        self.bilateral_owner[:] = np.repeat(np.arange(len(counts)), counts)
        self.bilateral_places[:], self.bilateral_laws[:] = self.table.places, self.table.laws
        self.bilateral[0] = bilateral_task.address

    def __repr__(self) -> str:
        return summary(self, robot=self.robot.name, contacts=self.sizes.nc)


def end_of_tree(parent: Indices, root: int) -> int:
    """Return one past the last dof whose branch leads to the dof `root`."""
    behind = np.zeros(len(parent), dtype=bool)
    behind[root] = True
    for k in range(root + 1, len(parent)):
        behind[k] = parent[k] >= 0 and behind[parent[k]]
    return 1 + int(np.flatnonzero(behind)[-1])


def ground_indices(terrain: Terrain) -> tuple[int, ...]:
    """Return the field `ground`: kind, features, addresses and lengths of its arrays."""
    relief, regions = terrain.relief, terrain.region_numbers
    return (
        terrain.kind, terrain.features, relief.ctypes.data, len(relief),
        *addresses_of(terrain.kind), regions.ctypes.data, len(regions),
    )  # fmt: skip


def check_grounded(collisions: Collisions, terrain: Terrain) -> None:
    """Check that the ground is one that all solids can touch."""
    for k in collisions.grounded_places:
        if collisions.solids[k].ellipsoid and terrain.kind != PLANES:
            raise InvalidInput(
                f'terrain = {shown(terrain)}: {shown(collisions.solids[k].name)} is an ellipsoid, '
                'which touches planes only; choose a ground of planes, or a mesh for the body'
            )


def solid_islands(robot: RobotModel, islands: Indices) -> Indices:
    """Return the island of every solid, one behind the last for the world, shape (n_solids,)."""
    model, world = robot.pinocchio_model, int(islands.max(initial=0)) + 1
    leaves = [leaf_dof(model.joints[model.getJointId(s.joint)]) for s in robot.collisions.solids]
    return np.array([islands[k] if k >= 0 else world for k in leaves], dtype=np.int64)


def pair_groups(robot: RobotModel, islands: Indices) -> list[tuple[int, int, int, int]]:
    """Return the runs of pairs of the same two islands, see GROUP_NUMBERS in arrays/_fields.py."""
    of_solid = solid_islands(robot, islands)
    groups: list[tuple[int, int, int, int]] = []
    for k, (i, j) in enumerate(robot.collisions.ordered.tolist()):
        one, other = sorted((int(of_solid[i]), int(of_solid[j])))
        first = groups.pop()[2] if groups and groups[-1][:2] == (one, other) else k
        groups.append((one, other, first, k + 1))
    return groups


def joints_of(robot: RobotModel, limit: PositionLimit) -> list[Any]:
    """Return Pinocchio's joints of a position limit."""
    model = robot.pinocchio_model
    return [model.joints[model.getJointId(name)] for name in limit.joints]


def contact_names(robot: RobotModel, terrain: Terrain) -> tuple[str, ...]:
    """Return a name for every contact: that of its contact point, with the feature if several."""
    points, several = robot.contact_points, terrain.features > 1
    return tuple(
        f'{point.name}/{feature}' if several else point.name
        for point in points
        for feature in range(terrain.features)
    )


def reference_inverse_weights(model: pin.Model, intervals: Array) -> tuple[Array, Array]:
    """Return reference Delassus diagonals of the neutral pose [1/kg], (njoints,) and (ns,).

    For a contact on the body of a joint the mean of the diagonal of J M⁻¹ Jᵀ, J the velocity of
    its centre of mass; for an interval row J M⁻¹ Jᵀ, Jᵀ its column of `intervals` (nv, ns).
    """
    of_joints, of_intervals = np.zeros(model.njoints), np.zeros(intervals.shape[1])
    trees = list(trees_of(model))
    # M⁻¹ of all trees at once, or tree by tree where they have many degrees of freedom
    for group in [trees] if model.nv <= MOST_FREEDOMS else [[tree] for tree in trees]:
        dofs = np.concatenate([tree.dofs for tree in group])
        M, rows = np.zeros((len(dofs), len(dofs))), []
        first = 0
        for tree in group:
            own = slice(first, first + len(tree.dofs))
            first = own.stop
            upper, velocities = neutral_terms(tree.model)
            M[own, own] = upper + np.triu(upper, 1).T
            rows += [(j, own, J) for j, J in zip(tree.joints, velocities, strict=True)]
        inverse = np.linalg.inv(M)
        for joint, own, velocity in rows:
            J = np.zeros((3, len(dofs)))
            J[:, own] = velocity
            of_joints[joint] = np.trace(J @ inverse @ J.T) / 3.0
        acting = np.flatnonzero((intervals[dofs] != 0.0).any(axis=0))
        columns = intervals[np.ix_(dofs, acting)]
        of_intervals[acting] += np.einsum('ka,kl,la->a', columns, inverse, columns)
    return of_joints, of_intervals


def neutral_terms(model: pin.Model) -> tuple[Array, list[Array]]:
    """Return the upper triangle of M, and J of the centre of mass of every joint's body.

    In the neutral pose, (nv, nv) and (3, nv) for every joint but the world.
    """
    data, q = data_of(model), pin.neutral(model)
    pin.computeJointJacobians(model, data, q)
    upper, velocities = np.triu(pin.crba(model, data, q)), []
    for joint in range(1, model.njoints):
        centre = pin.SE3(np.eye(3), data.oMi[joint].act(model.inertias[joint].lever))
        world = pin.getJointJacobian(model, data, joint, pin.ReferenceFrame.WORLD)
        columns = world.reshape(6, model.nv)  # flat for one dof
        velocities.append(centre.toActionMatrixInverse()[:3] @ columns)
    return upper, velocities


# --- Contact memory: of all contacts in the step data, of the active ones in the problem.
#
# Vectors have world axes in the step data, so that they outlast a turn of the contact frame, and
# the axes of the contact frame in the problem, like everything else that laws see.


@kernel
def load_contact_memory(memory, frame, row_of, n, rows):
    """Fill `rows` (n, 4) with the memory (nc, 4) of the n contacts of a problem."""
    for k in range(n):
        i = row_of[3 * k] // 3
        for a in range(3):
            rows[k, a] = 0.0
            # contact frame, R the rows (t1, t2, n): R m
            for b in range(3):
                rows[k, a] += frame[i, a, b] * memory[i, b]
        rows[k, 3] = memory[i, 3]


@kernel
def store_contact_memory(rows, frame, row_of, n, memory):
    """Write `rows` back into `memory`."""
    for k in range(n):
        i = row_of[3 * k] // 3
        for b in range(3):
            memory[i, b] = 0.0
            # world axes: Rᵀ m
            for a in range(3):
                memory[i, b] += frame[i, a, b] * rows[k, a]
        memory[i, 3] = rows[k, 3]


# --- The ground, as kernels take it.


@kernel
def ground_of(data):
    """Return the ground in the arrays of a step, see `ground_indices`."""
    kind, features, address, length, search, bend, edges, _, _ = integers(data, f.GROUND)
    relief = numbers_at(address, length)
    return Ground(kind, vector(data, f.TERRAIN), relief, search, bend, features, edges)


@kernel
def lists_of(data):
    """Return the address of the lists of near facets of all candidates, 0 without any."""
    lists = matrix(data, f.NEAR_FACETS)
    return int(lists.ctypes.data) if lists.shape[0] > 0 else 0


@kernel
def fill_ground_coefficients(data, position, feature):
    """Fill friction and restitution of the contacts at `position` (nc, 3)."""
    ground = integers(data, f.GROUND)
    defaults = (vector(data, f.DEFAULT_FRICTION), vector(data, f.DEFAULT_RESTITUTION))
    last = contact_branches(data)[3]
    fill_coefficients(
        numbers_at(ground[7], ground[8]), position,
        (feature, integers(data, f.LEAF_DOF).shape[0], float(CONTACTS) * ground_pairs(data)[0]),
        defaults, vector(data, f.FRICTION)[:last], vector(data, f.RESTITUTION)[:last],
    )  # fmt: skip


# --- Contacts between bodies.
#
# Their search is compiled once and called by address, as that over facets is: it is the same for
# all models.

ON_GROUND, OF_BODIES, DRIFT, FIRST_ON_GROUND = range(4)
"""Places in the field `pair_search`: addresses of the searches and of J̇ v, 0 where there is
nothing to do; the first pair of a body with the ground."""
NEAR_LEAST, NEAR_SPEED = 0.005, 5.0
"""Gap up to which contacts of bodies with the ground are found: at least [m], and what a body
travels in a step at this speed [m/s]."""


@kernel
def near_ground(data):
    """Return the gap up to which contacts of bodies with the ground are found [m]."""
    return max(NEAR_LEAST, NEAR_SPEED * vector(data, f.TIME_STEP)[0])


@kernel
def ground_pairs(data):
    """Return the first pair of a body with the ground, and one past the last."""
    first, numbers = integers(data, f.PAIR_SEARCH)[FIRST_ON_GROUND], integers(data, f.PAIRS)
    return first, numbers.shape[0] // PAIR_NUMBERS


@kernel
def pool_of(data):
    """Return the pool of slots, see _contact_slots.py."""
    return (
        integers(data, f.LEAF_DOF).shape[0], integers(data, f.PAIR_COUNTS),
        matrix(data, f.POSITION), frames(data, f.FRAME), vector(data, f.GAP),
        vector(data, f.FEATURE),
    )  # fmt: skip


@stage_on_demand
def find_on_ground(data):
    """Detect contacts of bodies with the ground."""
    own = (
        integers(data, f.SOLID_BODY), matrix(data, f.SOLID_PLACE), matrix(data, f.SOLID_SIZE),
        matrix(data, f.SOLID_POSE), vector(data, f.SOLID_REACH), vector(data, f.SHAPES),
        integers(data, f.SHAPE_BEGIN), matrix(data, f.GROUND_EDGES),
        (
            matrix(data, f.SOLID_CLEARANCES), matrix(data, f.CORNER_ROOM),
            matrix(data, f.SOLID_FACETS), matrix(data, f.FLAT_SPOTS),
        ),
    )  # fmt: skip
    carriers = integers(data, f.CARRIERS), matrix(data, f.CARRIER_BOX), matrix(data, f.CLEARANCES)
    detect_on_ground(
        ground_of(data), matrix(data, f.POSE), own, integers(data, f.PAIRS), carriers,
        near_ground(data), pool_of(data),
    )  # fmt: skip


@kernel
def any_near(data):
    """Return whether contacts of bodies with the ground are to be searched."""
    carriers = integers(data, f.CARRIERS), matrix(data, f.CARRIER_BOX), matrix(data, f.CLEARANCES)
    return any_near_ground(ground_of(data), matrix(data, f.POSE), carriers, near_ground(data))


@kernel
def find_pair_contacts(data):
    """Fill the slots of the contacts of bodies, with the ground first, then with each other."""
    search = integers(data, f.PAIR_SEARCH)
    if search[ON_GROUND] != 0 or search[OF_BODIES] != 0:
        clear_pool(pool_of(data))
    if search[ON_GROUND] != 0 and any_near(data):
        find_on_ground(data)
    if search[OF_BODIES] != 0:
        call_with_arrays(search[OF_BODIES], data)


@pointer(ADDRESSES)
def find_between_bodies(numbers: Any, indices: Any, layout: Any) -> None:
    """Detect contacts of bodies with each other; the arrays of a step by their addresses."""
    data = Arrays(numbers, indices, layout)
    # placements of all, then broad phase over islands and pairs
    place = matrix(data, f.SOLID_POSE)
    place_solids(
        matrix(data, f.POSE), integers(data, f.SOLID_BODY), matrix(data, f.SOLID_PLACE), place
    )
    solids = (
        place, matrix(data, f.SOLID_SIZE), vector(data, f.SOLID_REACH),
        integers(data, f.SOLID_ISLAND), vector(data, f.SHAPES), integers(data, f.SHAPE_BEGIN),
        matrix(data, f.ON_FACE),
    )  # fmt: skip
    detect_pairs(
        solids, integers(data, f.PAIRS), integers(data, f.PAIR_GROUPS),
        matrix(data, f.ISLAND_BOX), pool_of(data),
    )  # fmt: skip


@kernel
def match_pair_slots(data):
    """Move contacts between bodies into the slots that they had at the start of the step.

    New ones get slots that were free then, or none.
    """
    first, start = integers(data, f.LEAF_DOF).shape[0], vector(data, f.FEATURE_START)
    position, frame = matrix(data, f.POSITION), frames(data, f.FRAME)
    gap, feature = vector(data, f.GAP), vector(data, f.FEATURE)
    found = position[first:].copy(), frame[first:].copy(), gap[first:].copy()
    keys = feature[first:].copy()
    clear_pool((first, integers(data, f.PAIR_COUNTS), position, frame, gap, feature))
    for k in range(keys.shape[0]):
        if keys[k] != NO_FEATURE:
            i = slot_for(keys[k], first, start, feature)
            if i >= 0:
                position[i], frame[i], gap[i] = found[0][k], found[1][k], found[2][k]
                feature[i] = keys[k]


@kernel
def slot_for(key, first, start, feature):
    """Return the slot that held a contact at the start, else one free then and now, else −1."""
    free = -1
    for i in range(start.shape[0] - 1, first - 1, -1):
        if start[i] == key:
            return i
        if start[i] == NO_FEATURE and feature[i] == NO_FEATURE:
            free = i
    return free


@kernel
def fill_pair_drift(data):
    """Fill J̇ v of the closed contacts between bodies in their slots, field `pair_drift`."""
    gap, closed = vector(data, f.GAP), False
    for i in range(integers(data, f.LEAF_DOF).shape[0], gap.shape[0]):
        closed = closed or gap[i] <= CLOSED_GAP
    if closed:
        call_with_arrays(integers(data, f.PAIR_SEARCH)[DRIFT], data)
    else:
        vector(data, f.PAIR_DRIFT)[:] = 0.0


@pointer(ADDRESSES)
def find_pair_drift(numbers: Any, indices: Any, layout: Any) -> None:
    """Fill `pair_drift`; the arrays of a step by their addresses."""
    data = Arrays(numbers, indices, layout)
    place, size = matrix(data, f.SOLID_POSE), matrix(data, f.SOLID_SIZE)
    first = integers(data, f.LEAF_DOF).shape[0]
    # placed at the last search only where it was needed
    place_solids(
        matrix(data, f.POSE), integers(data, f.SOLID_BODY), matrix(data, f.SOLID_PLACE), place
    )
    terrain = (
        ground_of(data), vector(data, f.SHAPES), integers(data, f.SHAPE_BEGIN),
        matrix(data, f.GROUND_EDGES), vector(data, f.SOLID_REACH), near_ground(data),
    )  # fmt: skip
    motion = (
        matrix(data, f.TWIST), matrix(data, f.BIAS_ACCELERATION), vector(data, f.ORIGIN),
        vector(data, f.GRAVITY),
    )  # fmt: skip
    pair_drift(
        (place, size, integers(data, f.SOLID_BODY)), motion, integers(data, f.PAIRS), terrain,
        (vector(data, f.FEATURE)[first:], vector(data, f.GAP)[first:]), vector(data, f.PAIR_DRIFT),
    )  # fmt: skip


@stage_on_demand
def pair_contact_rows(data):
    """Fill J and the reference weights of the contacts between bodies."""
    contacts = contact_branches(data)
    first, last = contacts[0].shape[0], contacts[3]
    fill_pair_rows(
        matrix(data, f.COLUMNS), vector(data, f.ORIGIN), contacts, integers(data, f.DOF_PARENT),
        matrix(data, f.POSITION_START), frames(data, f.FRAME_START), vector(data, f.GAP_START),
        matrix(data, f.JACOBIAN_TRANSPOSED),
    )  # fmt: skip
    weight, of_pair = vector(data, f.INVERSE_WEIGHT), vector(data, f.PAIR_WEIGHT)
    for i in range(first, last):
        pair = pair_of(contacts[1][i])
        for row in range(3 * i, 3 * i + 3):
            weight[row] = of_pair[pair] if pair >= 0 else 0.0


@kernel
def clear_contacts(data, first, last):
    """Clear what a step fills of contacts whose slots are no longer in use."""
    jacobian = matrix(data, f.JACOBIAN_TRANSPOSED)
    force, velocity = matrix(data, f.CONTACT_FORCE), matrix(data, f.CONTACT_VELOCITY)
    for i in range(first, last):
        vector(data, f.ACTIVE)[i] = vector(data, f.RESTITUTION_BIAS)[i] = 0.0
        vector(data, f.NORMAL_FORCE)[i] = vector(data, f.SLIP_SPEED)[i] = 0.0
        vector(data, f.CONTACT_MODE)[i] = OPEN
        vector(data, f.FRICTION)[i] = vector(data, f.DEFAULT_FRICTION)[i]
        vector(data, f.RESTITUTION)[i] = vector(data, f.DEFAULT_RESTITUTION)[i]
        for a in range(3):
            row, force[i, a], velocity[i, a] = 3 * i + a, 0.0, 0.0
            vector(data, f.U_START)[row] = vector(data, f.U_FREE)[row] = 0.0
            vector(data, f.U_NEXT)[row] = vector(data, f.BIAS)[row] = 0.0
            vector(data, f.IMPULSE)[row] = 0.0
            for k in range(jacobian.shape[0]):
                jacobian[k, row] = 0.0


# --- The report of contacts: force, velocity, slip and mode, from λ and u⁺.


@kernel
def describe_contacts(data):
    """Fill force, velocity, slip and mode of the contacts; λ and u⁺ are in the start frames."""
    impulse, u = vector(data, f.IMPULSE), vector(data, f.U_NEXT)
    frame = frames(data, f.FRAME_START)
    force, velocity = matrix(data, f.CONTACT_FORCE), matrix(data, f.CONTACT_VELOCITY)
    normal_force, slip_speed = vector(data, f.NORMAL_FORCE), vector(data, f.SLIP_SPEED)
    mode, per_step = vector(data, f.CONTACT_MODE), 1.0 / vector(data, f.TIME_STEP)[0]
    for i in range(contact_branches(data)[3]):
        r = 3 * i
        for k in range(3):
            # f = Rᵀ λ / h and Rᵀ u⁺ in world axes, R the rows (t1, t2, n) of the frame
            force[i, k] = velocity[i, k] = 0.0
            for a in range(3):
                force[i, k] += per_step * impulse[r + a] * frame[i, a, k]
                velocity[i, k] += u[r + a] * frame[i, a, k]
        normal_force[i] = per_step * impulse[r + 2]
        slip_speed[i] = np.sqrt(u[r] * u[r] + u[r + 1] * u[r + 1])
        mode[i] = mode_of(impulse[r + 2], slip_speed[i])


@kernel
def mode_of(normal_impulse, slip_speed):
    """Return the mode of a contact; null_space may pull, so loaded means a force at all."""
    if normal_impulse == 0.0:
        return OPEN
    return SLIP if slip_speed > STICTION_SPEED else STICK
