"""Named access to the step data, and views of fields in kernels.

The views of kernels are made from addresses: a slice or reshape of numba calls functions of its
runtime to share ownership and to find strides, which is a quarter of a step. A view owns nothing:
the arrays must outlive it, as those that Python passes to an entry do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np import arrayobj

from contact_sim._types import Array, Indices
from contact_sim.arrays._fields import Sizes
from contact_sim.errors import summary
from contact_sim.solvers._jit import (
    ITEM,
    call_with_arrays,
    kernel,
    part_on_demand,
)

# The step data: one flat array, so that snapshot, restore and report are one copy each.

PERSISTENT_FIELDS = ('impulse', 'memory', 'delay_line', 'lagged_effort', 'contact_moment')
"""Fields besides the state that the next step reads; zero after a reset."""
TRANSIENT_FIELDS = (
    'command', 'effort', 'tau', 'acceleration', 'v_free', 'active', 'interval_active', 'u_start',
    'u_free', 'u_next', 'bias', 'restitution_bias', 'contact_force', 'contact_velocity',
    'normal_force', 'slip_speed', 'contact_mode', 'solver',
)  # fmt: skip
"""Results of the last step that the next one does not read."""


class StepData:
    """Named views of one flat buffer. u = J v in the contact frames, rows (t1, t2, n) per contact.

    Attributes:
        clock: time after the step [s], time at the last reset [s], steps since then, shape (3,).
        q: configuration after the step, shape (nq,).
        v: velocity after the step, shape (nv,).
        position: contact points at q [m], world, shape (nc, 3).
        frame: rows t1, t2, n of the contact frames at q, shape (nc, 3, 3).
        gap: signed distance at q [m], shape (nc,).
        impulse: impulses on the robot in the frames of the start [N s], shape (3 nc + ns,); also
            the guess of the next step.
        delay_line: commands of the steps before, the last one first, as many as the longest delay
            of an actuator [N m], shape (n_delay, n_joints).
        lagged_effort: efforts behind the first-order lag [N m], shape (n_joints,), or none, (0,).
        memory: memory of the contact model per contact: a vector in world axes and a number, zero
            after a reset and a switch of the model, shape (nc, MEMORY_NUMBERS).
        feature: which feature of the terrain each contact is with, −1 for none, shape (nc,).
        energy: kinetic energy [J], then Σ m c of all bodies [kg m], world, shape (4,).
        now: q, v, position, frame, gap, feature, memory and energy as one block.
        start: the same before the step, as one block; each by name with `_start`.
        gravity: gravity in world [m/s²], shape (3,).
        time_step: h [s], shape (1,).
        command: joint effort commanded in this step [N m], shape (n_joints,).
        effort: joint effort behind the actuators [N m], shape (n_joints,).
        tau: applied generalized force, effort and external wrenches [N, N m], shape (nv,).
        nonlinear_effects: C v + g at the start [N, N m], shape (nv,).
        added_inertia: what is on the diagonal of M̂ besides the bodies, shape (nv,).
        transport: ω × v_lin of free flyers [m/s²], shape (nv,).
        v_free: velocity without contact, axes of the start, shape (nv,).
        v_next: velocity after the step, axes of the start, shape (nv,).
        acceleration: Pinocchio's v̇ over the step, shape (nv,).
        friction: μ that acted [-], shape (nc,).
        lower: lower bounds of the impulses of the interval rows [N s], shape (ns,).
        upper: upper bounds [N s], shape (ns,).
        interval_gap: position error of the interval rows [m, rad], 0 for friction, shape (ns,).
        active: 1 where the contact took part in the problem, shape (nc,).
        interval_active: 1 where the interval row took part, shape (ns,).
        springs: of the contact model, `LinearSprings`, zero without, shape (5,).
        u_start: J v before the step [m/s, rad/s], shape (3 nc + ns,).
        u_free: J v_free, same shape.
        u_next: J v_next, same shape.
        bias: b, same shape.
        restitution_bias: the part of b_n that asks for restitution [m/s], shape (nc,).
        contact_force: force on the robot of every contact [N], world, shape (nc, 3).
        contact_velocity: velocity of the contact points after the step [m/s], same shape.
        normal_force: normal force of every contact [N], shape (nc,).
        slip_speed: tangential speed after the step [m/s], shape (nc,).
        contact_mode: 0 open, 1 stick, 2 slip, shape (nc,).
        torsional_friction: coefficients of the contacts with the ground [m], shape (n_ground,), or
            none, (0,), where all contacts are without moments.
        rolling_friction: likewise.
        contact_moment: moment on the robot of every contact [N m], world, shape (n_ground, 3) or
            (0, 3); also the guess of the next step.
        roll_axis: first axis of their rolling friction, world, same shape.
        solver: status code, iterations, residual of the solver's own criterion.
    """

    clock: Array
    q: Array
    v: Array
    position: Array
    frame: Array
    gap: Array
    feature: Array
    memory: Array
    energy: Array
    now: Array
    start: Array
    impulse: Array
    delay_line: Array
    lagged_effort: Array
    q_start: Array
    v_start: Array
    position_start: Array
    frame_start: Array
    gap_start: Array
    feature_start: Array
    memory_start: Array
    energy_start: Array
    gravity: Array
    time_step: Array
    command: Array
    effort: Array
    tau: Array
    nonlinear_effects: Array
    added_inertia: Array
    transport: Array
    v_free: Array
    v_next: Array
    acceleration: Array
    friction: Array
    lower: Array
    upper: Array
    interval_gap: Array
    active: Array
    interval_active: Array
    springs: Array
    u_start: Array
    u_free: Array
    u_next: Array
    bias: Array
    restitution_bias: Array
    contact_force: Array
    contact_velocity: Array
    normal_force: Array
    slip_speed: Array
    contact_mode: Array
    torsional_friction: Array
    rolling_friction: Array
    contact_moment: Array
    roll_axis: Array
    solver: Array

    def __init__(self, sizes: Sizes, buffer: Array | None = None) -> None:
        self.sizes = sizes
        self.buffer: Array = np.zeros(sizes.length) if buffer is None else buffer

    def clear_history(self) -> None:
        """Restart at the present q and v: clear the results and the memory of earlier steps."""
        for name in (*PERSISTENT_FIELDS, *TRANSIENT_FIELDS):
            getattr(self, name)[:] = 0.0
        self.start[:] = self.now
        self.v_next[:] = self.v

    def __getattr__(self, name: str) -> Array:
        """Return the view called `name`, made on first use."""
        layout = self.__dict__['sizes'].layout
        if name not in layout:
            raise AttributeError(f'StepData has no field {name!r}')
        start, stop, shape = layout[name]
        view: Array = self.buffer[start:stop].reshape(shape)
        self.__dict__[name] = view
        return view

    def __repr__(self) -> str:
        return summary(self, time=self.clock[0], q=self.q, v=self.v, gap=self.gap)


# Views of fields inside kernels.

NUMBERS, INDICES, LAYOUT = range(3)  # places in `Arrays`
COLUMNS = 4  # columns of the layout array


class Arrays(NamedTuple):
    """The arrays of one robot inside kernels, by their addresses."""

    numbers: int
    indices: int
    layout: int


@kernel
def arrays_of(numbers, indices, layout, world):
    """Return the arrays of one world: row `world` of `numbers` and of `indices`."""
    return Arrays(
        int(numbers[world].ctypes.data), int(indices[world].ctypes.data), int(layout.ctypes.data)
    )


WORLDS, NUMBERS_STEP, INDICES_STEP, WORLD_NUMBERS = range(3, 7)
"""Places behind those of the arrays in what `places_of_worlds` returns, and how many there are."""


def places_of_worlds(numbers: Array, indices: Indices, layout: Indices) -> Indices:
    """Return addresses of three arrays, number of worlds, and bytes from world to world in two."""
    return np.array([
        *(array.ctypes.data for array in (numbers, indices, layout)),
        len(numbers), numbers.strides[0], indices.strides[0],
    ])  # fmt: skip


def address_of(places: Indices) -> int:
    """Return the address of the integers of `places_of_worlds`, which must outlive its use."""
    return int(places.ctypes.data)


@kernel
def arrays_at(places, world):
    """Return the arrays of one world from the integers of `places_of_worlds`."""
    return Arrays(
        places[NUMBERS] + world * places[NUMBERS_STEP],
        places[INDICES] + world * places[INDICES_STEP], places[LAYOUT],
    )  # fmt: skip


Shape = Callable[[Any, Callable[[int], Any], list[Any]], list[Any]]
"""(builder, column of the layout → its value, further arguments) → sizes of a view."""


def _view(data: Any, which: int, ndim: int, shape: Shape, extra: int = 0) -> tuple[Any, Any]:
    """Return signature and code of a view of a field: (data, field, `extra` integers) → array."""
    kind = types.Array(types.float64 if which == NUMBERS else types.int64, ndim, 'C')
    parameters = (data, types.intp, *(extra * [types.intp]))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays, field, *rest = arguments
        integer = context.get_value_type(types.intp)

        def start(place: int, item: Any) -> Any:
            return builder.inttoptr(builder.extract_value(arrays, place), item.as_pointer())

        layout, first = start(LAYOUT, integer), builder.mul(field, integer(COLUMNS))

        def column(k: int) -> Any:
            return builder.load(builder.gep(layout, [builder.add(first, integer(k))]))

        sizes, strides = shape(builder, column, rest), [integer(ITEM)]
        for size in sizes[:0:-1]:
            strides.insert(0, builder.mul(strides[0], size))
        numbers = start(which, context.get_value_type(kind.dtype))
        view = arrayobj.make_array(signature.return_type)(context, builder)
        arrayobj.populate_array(
            view, data=builder.gep(numbers, [column(0)]),
            shape=cgutils.pack_array(builder, sizes),
            strides=cgutils.pack_array(builder, strides), itemsize=integer(ITEM), meminfo=None,
            parent=None,
        )  # fmt: skip
        return view._getvalue()

    return kind(*parameters), codegen


def _three_by_three(builder: Any, column: Callable[[int], Any], rest: list[Any]) -> list[Any]:
    count = column(2)
    return [count, count.type(3), count.type(3)]


@intrinsic
def vector(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `numbers` as a vector."""
    return _view(data, NUMBERS, 1, lambda builder, column, _: [builder.sub(column(1), column(0))])


