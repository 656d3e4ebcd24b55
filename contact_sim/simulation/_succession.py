"""A simulation that goes on with other robots: some come, some go, the others keep their state.

A model has one set of joints, so other robots need other arrays. `successor` makes them, which
takes milliseconds and may be done while the simulation steps; `carry_over` copies the state into
them between two steps. Everything is found by name: robots by theirs, contacts by contact points
and by pairs of solids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from contact_sim._validation import checked
from contact_sim.arrays._views import StepData
from contact_sim.collision._contact_slots import CONTACTS, NO_FEATURE
from contact_sim.errors import InvalidInput, UnknownName
from contact_sim.robot._constraints import Constraint
from contact_sim.robot._model import RobotModel
from contact_sim.robot._several_robots import RobotPart, parts_of
from contact_sim.simulation._placement import with_place_of
from contact_sim.simulation._simulator import Simulator
from contact_sim.simulation._user_values import MOMENT_COEFFICIENTS
from contact_sim.step._workspace import Workspace

Indices = NDArray[np.intp]
START = 'position', 'frame', 'gap', 'memory'
"""Fields of the contacts of a step, whose values at its start are kept as well."""
AXES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(('q', 'q_start'), ('q',)),
    **dict.fromkeys(
        ('v', 'v_start', 'tau', 'nonlinear_effects', 'transport', 'v_free', 'v_next',
         'acceleration'), ('v',),
    ),
    **dict.fromkeys(('impulse', 'u_start', 'u_free', 'u_next', 'bias'), ('row',)),
    **dict.fromkeys(('command', 'effort', 'lagged_effort'), ('joint',)),
    **dict.fromkeys(
        (*START, *(f'{name}_start' for name in START), 'friction', 'active', 'restitution_bias',
         'contact_force', 'contact_velocity', 'normal_force', 'slip_speed', 'contact_mode'),
        ('contact',),
    ),
    **dict.fromkeys(('lower', 'upper', 'interval_gap', 'interval_active'), ('interval',)),
    'contact_moment': ('moment',),
}  # fmt: skip
"""What the axes of a field of the step data count, the others are as they are."""
WHOLE = 'gravity', 'solver', 'clock'
"""Fields that do not depend on the robots."""


@checked
def with_robots(
    sim: Simulator,
    robot: RobotModel,
    q: Mapping[str, ArrayLike] | None = None,
    v: Mapping[str, ArrayLike] | None = None,
) -> Simulator:
    """Return a simulation of other robots that goes on from the state of `sim`, which stays.

    Robots of the same name in both, and the same joints and contact points, keep state, efforts on
    their way, memory and warm start: they move as if the others had never come, or had been there
    from the beginning. The others start as given. Time, ground, contact model, coefficients,
    gravity, constraints and shadows are those of `sim`; new contact points get the largest
    coefficients that there are. Observers stay with `sim`.

    Args:
        sim: a simulation; a robot alone has the name ''.
        robot: all robots from now on, of `joined` or one alone.
        q: configuration of new robots by name, (nq,) of each; left out: the standing pose at its
            place on the ground.
        v: velocity of new robots by name, (nv,) of each; left out: at rest.

    Raises:
        InvalidInput: no robot stays, a contact model or constraint that the robots cannot have, a
            state that is none.
        UnknownName: a state of a robot that is not new, a constraint of a robot that is gone.
    """
    if not any(True for _ in _staying(sim.robot, robot)):
        raise InvalidInput(
            f'robot {robot.name!r}: none of its robots is in the simulation, with the same name, '
            'joints and contact points; make a new Simulator'
        )
    new = successor(sim, robot)
    carry_over(sim, new, q, v)
    return new


def successor(sim: Simulator, robot: RobotModel) -> Simulator:
    """Return a simulation of other robots under the settings of `sim`, all standing.

    Raises:
        InvalidInput: a contact model that the robots cannot have.
    """
    work = sim._workspace
    new = Simulator(
        robot,
        contact_model=sim.model,
        terrain=sim.terrain,
        friction=float(work.default_friction.max(initial=0.0)),
        restitution=float(work.default_restitution.max(initial=0.0)),
        time_step=sim.time_step,
        gravity=sim.gravity,
        integrator=sim.integrator,
        torsional_friction=float(sim.torsional_friction.max(initial=0.0)),
        rolling_friction=float(sim.rolling_friction.max(initial=0.0)),
    )
    new.shadow = sim._shadows.models  # type: ignore[assignment]
    return new


def carry_over(
    sim: Simulator,
    new: Simulator,
    q: Mapping[str, ArrayLike] | None = None,
    v: Mapping[str, ArrayLike] | None = None,
) -> None:
    """Give the present state of `sim` to its `successor`; arguments as of `with_robots`."""
    staying = dict(_staying(sim.robot, new.robot))
    start_q, start_v = new._data.q.copy(), np.zeros(new.robot.nv)
    coming = {part.name: part for part in parts_of(new.robot) if part.name not in staying}
    for name in {**(q or {}), **(v or {})}:
        if name not in coming:
            raise UnknownName('new robot', name, coming)
    for name, configuration in (q or {}).items():
        start_q[coming[name].q] = coming[name].robot.checked_configuration(configuration)
    for name, velocity in (v or {}).items():
        start_v[coming[name].v] = coming[name].robot.checked_velocity(velocity)
    for before, now in staying.values():
        start_q[now.q], start_v[now.v] = sim._data.q[before.q], sim._data.v[before.v]
    new._data.q[:], new._data.v[:] = start_q, start_v
    _constrain(sim, new)
    _copy_values(sim._workspace, new._workspace, _corresponding(sim, new, staying))
    new._data.q[:], new._data.v[:] = start_q, start_v
    new._resume()
    new._failure = sim._failure


def adopt(sim: Simulator, new: Simulator) -> None:
    """Let `sim` go on as its successor, which nobody uses afterwards; observers stay."""
    observers = sim._observers
    vars(sim).update(vars(new))
    vars(sim)['_observers'] = observers


def _staying(before: RobotModel, now: RobotModel) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the robots that are in both worlds by name, with their parts of both."""
    old = {part.name: part for part in parts_of(before)}
    for part in parts_of(now):
        if part.name in old and _same(old[part.name].robot, part.robot):
            yield part.name, (old[part.name], part)


