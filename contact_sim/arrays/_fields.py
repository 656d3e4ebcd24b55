"""Names and shapes of all fields of the arrays of a simulation.

Three arrays contain everything that a compiled step reads and writes:

    numbers   float64: the step data (what a snapshot and a report copy), then work and constants
    indices   int64: kinematic tree, rows, modes, status
    layout    int64: first and last place, rows and columns of every field, by its number

Every field has a constant of its name in capitals, its number: `vector(data, V_FREE)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from contact_sim.errors import one_line

Shape = tuple[int, ...]
MEMORY_NUMBERS = 4  # numbers of memory per contact for a contact model: a vector, then one more
LAW_NUMBERS = 24  # largest number of parameters of a contact model
SPRING_NUMBERS = 5  # numbers of `LinearSprings`
SCRATCH_VECTORS = 8  # vectors of the length of all rows that a contact model may use as scratch
CONE_VECTORS = 8  # vectors of that length for the cone solvers, see ConeWork
PAIR_NUMBERS = 5
"""Indices of a pair of solids: both solids, last dofs of their bodies, where the branches meet."""
CARRIER_NUMBERS = 3  # indices of a body with solids on the ground: it, its pairs from and to
CARRIER_SIZES = 7  # centre and half sizes of the box about its solids, and their farthest point
CLEARANCE, WAIT, CLEARANCE_NUMBERS = 12, 13, 14
"""Of the clearance of such a body: its placement then (12), the clearance, and how far it moves
before the next look, see collision/_clearance.py."""
FLAT_FACET, FLAT_NUMBERS = 14, 15
"""Of the flat ground near a solid: its placement, the room and how far it moves before the next
look, as of a clearance; then the triangle, see collision/_bodies_on_ground.py."""
GROUP_NUMBERS = 4  # indices of a group of pairs: both islands, the first pair, one past the last
CONSTRAINT_INDICES, CONSTRAINT_PLACES, CONSTRAINT_LAW = 8, 24, 6
"""Numbers of a bilateral constraint, see constraints/_constraint_rows.py."""
EDGE_ROW, MOST_EDGES = 13, 512
"""Numbers of an edge of the ground, see collision/_facets.py; most edges near one body."""
LIST_RADIUS, LIST_COUNT, SPOT, SPOT_ROOM, SPOT_WAIT, SPOT_FACET, LISTED = 3, 4, 5, 8, 9, 10, 11
MOST_LISTED = 123
"""Places in a list of the facets near a point, see collision/_facets.py: behind the point its
radius and the number of facets, then a flat spot with its room, how far the next look for one is
away, and its triangle; the first facet; and the most of them."""
MOST_ROOMS = 64  # corners of a solid whose distances from the ground are kept
CANDIDATE_NUMBERS = 6  # of a contact over a face: place (3), height, number, whether it counts
BODY_NUMBERS, FACTOR_NUMBERS, BASE_NUMBERS = 21, 8, 7
"""Numbers of an articulated inertia, of a dof in its factor, and of a dof in the columns of a free
base, see dynamics/_articulated.py."""
TERRAIN_DATA = 16
"""Numbers of a terrain of any kind, besides its relief."""

STATE = ('q', 'v', 'position', 'frame', 'gap', 'feature', 'memory', 'energy')
"""Fields that follow from q and v; kept for the start and the end of a step."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of one simulation."""

    nq: int
    """Configuration size."""
    nv: int
    """Velocity size."""
    n_joints: int
    """Actuated joints."""
    nc: int
    """Contacts, open or closed: candidates × features of the terrain, then those of pairs."""
    ns: int
    """Interval rows: dry friction of joints, moments of contacts, then limits of positions."""
    n_bodies: int = 1
    """Bodies of the kinematic tree, the world included."""
    n_candidates: int = 0
    """Spheres that the ground may touch."""
    n_flyers: int = 0
    """Free-flying joints."""
    n_delay: int = 0
    """Steps of the longest delay of an actuator."""
    n_lags: int = 0
    """Actuated joints if one of their actuators lags, else 0."""
    n_limits: int = 0
    """Interval rows on positions, the last ones: joint limits and joints that follow others."""
    n_islands: int = 1
    """Parts of the contact problem that have no dof in common, see step/_contact_rows.py."""
    n_solids: int = 0
    """Solids that may touch each other or the ground."""
    n_pairs: int = 0
    """Pairs of them that may, then those of a solid and the ground."""
    n_grounded: int = 0
    """Pairs of a solid and the ground."""
    n_carriers: int = 0
    """Bodies that carry such solids."""
    n_shape_numbers: int = 0
    """Numbers of the shapes of the solids, see collision/_shapes.py."""
    n_on_face: int = 0
    """Contacts that one solid may have over a face of another one, before some are chosen."""
    n_pair_groups: int = 0
    """Runs of pairs of the same two islands; the world counts as one more island."""
    n_pair_slots: int = 0
    """Contacts that all pairs may have at once: the last ones."""

    n_moments: int = 0
    """Contacts that transmit moments, three interval rows each: all with the ground, or none."""
    n_springs: int = 0
    """Joints with a spring."""
    n_constraints: int = 0
    """Bilateral constraints."""
    nb: int = 0
    """Their rows."""
    deep: bool = False
    """Whether branches are so long that the mass matrix is never formed, see step/_inertia.py."""

    @property
    def n_formed(self) -> int:
        """Rows of the mass matrix where it is formed."""
        return 0 if self.deep else self.nv

    @property
    def n_deep(self) -> int:
        """Velocity size of a robot whose mass matrix is not formed."""
        return self.nv if self.deep else 0

    @property
    def n_ground(self) -> int:
        """Number of contacts with the ground, which come first."""
        return self.nc - self.n_pair_slots

    @property
    def features(self) -> int:
        """Contacts that each candidate may have; 0 without candidates."""
        return self.n_ground // self.n_candidates if self.n_candidates else 0

    @property
    def rows(self) -> int:
        """Rows of the contact problem when every block is active: 3 nc + ns."""
        return 3 * self.nc + self.ns

    def shapes(self) -> dict[str, Shape]:
        """Shape of every field of the step data, in memory order."""
        nq, nv, nc, ns, rows, nb = self.nq, self.nv, self.nc, self.ns, self.rows, self.nb
        moments = (self.n_moments,)
        now: dict[str, Shape] = dict(zip(
            STATE, ((nq,), (nv,), (nc, 3), (nc, 3, 3), (nc,), (nc,), (nc, MEMORY_NUMBERS), (4,)),
            strict=True,
        ))  # fmt: skip
        return {
            'clock': (3,), **now, **{f'{name}_start': shape for name, shape in now.items()},
            'impulse': (rows,), 'delay_line': (self.n_delay, self.n_joints),
            'lagged_effort': (self.n_lags,), 'gravity': (3,), 'time_step': (1,),
            'command': (self.n_joints,), 'effort': (self.n_joints,), 'tau': (nv,),
            'nonlinear_effects': (nv,), 'added_inertia': (nv,), 'transport': (nv,),
            'v_free': (nv,), 'v_next': (nv,), 'acceleration': (nv,), 'friction': (nc,),
            'lower': (ns,), 'upper': (ns,), 'interval_gap': (ns,), 'active': (nc,),
            'interval_active': (ns,), 'springs': (SPRING_NUMBERS,), 'u_start': (rows,),
            'u_free': (rows,), 'u_next': (rows,), 'bias': (rows,), 'restitution_bias': (nc,),
            'contact_force': (nc, 3), 'contact_velocity': (nc, 3), 'normal_force': (nc,),
            'slip_speed': (nc,), 'contact_mode': (nc,),
            'bilateral_jacobian': (nb, nv), 'bilateral_bias': (nb,),
            'bilateral_impulse': (nb,), 'bilateral_rate': (nb,), 'bilateral_error': (nb,),
            'torsional_friction': moments, 'rolling_friction': moments,
            'contact_moment': (*moments, 3), 'roll_axis': (*moments, 3), 'solver': (3,),
        }  # fmt: skip

    def work_shapes(self) -> dict[str, Shape]:
        """Shape of every field of `numbers` behind the step data: work, then constants."""
        nv, nc, ns, rows, bodies = self.nv, self.nc, self.ns, self.rows, self.n_bodies
        joints, limits, nb = (self.n_joints,), (self.n_limits, 2), self.nb
        formed, deep = (self.n_formed, self.n_formed), self.n_deep
        return {
            # kinematic tree at the present state (dynamics)
            'origin': (3,), 'pose': (bodies, 12), 'columns': (nv, 6),
            'world_inertia': (bodies, 10), 'composite': (bodies, 10), 'mass_matrix': formed,
            'twist': (bodies, 6), 'bias_acceleration': (bodies, 6), 'body_wrench': (bodies, 6),
            'inertia': formed, 'factor': formed, 'displacement': (nv,), 'momentum': (nv,),
            'carried': (self.n_flyers, 9),
            'fast': (2,), 'undamped_factor': formed, 'undamping': (nv,),
            # deep trees; the factor of M̂, then that of M̂ − h D
            'mass_diagonal': (deep,), 'base_columns': (deep, BASE_NUMBERS),
            'articulated': (2 * deep, FACTOR_NUMBERS), 'articulated_force': (deep, 6),
            'articulated_body': (bodies if deep else 0, BODY_NUMBERS),
            # rows of contacts and intervals at the start
            'jacobian_transposed': (nv, rows),
            # active rows of the contact problem
            'delassus': (rows * rows,), 'row_response': (nv * max(rows, 0 if deep else nv),),
            'g': (rows,),
            'row_free': (rows,), 'row_start': (rows,), 'row_friction': (nc,), 'row_gap': (nc,),
            'row_impulse': (rows,), 'row_lower': (ns,), 'row_upper': (ns,),
            'row_interval_gap': (ns,), 'row_weight': (rows,), 'row_memory': (nc, MEMORY_NUMBERS),
            'row_memory_next': (nc, MEMORY_NUMBERS), 'guard': (self.n_islands, 5),
            'island_solver': (self.n_islands, 3), 'rest_trial': (4,),
            # scratch of the solvers, one vector of which may be a velocity of the tree
            'cone_work': (CONE_VECTORS, max(rows, nv)), 'newton_matrix': (rows * rows,),
            'law_vectors': (SCRATCH_VECTORS, rows),
            # constants of robot, ground and model
            'placement': (bodies, 13), 'body': (bodies, 10), 'armature': (nv,), 'damping': (nv,),
            'joint_stiffness': (self.n_springs,), 'joint_rest': (self.n_springs,),
            'implicit_springs': (1,), 'total_mass': (1,),
            'offset': (self.n_candidates, 3), 'radius': (self.n_candidates,),
            'near_facets': (self.n_candidates if self.features > 1 else 0, LISTED + MOST_LISTED),
            'terrain': (TERRAIN_DATA,), 'restitution': (nc,), 'stabilisation': (2,),
            'default_friction': (nc,), 'default_restitution': (nc,),
            'inverse_weight': (rows,), 'interval_lower': (ns,), 'interval_upper': (ns,),
            'reach': (4,), 'damping_inertia': (1,), 'law': (LAW_NUMBERS,),
            'support_command': (nc,), 'limit_share': limits, 'limit_range': limits,
            'limit_restitution': (ns,),
            # contacts between bodies
            'solid_place': (self.n_solids, 12), 'solid_size': (self.n_solids, 4),
            'solid_reach': (self.n_solids,), 'solid_pose': (self.n_solids, 12),
            'pair_weight': (self.n_pairs,), 'pair_drift': (3 * self.n_pair_slots,),
            'island_box': (self.n_islands + 1 if self.n_pairs else 0, 6),
            'shapes': (self.n_shape_numbers,), 'carrier_box': (self.n_carriers, CARRIER_SIZES),
            'clearances': (self.n_carriers, CLEARANCE_NUMBERS),
            'solid_clearances': (self.n_solids if self.n_grounded else 0, CLEARANCE_NUMBERS),
            'on_face': (self.n_on_face, CANDIDATE_NUMBERS),
            'corner_room': (self.n_solids if self.n_grounded else 0, 12 + MOST_ROOMS),
            'solid_facets': (self.n_solids if self.n_grounded else 0, LISTED + MOST_LISTED),
            'flat_spots': (self.n_solids if self.n_grounded else 0, FLAT_NUMBERS),
            'ground_edges': (MOST_EDGES + 1 if self.n_grounded else 0, EDGE_ROW),
            # moments of contacts
            'roll_compliance': (self.n_moments,), 'roll_softness': (self.n_moments, 3),
            # bilateral rows, with damping and without where there are two
            'bilateral_response': (2 * nb, nv), 'bilateral_matrix': (2 * nb, nb),
            'bilateral_factor': (2 * nb, nb), 'bilateral_gram': (2 * nb, nb),
            'bilateral_share': (2 * nb, rows), 'bilateral_scratch': (nb, nb),
            'bilateral_coupling': (nb, rows), 'bilateral_drift': (nb,),
            'bilateral_places': (self.n_constraints, CONSTRAINT_PLACES),
            'bilateral_laws': (self.n_constraints, CONSTRAINT_LAW),
            'kept_jacobian': (nb, nv), 'projection': (nv if nb else 0,),
            'projection_impulse': (nb,), 'projected_q': (self.nq if nb else 0,),
            # controller
            'external': (nv,), 'target': joints, 'target_velocity': joints,
            'feed_forward': joints, 'kp': joints, 'kd': joints, 'wrench': (6,),
            'wrench_point': (3,),
            # actuators
            'effort_limit': joints, 'velocity_limit': joints, 'saturation_effort': joints,
            'lag_decay': joints,
        }  # fmt: skip

    def index_shapes(self) -> dict[str, Shape]:
        """Shape of every field of `indices`."""
        nv, nc, ns, rows, nb = self.nv, self.nc, self.ns, self.rows, self.n_bodies
        joints = (self.n_joints,)
        return {
            'status': (1,), 'control': (1,), 'integrator': (1,), 'external_terms': (1,),
            'counts': (5,), 'options': (1,), 'ground': (9,), 'wrench_body': (1,),
            'kind': (nb,), 'parent': (nb,), 'q_index': (nb,), 'v_index': (nb + 1,),
            'dof_parent': (nv,), 'limb': (nv,), 'rooted': (1,), 'held': (nv,), 'floats': (nv,),
            'tree_begin': (nv,), 'tree_end': (nv,), 'tree_rooted': (nv,), 'tree_parent': (nv,),
            'tree_limb': (nv,), 'tree_task': (7,), 'deep_task': (4,),
            'free_flyer_q': (self.n_flyers,), 'free_flyer_v': (self.n_flyers,),
            'flyer_end': (self.n_flyers,),
            'candidate_body': (self.n_candidates,), 'leaf_dof': (self.n_ground,),
            'interval_dof': (ns,),
            'interval_end': (ns,), 'interval_some_dof': (ns,), 'contact_island': (nc,),
            'interval_island': (ns,), 'island_waits': (self.n_islands,), 'dof_island': (nv,),
            'island_first': (2 * self.n_islands,), 'island_next': (nc + ns,),
            'joined_island': (self.n_islands,), 'solid_body': (self.n_solids,),
            'pair_groups': (self.n_pair_groups * GROUP_NUMBERS,), 'solid_island': (self.n_solids,),
            'pairs': (self.n_pairs * PAIR_NUMBERS,), 'pair_counts': (2,), 'in_use': (1,),
            'pair_search': (4,), 'shape_begin': (self.n_solids,),
            'carriers': (self.n_carriers * CARRIER_NUMBERS,),
            'limit_q': (self.n_limits,),
            'limit_other_q': (self.n_limits,),
            'spring_q': (self.n_springs,), 'spring_v': (self.n_springs,),
            'joint_q': joints, 'joint_v': joints, 'joint_unbounded': joints, 'delay': joints,
            'bilateral': (4,), 'bilateral_order': (2 * self.nb,), 'bilateral_owner': (self.nb,),
            'bilateral_indices': (self.n_constraints * CONSTRAINT_INDICES,),
            'moments': (2,), 'moment_rounds': (self.n_moments,),
            'row_of': (rows,), 'row_leaf': (rows,), 'mode': (rows,), 'mode_row': (rows,),
        }  # fmt: skip

    @cached_property
    def layout(self) -> dict[str, tuple[int, int, Shape]]:
        """Start, end and shape of every field and block in the step data."""
        places = consecutive(self.shapes())
        for block, suffix in (('now', ''), ('start', '_start')):
            begin, end = places[f'q{suffix}'][0], places[f'energy{suffix}'][1]
            places[block] = (begin, end, (end - begin,))
        return places

    @property
    def length(self) -> int:
        """Length of the step data."""
        return self.layout['solver'][1]

    __repr__ = one_line