@intrinsic
def matrix(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `numbers` as a matrix."""
    return _view(data, NUMBERS, 2, lambda _, column, __: [column(2), column(3)])


@intrinsic
def front(typingctx: Any, data: Any, field: Any, rows: Any, columns: Any) -> Any:
    """Return the front of a flat field of `numbers` as a matrix (rows, columns)."""
    return _view(data, NUMBERS, 2, lambda _, __, sizes: sizes, 2)


@kernel
def square(data, field, n):
    """Return the front of a flat field of `numbers` as a matrix (n, n)."""
    return front(data, field, n, n)


@intrinsic
def frames(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `numbers` as 3x3 matrices, shape (n, 3, 3)."""
    return _view(data, NUMBERS, 3, _three_by_three)


@intrinsic
def integers(typingctx: Any, data: Any, field: Any) -> Any:
    """Return a field of `indices` as a vector."""
    return _view(data, INDICES, 1, lambda builder, column, _: [builder.sub(column(1), column(0))])


# Stages of a step that many simulations never run.

ADDRESSES = types.void(types.intp, types.intp, types.intp)
"""Signature of a function that takes the arrays of a step by their addresses."""


def run_at_addresses(numbers: Any, indices: Any, layout: Any) -> None:
    """Run `part` on the arrays of a step by their addresses."""
    part(Arrays(numbers, indices, layout))


def run_through_address(data: Any) -> None:
    """Run a stage through its address."""
    call_with_arrays(address(), data)


part: Any = None
address: Any = None


def stage_on_demand(function: Callable[[Any], None]) -> Any:
    """Return `function(data)` as a kernel that is compiled when it first runs."""
    return part_on_demand(function, ADDRESSES, run_at_addresses, run_through_address)