def _same(one: RobotModel, other: RobotModel) -> bool:
    """Return whether two robots have the same coordinates and contact points."""
    if one is other:
        return True
    of_one, of_other = (
        (robot.nq, robot.nv, list(robot.pinocchio_model.names), robot.joint_names,
         [point.name for point in robot.contact_points], len(robot.position_limits))
        for robot in (one, other)
    )  # fmt: skip
    return of_one == of_other


# --- Constraints


def _constrain(sim: Simulator, new: Simulator) -> None:
    """Let the constraints of users, and those of the robots, hold where they do."""
    of_old, of_new = sim.robot.constraints, new.robot.constraints
    given = sim.given_constraints
    declared: tuple[Constraint, ...] = (
        *(own for own in of_new if own not in of_old or own in given),
        *(one for one in given if one not in of_old),
    )
    if not declared and not new.given_constraints:
        return
    holding = {constraint.name: constraint for constraint in sim.constraints}
    placed = tuple(with_place_of(holding.get(one.name), one) for one in declared)
    new._constrain(placed, new._data.q.copy())
    new._declared = declared


# --- Which place of the arrays before corresponds to which one now


class Places(NamedTuple):
    """Places that correspond to each other, shape (n,) each."""

    before: Indices
    now: Indices


def _corresponding(
    sim: Simulator, new: Simulator, staying: Mapping[str, tuple[RobotPart, RobotPart]]
) -> dict[str, Places]:
    """Return the places that correspond to each other, by what they count."""
    old_work, new_work = sim._workspace, new._workspace
    old, now = old_work.sizes, new_work.sizes
    parts = staying.values()
    places = {
        name: _join((_range(getattr(a, name)), _range(getattr(b, name))) for a, b in parts)
        for name in ('q', 'v')
    }
    places['joint'] = _join((_range(a.joints), _range(b.joints)) for a, b in parts)
    features = old.features or now.features
    points = _join((a.contact_points, b.contact_points) for a, b in parts)
    ground = Places(_repeated(points.before, features), _repeated(points.now, features))
    places['moment'] = ground if old.n_moments and now.n_moments else _join(())
    places['contact'] = _join((ground, _pool_places(old_work, new_work)))
    # dry friction of dofs, three moments of every contact with the ground, limits
    interval = [_dry_places(old_work, new_work, places['v'])]
    n_dry, n_dry_now = (s.ns - s.n_limits - 3 * s.n_moments for s in (old, now))
    moments = places['moment']
    interval.append(
        Places(n_dry + _repeated(moments.before, 3), n_dry_now + _repeated(moments.now, 3))
    )
    limits = _limit_places(sim.robot, new.robot, staying)
    interval.append(
        Places(old.ns - old.n_limits + limits.before, now.ns - now.n_limits + limits.now)
    )
    places['interval'] = _join(interval)
    contact = places['contact']
    places['row'] = _join((
        Places(_repeated(contact.before, 3), _repeated(contact.now, 3)),
        Places(3 * old.nc + places['interval'].before, 3 * now.nc + places['interval'].now),
    ))  # fmt: skip
    return places


def _range(where: slice) -> Indices:
    return np.arange(where.start, where.stop)


def _repeated(places: Indices, times: int) -> Indices:
    """Return the places of `times` numbers at each place."""
    return np.asarray((times * places[:, None] + np.arange(times)).ravel(), dtype=np.intp)