def consecutive(shapes: dict[str, Shape], start: int = 0) -> dict[str, tuple[int, int, Shape]]:
    """Return first and last place, and shape, of consecutive fields."""
    places = {}
    for name, shape in shapes.items():
        stop = start + math.prod(shape)
        places[name] = (start, stop, shape)
        start = stop
    return places


def places_of(sizes: Sizes) -> dict[str, tuple[int, int, Shape]]:
    """Return first and last place, and shape, of every field: in `numbers`, or in `indices`."""
    work = consecutive(sizes.work_shapes(), sizes.length)
    return {**sizes.layout, **work, **consecutive(sizes.index_shapes())}


def layout_table(places: dict[str, tuple[int, int, Shape]]) -> NDArray[np.int64]:
    """Return the layout array of fields at these places."""
    table = [(start, stop, *(*shape, 1, 1)[:2]) for start, stop, shape in places.values()]
    return np.array(table, dtype=np.int64)


_EMPTY = Sizes(0, 0, 0, 0, 0)
FIELDS = tuple(places_of(_EMPTY))  # names of all fields in the order of their numbers
INDEX_FIELDS = frozenset(_EMPTY.index_shapes())  # those in `indices`
_NUMBERS = {name.upper(): number for number, name in enumerate(FIELDS)}
assert not _NUMBERS.keys() & globals().keys(), 'a field has the name of a constant'
globals().update(_NUMBERS)


def __getattr__(name: str) -> int:
    """Tell type checkers that every field has its number here."""
    raise AttributeError(f'contact_sim.arrays._fields has no field {name!r}')
