"""Score steps of any simulator by the residuals of our own steps (theory 2.15).

The steps are written into the step data of a `Workspace` of our robot model, and the kernel that
fills `report.residuals` reads them there: each residual has one definition. From the steps come
states, efforts, gaps, normals, friction and forces; from the robot model M̂, v_f, J at the contact
points, and G.

    u⁺ = J v⁺            the velocity that the contacts really have
    u_f = u⁺ − G λ       so that w = u⁺ + b: the laws judge the motion that took place, with
                         the forces that are said to have acted
    M̂ (v⁺ − v_f) − Jᵀ λ  whether these forces explain this motion: `momentum`

Under a time-stepping law u⁺ = G λ + J v_f as well. Where forces do not explain the motion the two
differ: with velocity='impulses' the laws see w = G λ + J v_f + b, as in `report.residuals`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim._types import Array
from contact_sim._validation import checked
from contact_sim.collision._contact_slots import UNUSED_GAP
from contact_sim.collision._terrain import Plane
from contact_sim.compare._runs import APART, KEPT, UNITS, WELL_INSIDE, aligned
from contact_sim.contact_models._base import Stepper, TimeStepping
from contact_sim.contact_models._ncp import Ncp
from contact_sim.contact_models._stages import READY
from contact_sim.contact_models.guarantees import LAWS
from contact_sim.errors import InvalidInput, UnknownName, one_line
from contact_sim.judge._steps import Steps
from contact_sim.robot._collision_pairs import NO_COLLISIONS
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._judge import NOWHERE, judge_steps
from contact_sim.step._problem import Residuals
from contact_sim.step._workspace import Workspace

# --- What is scored.

RENAMED = {'slip': 'creep', 'force_at_distance': 'force_apart'}
"""Law of compare/_runs.py that is counted otherwise than the residual of its name: our name."""
LIMITS = {RENAMED.get(law, law): limit for law, limit in KEPT.items()}
"""Largest value that counts as kept; per kg but for PER_ROBOT."""
PER_ROBOT = ('penetration', 'creep')
"""Limits that do not grow with the mass."""
NAMES = (*Residuals._fields, 'energy', 'creep', 'force_apart')
"""Everything that is scored."""
MEANING = {
    **{RENAMED.get(law, law): meaning for law, meaning in LAWS.items()},
    'ncp': 'Signorini, Coulomb and maximum dissipation at once [N s]',
    'slip': 'speed along the ground of a loaded contact, sliding ones included [m/s]',
    'energy': 'change of energy that no force accounts for [J]',
}
"""What a row of the table measures."""
ROWS = (
    'penetration', 'force_apart', 'signorini', 'cone', 'dissipation', 'ncp', 'creep', 'slip',
    'momentum', 'energy',
)  # fmt: skip
"""Rows of the table, in their order."""
UNIT = {
    **{RENAMED.get(law, law): unit for law, unit in UNITS.items()},
    'slip': 'm/s', 'energy': 'J',
}  # fmt: skip
"""Units of the rows."""
OF_FORCES = (
    'signorini', 'cone', 'dissipation', 'ncp', 'interval', 'dissipated', 'bias_work',
    'force_at_distance', 'force_apart', 'momentum', 'energy_correction',
)  # fmt: skip
"""Residuals that need contact forces."""
OF_FRICTION = ('cone', 'dissipation', 'ncp', 'dual')
"""Residuals that need friction coefficients."""
OF_EFFORTS = ('momentum', 'energy', 'energy_actuation')
"""Residuals that need joint efforts."""
OF_CONTACTS = (
    'penetration', 'slip', 'creep', 'dual', 'energy_contact', *OF_FORCES,
)  # fmt: skip
"""Residuals that need contacts."""


@dataclass(frozen=True, eq=False)
class Score:
    """Residuals of a trajectory, one number per step; `score['cone']` is an array of shape (n,).

    Names are the fields of `step.Residuals`, and `energy` (the integration residual), `creep` (the
    speed along the ground of a loaded contact well inside its friction cone) and `force_apart`
    (normal impulse over a gap above 10 µm): the last two are what the limits of
    `contact_sim.compare` are for.
    """

    robot: str
    """Name of the robot."""
    source: str
    """Where the steps come from."""
    mass: float
    """Mass of the robot [kg]: most limits are per kg."""
    time: Array
    """Time after each step [s], shape (n,)."""
    residuals: Mapping[str, Array]
    """By name, shape (n,) each; NaN where it cannot be judged."""
    missing: Mapping[str, str]
    """Residual that is NaN: what is missing."""
    notes: tuple[str, ...] = ()
    """What a reader should know, as sentences."""

    def __getitem__(self, name: str) -> Array:
        """Return a residual of every step, shape (n,).

        Raises:
            UnknownName: no such residual.
        """
        if name not in self.residuals:
            raise UnknownName('residual', name, self.residuals)
        return self.residuals[name]

    def maximum(self, name: str) -> float:
        """Return the largest size of a residual; NaN where it was not judged."""
        return float(np.abs(self[name]).max())

    @checked
    def percentile(self, name: str, share: float = 99.0) -> float:
        """Return a percentile, in [0, 100], of the size of a residual over the steps."""
        if not 0.0 <= share <= 100.0:
            raise InvalidInput(f'share = {share:g}: expected a percentage, 0 to 100')
        return float(np.percentile(np.abs(self[name]), share))

    def limit(self, name: str) -> float:
        """Return the largest value that counts as kept; NaN for a residual without a limit.

        Raises:
            UnknownName: no such residual.
        """
        if name not in self.residuals:
            raise UnknownName('residual', name, self.residuals)
        if name not in LIMITS:
            return np.nan
        return LIMITS[name] * (1.0 if name in PER_ROBOT else self.mass)

    def first_beyond(self, name: str) -> float:
        """Return the time after the first step beyond the limit [s]; NaN if there is none."""
        beyond = np.abs(self[name]) > self.limit(name)
        return float(self.time[np.argmax(beyond)]) if beyond.any() else np.nan

    @cached_property
    def broken(self) -> dict[str, float]:
        """Name of a residual that exceeds its limit: when first [s], the earliest one first."""
        times = {name: self.first_beyond(name) for name in LIMITS}
        return dict(
            sorted(
                ((name, time) for name, time in times.items() if not np.isnan(time)),
                key=lambda item: item[1],
            )
        )

    def table(self) -> str:
        """Return a table with a row per residual, and what it says in words."""
        cells = [['residual', 'largest', '99 %', 'median', 'limit', 'first beyond', 'measures']]
        for name in ROWS:
            figures = [self.maximum(name), self.percentile(name), self.percentile(name, 50.0)]
            limit, first = self.limit(name), self.first_beyond(name)
            if name in self.missing:
                beyond = 'not judged'
            elif np.isnan(limit):
                beyond = '-'
            else:
                beyond = 'kept' if np.isnan(first) else f'{first:.4g} s'
            cells.append([
                f'{name} [{UNIT[name]}]',
                *('-' if np.isnan(x) else f'{x:.2e}' for x in figures),
                '-' if np.isnan(limit) else f'{limit:.1e}', beyond,
                MEANING[name].split(':')[0].split(' [')[0],
            ])  # fmt: skip
        lines = [f'{self.title}\n', aligned(cells), '', self.verdict]
        reasons: dict[str, list[str]] = {}
        for name in ROWS:
            if name in self.missing:
                reasons.setdefault(self.missing[name], []).append(name)
        lines += [f'not judged: {", ".join(names)}: {why}' for why, names in reasons.items()]
        return '\n'.join([*lines, *(f'note: {note}' for note in self.notes)])

    @property
    def title(self) -> str:
        """Robot, source, number of steps and simulated time, in one line."""
        source = f', {self.source}' if self.source else ''
        return f'{self.robot}{source}: {len(self.time)} steps to t = {self.time[-1]:.4g} s'

    @property
    def verdict(self) -> str:
        """Which laws are broken, in one sentence."""
        if self.broken:
            name, time = next(iter(self.broken.items()))
            return f'beyond the limits: {", ".join(self.broken)}; first {name} at t = {time:.4g} s'
        judged = [name for name in LIMITS if name not in self.missing]
        return f'within the limits: {", ".join(judged)}' if judged else 'nothing was judged'

    def as_dict(self) -> dict[str, object]:
        """Return title, verdict and the figures of every residual, as values for JSON.

        What was not judged is None, with its reason under `missing`.
        """
        figures = {
            name: {
                'max': _number(self.maximum(name)),
                'p99': _number(self.percentile(name)),
                'median': _number(self.percentile(name, 50.0)),
                'limit': _number(self.limit(name)),
                'first_beyond': _number(self.first_beyond(name)),
            }
            for name in self.residuals
        }
        return {
            'robot': self.robot, 'source': self.source, 'steps': len(self.time),
            'time': float(self.time[-1]), 'verdict': self.verdict, 'residuals': figures,
            'missing': dict(self.missing), 'notes': list(self.notes),
        }  # fmt: skip

    __repr__ = one_line


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


# --- The score.


MOTION, IMPULSES = VELOCITIES = ('motion', 'impulses')


@checked
def judge(robot: RobotModel, steps: Steps, velocity: str = MOTION) -> Score:
    """Return the residuals of every step.

    Args:
        robot: our model of the robot: its inertias, joint damping and kinematics judge.
        steps: of any simulator.
        velocity: which velocity of the contacts the laws are about: that of the 'motion', so that
            forces that do not explain it show in `momentum` alone; or the one that the 'impulses'
            would give, as in `report.residuals`.

    Raises:
        InvalidInput: steps of another robot, sizes that do not fit, quaternions that are not unit,
            a robot with closed loops, which has constraint forces that `Steps` does not have.
        UnknownName: a body that the robot does not have, another velocity.
    """
    if velocity not in VELOCITIES:
        raise UnknownName('velocity', velocity, VELOCITIES)
    if velocity == IMPULSES and (steps.force is None or steps.effort is None):
        raise InvalidInput("velocity = 'impulses': needs contact forces and joint efforts")
    if steps.robot and steps.robot != robot.name:
        raise InvalidInput(f'the steps are those of robot {steps.robot!r}, not of {robot.name!r}')
    if robot.constraints:
        raise InvalidInput(f'robot {robot.name!r}: closed loops and couplings are not judged')
    arrays = ScoredArrays(robot, steps, velocity == MOTION)
    values = np.array([arrays.step(k) for k in range(steps.count)])
    residuals = {name: values[:, i] for i, name in enumerate(NAMES)}
    missing = missing_of(steps, arrays.work.sizes.ns)
    for name in missing:
        residuals[name] = np.full(steps.count, np.nan)
    for value in residuals.values():
        value.setflags(write=False)
    return Score(
        robot.name, steps.source, robot.total_mass, steps.time[1:], residuals, missing,
        (*steps.notes, *notes_of(robot, steps)),
    )  # fmt: skip


def missing_of(steps: Steps, n_intervals: int) -> dict[str, str]:
    """Return what cannot be judged, and why."""
    missing: dict[str, str] = {}

    def without(names: Sequence[str], reason: str) -> None:
        missing.update({name: reason for name in names if name not in missing})

    if steps.body is None:
        without(OF_CONTACTS, 'no contacts are given')
    if steps.force is None:
        without(OF_FORCES, 'no contact forces are given')
    if steps.friction is None:
        without(OF_FRICTION, 'no friction coefficients are given')
    if steps.effort is None:
        without(OF_EFFORTS, 'no joint efforts are given')
    if n_intervals and steps.interval_impulse is None:
        reason = 'no impulses of the dry friction and the limits of joints are given'
        without(('interval', 'energy_joint_friction'), reason)
    return missing


def notes_of(robot: RobotModel, steps: Steps) -> list[str]:
    """Return how residuals are counted where something is missing."""
    notes = []
    dry = float(robot.joint_friction.max(initial=0.0))
    if dry > 0.0 and steps.interval_impulse is None and steps.external is None:
        notes.append(
            f'the joints of our robot have dry friction, up to {dry:g} N m, and the steps have no '
            f'force of it: a momentum of up to {dry * float(steps.lengths.max()):.1e} may be that'
        )
    if steps.body is not None and (steps.force is None or steps.friction is None):
        which = 'touching' if steps.force is None else 'loaded'
        notes.append(f'creep counts every {which} contact: nothing says how near it is to sliding')
    if steps.force is None and steps.effort is not None:
        notes.append('energy: the work of the ground is that of the change of momentum')
    if steps.body is not None and (
        steps.next_gap is None or np.isnan(steps.next_gap[steps.present]).any()
    ):
        notes.append('gaps after a step that are not given are gap + h u_n')
    return notes


class ScoredArrays:
    """Step data of our robot in which the steps of somebody else are written.

    The robot has a contact point for every contact that one of its bodies has at one time; places
    and frames are those of the steps, never what is found on our ground.
    """

    def __init__(self, robot: RobotModel, steps: Steps, by_motion: bool) -> None:
        self.steps, self._by_motion = steps, by_motion
        self._q, self._v = checked_states(robot, steps)
        joints = [joint_of(robot, name) for name in steps.bodies]
        self._slot, owners = slots_of(steps, joints)
        points = [
            ContactPoint(f'contact {k}', joint, joint, np.zeros(3), 0.0)
            for k, joint in enumerate(owners)
        ]
        own = replace(robot, contact_points=tuple(points), collisions=NO_COLLISIONS)
        self._h = steps.lengths
        self.work = work = Workspace(own, Plane(), float(self._h[0]), formed=True)
        work.data.gravity[:] = robot.pinocchio_model.gravity.linear
        # efforts are those that acted: nothing limits or delays them
        for limit in (work.effort_limit, work.velocity_limit, work.saturation_effort):
            limit[:] = np.inf
        work.lag_decay[:], work.delay[:] = 0.0, 0
        stepper: Stepper = Ncp().bind(work)
        assert isinstance(stepper, TimeStepping)
        self._stepper = stepper
        shape = work.sizes.nv, work.sizes.ns
        for name, size in zip(('external', 'interval_impulse'), shape, strict=True):
            value = getattr(steps, name)
            if value is not None and value.shape[1] != size:
                raise InvalidInput(
                    f'Steps.{name}: {value.shape[1]} columns, expected {size}: robot '
                    f'{robot.name!r} has other joints, or other friction and limits of joints'
                )
        self._frames = frames_of(steps.normal) if steps.normal is not None else np.zeros(0)
        work.data.q[:], work.data.v[:] = self._q[0], self._v[0]
        stepper.update_contacts()

    def step(self, k: int) -> list[float]:
        """Return the numbers of NAMES of step k; steps come in their order."""
        steps, work, data = self.steps, self.work, self.work.data
        if data.time_step[0] != self._h[k]:
            work.set_time_step(float(self._h[k]))
        used = self._slot[k] >= 0 if steps.body is not None else np.zeros(0, dtype=bool)
        slot = self._slot[k][used] if steps.body is not None else np.zeros(0, dtype=np.int64)
        self._begin(k, used, slot)
        inertia = np.tril(work.inertia)
        inertia += np.tril(inertia, -1).T
        J = work.jacobian_transposed.T
        data.v_next[:] = self._in_start_axes(k)
        data.u_next[:] = J @ data.v_next
        if steps.contact_velocity is not None:
            rows = data.u_next[: 3 * work.sizes.nc].reshape(-1, 3)
            rows[slot] = np.einsum(
                'iab,ib->ia', self._frames[k, used], steps.contact_velocity[k, used]
            )
        self._load(k, used, slot)
        if self._by_motion:
            data.u_free[:] = data.u_next - J @ np.linalg.solve(inertia, J.T @ data.impulse)
        data.q[:], data.v[:] = self._q[k + 1], self._v[k + 1]
        self._stepper.update_contacts()
        data.gap[:] = UNUSED_GAP
        if steps.body is not None:
            data.gap[slot] = self._next_gap(k, used, slot)
        out = np.zeros(len(Residuals._fields))
        judge_steps(work.numbers, *work.arrays, 0, NOWHERE, np.empty((1, 0)), out[None])
        if steps.force is None:  # what a force that explains the motion would do
            change = data.v_next - data.v_free
            contact = 0.5 * (data.v_start + data.v_next) @ inertia @ change
            out[Residuals._fields.index('energy_contact')] = contact
        residuals = Residuals._make(out.tolist())
        return [*residuals, residuals.energy, *self._law_measures()]

    def _begin(self, k: int, used: NDArray[np.bool_], slot: NDArray[np.int64]) -> None:
        """Fill M̂, v_f and J of step k with its contacts."""
        steps, work, data = self.steps, self.work, self.work.data
        if steps.point is not None and steps.gap is not None:
            data.gap[:] = UNUSED_GAP
            gap, frame = steps.gap[k, used], self._frames[k, used]
            data.gap[slot], data.frame[slot] = gap, frame
            # J is that of the midpoint between body and ground: there the force acts
            data.position[slot] = steps.point[k, used] + 0.5 * gap[:, None] * frame[:, 2]
        work.command[:] = 0.0 if steps.effort is None else steps.effort[k]
        work.external[:] = 0.0 if steps.external is None else steps.external[k]
        if self._stepper.begin() != READY:
            raise InvalidInput(f'step {k}: its efforts are not finite')
        data.active[:] = 0.0
        data.active[slot] = 1.0 if steps.active is None else steps.active[k, used]
        data.friction[:] = 0.0
        if steps.friction is not None:
            data.friction[slot] = steps.friction[k, used]

    def _load(self, k: int, used: NDArray[np.bool_], slot: NDArray[np.int64]) -> None:
        """Fill the impulses; without forces a contact that stays closed counts as loaded."""
        steps, data, h = self.steps, self.work.data, self._h[k]
        nc = self.work.sizes.nc
        data.impulse[:] = 0.0
        rows = data.impulse[: 3 * nc].reshape(nc, 3)
        if steps.force is not None:
            rows[slot] = h * np.einsum('iab,ib->ia', self._frames[k, used], steps.force[k, used])
        elif steps.gap is not None:
            closed = (steps.gap[k, used] <= APART) & (self._next_gap(k, used, slot) <= APART)
            rows[slot, 2] = closed
        if steps.interval_impulse is None:
            data.interval_active[:] = 0.0
        else:
            data.impulse[3 * nc :] = steps.interval_impulse[k]
            data.interval_active[steps.interval_impulse[k] != 0.0] = 1.0

    def _next_gap(self, k: int, used: NDArray[np.bool_], slot: NDArray[np.int64]) -> Array:
        """Return the gaps of the contacts after step k."""
        steps = self.steps
        assert steps.gap is not None
        speed: Array = self.work.data.u_next[3 * slot + 2]
        moved = steps.gap[k, used] + self._h[k] * speed
        if steps.next_gap is None:
            return np.asarray(moved)
        given = steps.next_gap[k, used]
        return np.asarray(np.where(np.isnan(given), moved, given))

    def _in_start_axes(self, k: int) -> Array:
        """Return v after step k in the axes of its start: free bodies turn theirs."""
        work, v = self.work, np.array(self._v[k + 1])
        for i, j in zip(work.free_flyer_q, work.free_flyer_v, strict=True):
            before, after = (rotation(self._q[k + a], i + 3) for a in (0, 1))
            v[j : j + 3] = before.T @ after @ v[j : j + 3]  # a turn about ω leaves ω as it is
        return v

    def _law_measures(self) -> tuple[float, float]:
        """Return creep and force at a distance as `contact_sim.compare` counts them."""
        data, nc = self.work.data, self.work.sizes.nc
        impulse = data.impulse[: 3 * nc].reshape(nc, 3)
        u = data.u_next[: 3 * nc].reshape(nc, 3)
        load, speed = impulse[:, 2], np.hypot(u[:, 0], u[:, 1])
        inside = np.hypot(impulse[:, 0], impulse[:, 1]) < WELL_INSIDE * data.friction * load
        if self.steps.force is None or self.steps.friction is None:
            inside = load > 0.0
        apart = load[data.gap > APART].sum()
        return float(speed[inside].max(initial=0.0)), float(apart)


# --- Steps in terms of our robot.


def checked_states(robot: RobotModel, steps: Steps) -> tuple[Array, Array]:
    """Return q and v, quaternions exactly unit."""
    sizes = {'q': robot.nq, 'v': robot.nv, 'effort': robot.n_joints}
    for name, size in sizes.items():
        value = getattr(steps, name)
        if value is not None and value.shape[1] != size:
            raise InvalidInput(
                f'Steps.{name}: {value.shape[1]} columns, but robot {robot.name!r} has {size}: '
                'the steps are those of another robot, or in another convention'
            )
    q = np.empty_like(steps.q)
    for k, row in enumerate(steps.q):
        try:
            q[k] = robot.checked_configuration(row)
        except InvalidInput as error:
            raise InvalidInput(f'Steps.q[{k}]: {error}') from error
    return q, steps.v


def joint_of(robot: RobotModel, body: str) -> str:
    """Return the joint that moves a link, or the joint of this name."""
    model = robot.pinocchio_model
    joints, frames = list(model.names), {frame.name: frame for frame in model.frames}
    if body in joints[1:]:
        return body
    if body not in frames:
        raise UnknownName('body', body, [*joints[1:], *frames])
    joint = str(model.names[frames[body].parentJoint])
    if joint == model.names[0]:
        raise InvalidInput(f'body {body!r} of robot {robot.name!r} does not move')
    return joint


def slots_of(steps: Steps, joints: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the place of every contact, −1 for none, shape (n, m), and the joint of each place.

    A joint has as many places as it has contacts at one time.
    """
    if steps.body is None:
        return np.zeros((steps.count, 0), dtype=np.int64), []
    most: Counter[str] = Counter()
    places: list[list[tuple[str, int] | None]] = []
    for row in steps.body.tolist():
        seen: Counter[str] = Counter()
        places.append([])
        for body in row:
            if body < 0:
                places[-1].append(None)
                continue
            places[-1].append((joints[body], seen[joints[body]]))
            seen[joints[body]] += 1
        most |= seen
    slots = [(joint, i) for joint in dict.fromkeys(joints) for i in range(most[joint])]
    number = {slot: k for k, slot in enumerate(slots)}
    table = [[-1 if place is None else number[place] for place in row] for row in places]
    return np.array(table, dtype=np.int64).reshape(steps.body.shape), [joint for joint, _ in slots]


def frames_of(normal: Array) -> Array:
    """Return rows t1, t2, n of contact frames with these normals (n, m, 3); (n, m, 3, 3)."""
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    n = np.where(length > 0.0, normal / np.where(length > 0.0, length, 1.0), [0.0, 0.0, 1.0])
    axis = np.where(np.abs(n[..., :1]) < 0.9, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    t1 = axis - np.sum(axis * n, axis=-1, keepdims=True) * n
    t1 /= np.linalg.norm(t1, axis=-1, keepdims=True)
    return np.asarray(np.stack([t1, np.cross(n, t1), n], axis=-2))


def rotation(q: Array, i: int) -> Array:
    """Return the rotation matrix of the quaternion (x, y, z, w) at i."""
    return np.asarray(pin.Quaternion(q[i : i + 4]).toRotationMatrix())