def _join(places: Iterable[tuple[Indices, Indices]]) -> Places:
    pairs = [(np.zeros(0, dtype=np.intp),) * 2, *places]
    before, now = zip(*pairs, strict=True)
    return Places(np.concatenate(before), np.concatenate(now))


def _dry_places(old: Workspace, new: Workspace, dofs: Places) -> Places:
    """Return the interval rows of dry friction, one per dof that has some."""
    of_dof = [
        {dof: row for row, dof in enumerate(np.flatnonzero(work.robot.joint_friction).tolist())}
        for work in (old, new)
    ]
    rows = [
        (of_dof[0][a], of_dof[1][b])
        for a, b in zip(dofs.before.tolist(), dofs.now.tolist(), strict=True)
        if a in of_dof[0] and b in of_dof[1]
    ]
    return Places(*np.array(rows, dtype=np.intp).reshape(-1, 2).T)


def _limit_places(
    before: RobotModel, now: RobotModel, staying: Mapping[str, tuple[RobotPart, RobotPart]]
) -> Places:
    """Return the limits of positions, which stand robot by robot."""
    starts = []
    for robot in (before, now):
        parts = parts_of(robot)
        counts = np.cumsum([0, *(len(part.robot.position_limits) for part in parts)])
        starts.append({part.name: counts[part.number] for part in parts})
    return _join(
        (starts[0][name] + np.arange(n), starts[1][name] + np.arange(n))
        for name, (part, _) in staying.items()
        for n in (len(part.robot.position_limits),)
    )


def _pair_names(robot: RobotModel) -> list[tuple[str, str]]:
    """Return the solids of each pair, '' for the ground, in the order of their numbers."""
    names = [solid.name for solid in robot.collisions.solids]
    names.append('')  # of index −1
    return [(names[i], names[j]) for i, j in robot.collisions.solids_of_pairs.tolist()]


def _pool_places(old: Workspace, new: Workspace) -> Places:
    """Return the slots of contacts of bodies at the start of the last step, in order of pairs."""
    first, features = old.sizes.n_ground, old.data.feature_start[old.sizes.n_ground :]
    if not (features != NO_FEATURE).any() or not new.sizes.n_pair_slots:
        return _join(())
    names, number = _pair_names(old.robot), {}
    for k, pair in enumerate(_pair_names(new.robot)):
        number[pair] = k
    used = [
        (number[names[int(feature) // CONTACTS]], first + slot)
        for slot, feature in enumerate(features.tolist())
        if feature != NO_FEATURE and names[int(feature) // CONTACTS] in number
    ]
    used = sorted(used)[: new.sizes.n_pair_slots]
    slots = new.sizes.n_ground + np.arange(len(used))
    return Places(np.array([slot for _, slot in used], dtype=np.intp), slots)


# --- Values


def _copy_values(old: Workspace, new: Workspace, places: Mapping[str, Places]) -> None:
    """Copy what the robots that stay have in both arrays."""
    before, now = old.data, new.data
    now.clear_history()
    for name in WHOLE:
        getattr(now, name)[:] = getattr(before, name)
    for name, axes in AXES.items():
        source, target = getattr(before, name), getattr(now, name)
        if source.size and target.size:
            chosen = [places[axis] for axis in axes]
            values = source[np.ix_(*(one.before for one in chosen))]
            target[np.ix_(*(one.now for one in chosen))] = values
    _copy_features(old, new, places['contact'])
    _copy_delays(before, now, places['joint'])
    contact, moment = places['contact'], places['moment']
    for name in ('default_friction', 'default_restitution'):
        values, coefficients = getattr(old, name), getattr(new, name)
        coefficients[contact.now] = values[contact.before]
        between = values[old.sizes.n_ground :]
        if len(between):
            coefficients[new.sizes.n_ground :] = between[0]
    for name in MOMENT_COEFFICIENTS:
        getattr(now, name)[moment.now] = getattr(before, name)[moment.before]
    new.stabilisation[:] = old.stabilisation
    new.pair_counts[:] = old.pair_counts


def _copy_features(old: Workspace, new: Workspace, contacts: Places) -> None:
    """Copy the features of contacts at the start of the last step, with other numbers of pairs."""
    features = old.data.feature_start[contacts.before]
    target = new.data.feature_start
    target[new.sizes.n_ground :] = NO_FEATURE
    number = {pair: k for k, pair in enumerate(_pair_names(new.robot))}
    names = _pair_names(old.robot)
    between = np.flatnonzero(contacts.before >= old.sizes.n_ground)
    for k in between.tolist():
        pair, contact = divmod(int(features[k]), CONTACTS)
        features[k] = float(CONTACTS * number[names[pair]] + contact)
    target[contacts.now] = features


def _copy_delays(before: StepData, now: StepData, joints: Places) -> None:
    """Copy the efforts on their way to delayed actuators, the newest first."""
    rows = min(len(before.delay_line), len(now.delay_line))
    now.delay_line[:rows, joints.now] = before.delay_line[:rows, joints.before]
