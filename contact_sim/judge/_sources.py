"""Collect `Steps` from our simulator and recordings, and from running MuJoCo and Drake.

A collector takes over from its engine what the engine says about contacts, and puts every other
force into `external`, so that the balance of momentum stays whole.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import as_tuple, checked, count, finite, finite_array, real_array
from contact_sim.collision._contact_slots import pair_of
from contact_sim.collision._terrain import Terrain, TerrainLike, as_terrain
from contact_sim.contact_models._base import ContactModel
from contact_sim.contact_models._ncp import Ncp
from contact_sim.errors import InvalidInput, UnknownName, of_type, one_line, shown, summary
from contact_sim.judge._steps import Steps
from contact_sim.replay._recording import Recording
from contact_sim.replay._replayer import Replayer
from contact_sim.robot._collision_pairs import NO_COLLISIONS
from contact_sim.robot._contact_points import Foot
from contact_sim.robot._model import RobotModel
from contact_sim.robot._trees import data_of
from contact_sim.simulation._report import StepReport
from contact_sim.step._workspace import Workspace
from contact_sim.topics._messages import schema_text
from contact_sim.topics._table import GROUND_TRUTH, absolute, wrench_topic

BETWEEN_BODIES = 'contacts between bodies of the robot are not judged'
Control = Callable[[float, Array, Array], Any]
"""(time [s], q, v) -> joint efforts [N m], shape (n_joints,)."""


@dataclass(frozen=True, eq=False)
class StepContact:
    """One contact of a step, in the terms of `Steps`."""

    body: str
    """Link that touches, or the joint that moves it."""
    point: ArrayLike
    """Where the force acts, at the start of the step [m], world, (3,)."""
    normal: ArrayLike
    """Unit normal out of the ground, (3,)."""
    gap: float
    """Signed distance at the start of the step [m]."""
    force: ArrayLike
    """Mean force of the ground on the body over the step [N], world, (3,)."""
    friction: float
    """μ [-]."""
    next_gap: float = np.nan
    """Signed distance after the step [m]; NaN: not known."""
    active: bool = True
    """Whether it took part in the contact problem."""
    contact_velocity: ArrayLike | None = None
    """Velocity after the step [m/s], world, (3,); None: that of the state and the robot."""

    __repr__ = one_line


class StepCollector:
    """Collects `Steps` of any engine, one by one.

    Args:
        robot: our model of the robot.
        source: engine and version, for titles.
        time: of the state at the start [s].
        q: configuration at the start, shape (nq,).
        v: velocity at the start, shape (nv,).

    Raises:
        InvalidInput: a state of another size or that is not finite.
    """

    def __init__(
        self, robot: RobotModel, source: str, time: float, q: ArrayLike, v: ArrayLike
    ) -> None:
        self.robot, self.source = of_type('robot', robot, RobotModel), source
        state = finite_array('q', q).copy(), finite_array('v', v).copy()
        if (state[0].shape, state[1].shape) != ((robot.nq,), (robot.nv,)):
            raise InvalidInput(
                f'q, v: shapes {state[0].shape}, {state[1].shape}: other sizes than robot '
                f'{robot.name!r}, expected ({robot.nq},), ({robot.nv},)'
            )
        self._states = [(finite('time', time), *state)]
        self._contacts: list[Sequence[StepContact]] = []
        self._rows: dict[str, list[Any]] = {'effort': [], 'external': [], 'interval_impulse': []}
        self._lengths: list[float] = []
        self._notes: dict[str, int] = {}

    @property
    def last(self) -> tuple[float, Array, Array]:
        """Time, q and v after the last step."""
        return self._states[-1]

    def note(self, text: str) -> None:
        """Count a step about which a reader of the score should know this."""
        self._notes[text] = self._notes.get(text, 0) + 1

    def add(
        self,
        q: ArrayLike,
        v: ArrayLike,
        effort: ArrayLike,
        contacts: Sequence[StepContact],
        length: float,
        external: ArrayLike | None = None,
        interval_impulse: ArrayLike | None = None,
    ) -> None:
        """Add a step.

        Args:
            q: configuration after it, shape (nq,).
            v: velocity after it, shape (nv,).
            effort: joint efforts that acted [N m], shape (n_joints,).
            contacts: at its start, with the forces of the step.
            length: of the step [s].
            external: further generalized forces, see `Steps`.
            interval_impulse: see `Steps`.

        Raises:
            InvalidInput: what is no array of real numbers; then nothing was added.
        """
        state = [np.array(real_array(name, value)) for name, value in (('q', q), ('v', v))]
        given = {'effort': effort, 'external': external, 'interval_impulse': interval_impulse}
        rows = {
            name: np.array(real_array(name, value))
            for name, value in given.items()
            if value is not None
        }
        start, count = self._states[0][0], len(self._contacts) + 1
        self._lengths.append(float(length))
        even = self._lengths[0] == length
        time = start + count * length if even else self._states[-1][0] + length
        self._states.append((time, state[0], state[1]))
        self._contacts.append(tuple(contacts))
        for name, row in rows.items():
            self._rows[name].append(row)

    def steps(self) -> Steps:
        """Return what was collected.

        Raises:
            InvalidInput: no step yet, or values that `Steps` refuses.
        """
        if not self._contacts:
            raise InvalidInput('nothing to judge: no step was taken')
        n, m = len(self._contacts), max(map(len, self._contacts))
        bodies = list(dict.fromkeys(c.body for row in self._contacts for c in row))
        arrays: dict[str, Any] = {
            'body': np.full((n, m), -1), 'active': np.zeros((n, m), dtype=bool),
            **{name: np.zeros((n, m, 3)) for name in ('point', 'normal', 'force')},
            **{name: np.zeros((n, m)) for name in ('gap', 'friction', 'next_gap')},
        }  # fmt: skip
        if all(c.contact_velocity is not None for row in self._contacts for c in row):
            arrays['contact_velocity'] = np.zeros((n, m, 3))
        for k, row in enumerate(self._contacts):
            for i, contact in enumerate(row):
                for name, array in arrays.items():
                    value = getattr(contact, name)
                    array[k, i] = bodies.index(value) if name == 'body' else value
        for name, rows in self._rows.items():
            if rows:
                arrays[name] = np.array(rows)
        time, q, v = (np.array(column) for column in zip(*self._states, strict=True))
        return Steps(
            time, q, v, bodies=tuple(bodies), **arrays, time_step=np.array(self._lengths),
            robot=self.robot.name, source=self.source,
            notes=tuple(f'{text} ({steps} of {n} steps)' for text, steps in self._notes.items()),
        )  # fmt: skip

    def __repr__(self) -> str:
        return summary(self, robot=self.robot.name, source=self.source, steps=len(self._rows))


# --- Our own steps.


@checked
def from_reports(
    robot: RobotModel, reports: Iterable[StepReport], source: str = 'contact_sim'
) -> Steps:
    """Return the steps of our simulator as arrays, from their reports, in their order.

    Forces of contacts between bodies go into `external`.

    Raises:
        InvalidInput: no report, reports of another robot, a step that does not begin where the one
            before it ended, contacts with torsional or rolling friction.
    """
    return _collect_reports(robot, as_tuple('reports', reports, 'a list of StepReport'), source)


def _collect_reports(robot: RobotModel, reports: Iterable[StepReport], source: str) -> Steps:
    """Return the steps of reports, which may come one by one."""
    collected: StepCollector | None = None
    for report in reports:
        if not isinstance(report, StepReport):
            raise InvalidInput(f'reports: {shown(report)}: expected StepReport')
        record = report.record
        if collected is None:
            start = report.time - float(record.time_step[0])
            collected = StepCollector(robot, source, start, record.q_start, record.v_start)
        _, q, v = collected.last
        if not (np.array_equal(q, record.q_start) and np.array_equal(v, record.v_start)):
            raise InvalidInput(
                f'the step to t = {report.time:.9g} s does not begin where the one before it '
                'ended (a reset, or a state that was set): judge the parts one by one'
            )
        add_report(collected, report)
    if collected is None:
        raise InvalidInput('reports: none, expected at least one step')
    return collected.steps()


def add_report(collected: StepCollector, report: StepReport) -> None:
    """Add a step of our simulator."""
    record, robot = report.record, collected.robot
    sizes = record.sizes
    if (sizes.nq, sizes.nv, sizes.n_joints) != (robot.nq, robot.nv, robot.n_joints):
        raise InvalidInput(f'a report of a robot of other sizes than {robot.name!r}')
    if sizes.n_moments:
        raise InvalidInput(
            'torsional and rolling friction have no forces in `Steps`: read report.residuals'
        )
    if sizes.nb:
        raise InvalidInput(f'robot {robot.name!r}: closed loops and couplings are not judged')
    h = float(record.time_step[0])
    external = record.tau.copy()
    external[robot.joint_velocity_index] -= record.effort
    row: list[StepContact] = []
    for i in range(sizes.nc):
        if not (record.active[i] > 0.0 or record.gap[i] < 0.0):
            continue
        body = _body_of_slot(robot, sizes.features, sizes.n_ground, i, record.feature_start[i])
        if body is None:  # between two bodies of the robot
            if record.active[i] > 0.0:
                at = np.searchsorted(report.active_rows, 3 * i)
                rows = report.problem.jacobian[at : at + 3]
                external += rows.T @ record.impulse[3 * i : 3 * i + 3] / h
            if record.impulse[3 * i + 2] > 0.0:
                collected.note(BETWEEN_BODIES)
            continue
        gap, normal = float(record.gap_start[i]), record.frame_start[i, 2]
        row.append(
            StepContact(  # the force acts at the midpoint between body and ground
                body, record.position_start[i] - 0.5 * gap * normal, normal.copy(), gap,
                record.contact_force[i].copy(), float(record.friction[i]), float(record.gap[i]),
                bool(record.active[i] > 0.0), record.contact_velocity[i].copy(),
            )
        )  # fmt: skip
    intervals = record.impulse[3 * sizes.nc :]
    collected.add(report.q, report.v, record.effort, row, h, external, intervals)


def _body_of_slot(
    robot: RobotModel, features: int, n_ground: int, i: int, feature: float
) -> str | None:
    """Return the joint that moves the body of a contact with the ground; None between bodies."""
    if i < n_ground:
        return robot.contact_points[i // features].joint
    collisions, pair = robot.collisions, int(pair_of(feature)) - len(robot.collisions.pairs)
    return None if pair < 0 else collisions.solids[collisions.grounded_places[pair]].joint


@checked
def from_recording(
    recording: str | Path | Recording, contact_model: str | ContactModel | None = None
) -> tuple[RobotModel, Steps]:
    """Replay a recording; return its robot and its steps.

    Args:
        recording: of `Recorder`, or its file.
        contact_model: another contact model, under which the same efforts act.

    Raises:
        RecordingError: a file that is no recording, or cannot be repeated.
        InvalidInput: as `from_reports`; a recording in which the state was set.
    """
    source = recording if isinstance(recording, Recording) else Recording(recording)
    replayer = Replayer(source, contact_model)
    robot, name = replayer.sim.robot, replayer.sim.contact_model
    title = f'{source.path.name}, contact model {name}'
    taken = itertools.takewhile(lambda step: step.report is not None, replayer.steps())
    steps = _collect_reports(robot, (step.report for step in taken if step.report), title)
    notes = [source.damage] if source.damage else []
    if steps.count < source.steps:
        notes.append(f'step {steps.count + 1} was not finite: it and those after it are left out')
    return robot, dataclasses.replace(steps, notes=(*steps.notes, *notes))


# --- Bags of ROS 2: what `python -m contact_sim.replay run.npz --mcap` writes, and `ros2 bag`.


@checked
def from_mcap(
    robot: RobotModel, path: str | Path, terrain: TerrainLike = 'plane', friction: float = 0.8
) -> Steps:
    """Return the steps in an MCAP file of the topics of the node.

    States come from `odom` and `joint_states` (those of `~/ground_truth` where they are there),
    forces from `contacts/<foot>/wrench`. Points, normals and gaps of contacts are not in the file:
    they are those of the feet on `terrain`. The first message is the start of the first step.

    Args:
        robot: the robot, with a floating base.
        path: the file, with a message of each topic for every step.
        terrain: ground that the robot was on.
        friction: μ that acted [-].

    Raises:
        InvalidInput: a file that cannot be read, topics or joints that it lacks, fewer than two
            stamps that all topics have.
        ImportError: rosbags is missing (extra `judge`).
    """
    if not robot.floating_base:
        raise InvalidInput(f'robot {robot.name!r}: reading a bag needs a floating base')
    ground = as_terrain(terrain)
    odometry, joints, wrenches, stamps = _complete(robot, path)
    own, world = next(iter(joints.values())).name, odometry[stamps[0]].header.frame_id
    missing = [name for name in robot.joint_names if name not in own]
    if missing:
        raise UnknownName('joint in joint_states', missing[0], own)
    order = [list(own).index(name) for name in robot.joint_names]
    states = [_bag_state(robot, odometry[t], joints[t], order) for t in stamps]
    feet = FeetOnGround(robot, ground)
    gaps = [feet.at(q) for q, _ in states]
    n, nc = len(stamps) - 1, len(robot.contact_points)
    points, normals, distance = (np.array(column) for column in zip(*gaps, strict=True))
    force = None
    if wrenches is not None:
        after = [(t, q) for t, (q, _) in zip(stamps[1:], states[1:], strict=True)]
        force = _bag_forces(robot, wrenches, after, world, feet)
    time = 1e-9 * np.array(stamps)
    notes = [
        f'the time step is that between two stamps, {1e3 * np.median(np.diff(time)):.4g} ms: with '
        'fewer messages than steps nothing balances',
        'points, normals and gaps are those of the feet on the ground that was named',
    ]
    if force is None:
        notes.append('the file has no force of every contact point')
    return Steps(
        time, np.array([q for q, _ in states]), np.array([v for _, v in states]),
        np.array([np.array(joints[t].effort)[order] for t in stamps[1:]]),
        tuple(dict.fromkeys(point.joint for point in robot.contact_points)),
        body=np.tile(feet.body, (n, 1)),
        point=points[:-1], normal=normals[:-1], gap=distance[:-1], next_gap=distance[1:],
        force=force, friction=np.full((n, nc), friction), robot=robot.name,
        source=Path(path).name, notes=tuple(notes),
    )  # fmt: skip


def _complete(robot: RobotModel, path: str | Path) -> tuple[Any, Any, list[Any] | None, list[int]]:
    """Return odometry, joint states and wrenches of the feet by stamp, and the stamps of all.

    None for the wrenches where one is missing, or a foot has several contact points.
    """
    topics = _bag(Path(path))
    truth = absolute(GROUND_TRUTH)
    joints = topics.get(f'{truth}joint_states') or topics.get('/joint_states', {})
    odometry = topics.get('/odom', {})
    for name, messages in (('/odom', odometry), ('/joint_states', joints)):
        if not messages:
            raise InvalidInput(f'{path}: no topic {name}; it has {", ".join(sorted(topics))}')
    wrenches: list[Any] | None = [_wrenches(topics, foot.name) for foot in robot.feet]
    if not (all(wrenches or ()) and all(len(foot.points) == 1 for foot in robot.feet)):
        wrenches = None
    stamps = sorted(set(odometry).intersection(joints, *(wrenches or ())))
    if len(stamps) < 2:
        raise InvalidInput(
            f'{path}: {len(stamps)} stamps that all topics have, expected at least 2; export with '
            'a message per step'
        )
    return odometry, joints, wrenches, stamps


class FeetOnGround:
    """Contact points of our robot on a ground, for logs that do not have any.

    Raises:
        InvalidInput: ground on which a foot may have several contacts.
    """

    def __init__(self, robot: RobotModel, terrain: Terrain) -> None:
        if terrain.features != 1:
            raise InvalidInput('this needs ground on which each foot has one contact')
        self._robot = robot
        own = dataclasses.replace(robot, collisions=NO_COLLISIONS)
        self._work = Workspace(own, terrain, 1e-3)
        self._stepper = Ncp().bind(self._work)
        names = list(dict.fromkeys(point.joint for point in robot.contact_points))
        self.body = np.array([names.index(point.joint) for point in robot.contact_points])
        self._data = data_of(robot.pinocchio_model)

    def at(self, q: Array) -> tuple[Array, Array, Array]:
        """Return points at which forces act, normals and gaps, shapes (nc, 3), (nc, 3), (nc,)."""
        data = self._work.data
        data.q[:] = q
        self._stepper.update_contacts()
        normal, gap = data.frame[:, 2].copy(), data.gap.copy()
        return data.position - 0.5 * gap[:, None] * normal, normal, gap

    def axes(self, q: Array, foot: Foot) -> Array:
        """Return the rotation of the frame of a foot at q, (3, 3)."""
        model = self._robot.pinocchio_model
        pin.framesForwardKinematics(model, self._data, q)
        return np.array(self._data.oMf[model.getFrameId(foot.frame)].rotation)


def _bag(path: Path) -> dict[str, dict[int, Any]]:
    """Return the messages of a file by topic and by the stamp in them [ns]."""
    try:
        from rosbags.rosbag2 import Reader
        from rosbags.typesys import Stores, get_types_from_msg, get_typestore
    except ImportError as error:
        raise ImportError(how_to_install('rosbags', 'judge')) from error

    store, found = get_typestore(Stores.EMPTY), dict[str, dict[int, Any]]()
    wanted = ('nav_msgs/msg/Odometry', 'sensor_msgs/msg/JointState',
              'geometry_msgs/msg/WrenchStamped')  # fmt: skip
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        _reading.regular_file(file)
    try:
        with _reading.reading(path), Reader(path) as reader:
            chosen = [one for one in reader.connections if one.msgtype in wanted]
            for one in chosen:  # as ROS defines them: the definitions of a file may be damaged
                text = schema_text(one.msgtype.replace('/msg/', '/'))
                store.register(get_types_from_msg(text, one.msgtype))
                found[one.topic] = {}
            for connection, _, raw in reader.messages(connections=chosen):
                message: Any = store.deserialize_cdr(raw, connection.msgtype)
                stamp = message.header.stamp
                nanoseconds = int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)
                found[connection.topic][nanoseconds] = message
    except InvalidInput:
        raise
    except Exception as error:  # a damaged file raises anything
        raise InvalidInput(f'{path}: no MCAP file of ROS 2 ({error!r})') from error
    return found


def _wrenches(topics: dict[str, dict[int, Any]], foot: str) -> dict[int, Any]:
    """Return the wrenches of a foot, exact where these are in the file."""
    name = wrench_topic(foot)
    return topics.get(absolute(GROUND_TRUTH + name)) or topics.get(f'/{name}', {})


def _bag_state(
    robot: RobotModel, odometry: Any, joints: Any, order: list[int]
) -> tuple[Array, Array]:
    """Return q and v of two messages with the same stamp."""
    pose, twist = odometry.pose.pose, odometry.twist.twist
    q, v = pin.neutral(robot.pinocchio_model), np.zeros(robot.nv)
    q[:3] = _xyz(pose.position)
    q[3:7] = *_xyz(pose.orientation), pose.orientation.w
    q = robot.with_joint_positions(q, np.array(joints.position)[order])
    v[:3], v[3:6] = _xyz(twist.linear), _xyz(twist.angular)
    v[robot.joint_velocity_index] = np.array(joints.velocity)[order]
    return q, v


def _bag_forces(
    robot: RobotModel,
    wrenches: list[dict[int, Any]],
    after: list[tuple[int, Array]],
    world: str,
    feet: FeetOnGround,
) -> Array:
    """Return the forces on feet with one contact point each [N], world, shape (n, nc, 3).

    Args:
        robot: whose feet.
        wrenches: messages of each foot, by stamp.
        after: stamp and configuration at the end of each step.
        world: frame whose axes are those of the world.
        feet: where the feet are.
    """
    force = np.zeros((len(after), len(robot.contact_points), 3))
    for foot, messages in zip(robot.feet, wrenches, strict=True):
        row = foot.points[0]
        for k, (stamp, q) in enumerate(after):
            message = messages[stamp]
            force[k, row] = _xyz(message.wrench.force)
            if message.header.frame_id != world:  # in the axes of the foot
                force[k, row] = feet.axes(q, foot) @ force[k, row]
    return force


def _xyz(vector: Any) -> Array:
    return np.array([vector.x, vector.y, vector.z])


# --- MuJoCo. Its free joint has the quaternion w first and the linear velocity in world axes; the
# angular one has the axes of the body, as here.


class MujocoRecorder:
    """Steps MuJoCo and records what `judge` needs.

    Forces of springs, stops, dry friction and moments of contacts go into `external`, and so do
    contacts between bodies of the robot.

    Args:
        robot: our model of the same robot; joints and bodies have the same names in both.
        model: mujoco.MjModel.
        data: mujoco.MjData, in the state at the start.

    Raises:
        InvalidInput: an integrator with several contact problems in one step, a floating base on
            one side only.
        UnknownName: a joint of the robot that MuJoCo's model does not have.
        ImportError: MuJoCo is missing (extra `peers`).
    """

    def __init__(self, robot: RobotModel, model: Any, data: Any) -> None:
        self._mujoco = mujoco = _imported('mujoco')
        of_type('robot', robot, RobotModel)
        of_type('model', model, mujoco.MjModel)
        of_type('data', data, mujoco.MjData)
        if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
            raise InvalidInput(
                'MuJoCo with the integrator RK4 solves four contact problems in a step: no force '
                'of one of them explains it; use Euler, implicit or implicitfast'
            )
        self.model, self.data, self._ahead = model, data, mujoco.MjData(model)
        self._robot, tree = robot, robot.pinocchio_model
        free = np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)
        if len(free) != int(robot.floating_base):
            raise InvalidInput(
                f"MuJoCo's model has {len(free)} free joints, robot {robot.name!r} "
                f'{"one" if robot.floating_base else "none"}'
            )
        self._base = (
            (int(model.jnt_qposadr[free[0]]), int(model.jnt_dofadr[free[0]]))
            if robot.floating_base
            else None
        )
        # joints with one degree of freedom: places in their q and v, and in ours
        known = [model.joint(k).name for k in range(model.njnt)]
        single = [(str(tree.names[j]), tree.joints[j]) for j in range(1, tree.njoints)]
        single = [(name, joint) for name, joint in single if joint.nv == 1]
        for joint_name, _ in single:
            if joint_name not in known:
                raise UnknownName("joint of MuJoCo's model", joint_name, known)
        theirs = [model.joint(name) for name, _ in single]
        self._their_q = np.array([int(joint.qposadr[0]) for joint in theirs], dtype=int)
        self._their_v = np.array([int(joint.dofadr[0]) for joint in theirs], dtype=int)
        self._our_v = np.array([joint.idx_v for _, joint in single], dtype=int)
        self._joints = [joint for _, joint in single]
        moved = {int(model.joint(name).bodyid[0]): name for name, _ in single}
        if self._base is not None:
            moved[int(model.jnt_bodyid[free[0]])] = str(tree.names[1])
        self._owner = [self._joint_of(body, moved) for body in range(model.nbody)]
        name = f'MuJoCo {mujoco.__version__}'
        self._collected = StepCollector(robot, name, float(data.time), *self.state())
        mass = float(model.body_mass[[owner != '' for owner in self._owner]].sum())
        if abs(mass - robot.total_mass) > 1e-6 * robot.total_mass:
            raise InvalidInput(
                f'MuJoCo has {mass:.6g} kg, our robot {robot.name!r} {robot.total_mass:.6g} kg: '
                'two models of the same robot have the same mass'
            )

    def _joint_of(self, body: int, moved: dict[int, str]) -> str:
        """Return the joint of our robot that moves a body of MuJoCo; '' for the world."""
        while body not in moved and body != 0:
            body = int(self.model.body_parentid[body])
        return moved.get(body, '')

    def state(self) -> tuple[Array, Array]:
        """Return q (nq,) and v (nv,) in Pinocchio's convention."""
        q, v, data = pin.neutral(self._robot.pinocchio_model), np.zeros(self._robot.nv), self.data
        if self._base is not None:
            i, j = self._base
            q[:3], q[3:7] = data.qpos[i : i + 3], data.qpos[[i + 4, i + 5, i + 6, i + 3]]
            v[:3] = self._turn(q).T @ data.qvel[j : j + 3]
            v[3:6] = data.qvel[j + 3 : j + 6]
        for joint, angle in zip(self._joints, data.qpos[self._their_q], strict=True):
            k = joint.idx_q
            q[k : k + joint.nq] = (np.cos(angle), np.sin(angle)) if joint.nq == 2 else angle
        v[self._our_v] = data.qvel[self._their_v]
        return q, v

    @staticmethod
    def _turn(q: Array) -> Array:
        return np.asarray(pin.Quaternion(q[3:7] / np.linalg.norm(q[3:7])).toRotationMatrix())

    def step(self, steps: int = 1) -> None:
        """Advance MuJoCo by `steps` of its steps with what is set in its data, and record them.

        Raises:
            InvalidInput: qpos or qvel were set after the step before.
        """
        for _ in range(count('steps', steps)):
            (time, start_q, start_v), speed = self._collected.last, self.data.qvel.copy()
            q, v = self.state()
            if not (np.array_equal(q, start_q) and np.array_equal(v, start_v)):
                raise InvalidInput(
                    f'the state of MuJoCo was set at t = {time:.9g} s, after a step that was '
                    'recorded: begin another MujocoRecorder there'
                )
            self._mujoco.mj_step(self.model, self.data)
            self._record(start_q, speed)

    def _record(self, start_q: Array, speed: Array) -> None:
        """Add the step that was just taken; contacts and Jacobians are those of its start."""
        mujoco, model, data, collected = self._mujoco, self.model, self.data, self._collected
        ahead, h = self._ahead, float(model.opt.timestep)
        ahead.qpos[:] = data.qpos
        mujoco.mj_kinematics(model, ahead)
        mujoco.mj_comPos(model, ahead)
        mujoco.mj_collision(model, ahead)
        later = [
            (tuple(sorted(c.geom.tolist())), np.array(c.pos), float(c.dist))
            for c in (ahead.contact[k] for k in range(ahead.ncon))
        ]
        row: list[StepContact] = []
        of_ground, wrench = np.zeros(model.nv), np.zeros(6)
        for k in range(data.ncon):
            contact = data.contact[k]
            owners = [self._owner[int(model.geom_bodyid[g])] for g in contact.geom]
            if (owners[0] == '') == (owners[1] == ''):
                if owners[0] and contact.efc_address >= 0:
                    collected.note(BETWEEN_BODIES)
                continue
            sign = 1.0 if owners[0] == '' else -1.0  # the force acts on the second geom
            frame = np.array(contact.frame).reshape(3, 3)
            mujoco.mj_contactForce(model, data, k, wrench)
            force, point = sign * frame.T @ wrench[:3], np.array(contact.pos)
            if wrench[3:].any():
                collected.note('moments of contacts are not judged')
            mu = np.array(contact.friction[:2]) if contact.dim > 1 else np.zeros(2)
            if mu[0] != mu[1]:
                collected.note('friction differs between directions: the larger one judges')
            body = int(model.geom_bodyid[contact.geom[1 if sign > 0.0 else 0]])
            mujoco.mj_applyFT(model, data, force, np.zeros(3), point, body, of_ground)
            pair = tuple(sorted(contact.geom.tolist()))
            same = [(np.linalg.norm(p - point), gap) for other, p, gap in later if other == pair]
            row.append(
                StepContact(
                    owners[1] or owners[0], point, sign * frame[0], float(contact.dist), force,
                    float(mu.max()), min(same)[1] if same else np.nan,
                    bool(contact.efc_address >= 0),
                )
            )  # fmt: skip
        # every other force: all but inertia, damping, the ground and the efforts of our joints
        other = data.qfrc_constraint - of_ground + data.qfrc_applied + data.qfrc_actuator
        other += data.qfrc_passive + model.dof_damping * speed
        for pushed in np.flatnonzero(data.xfrc_applied.any(axis=1)).tolist():
            push, at = data.xfrc_applied[pushed], np.array(data.xipos[pushed])
            mujoco.mj_applyFT(model, data, push[:3], push[3:], at, pushed, other)
        efforts = data.qfrc_applied + data.qfrc_actuator
        robot = self._robot
        places = dict(zip(self._our_v.tolist(), self._their_v.tolist(), strict=True))
        driven = np.array([places[k] for k in robot.joint_velocity_index.tolist()], dtype=int)
        other[driven] -= efforts[driven]
        external = np.zeros(robot.nv)
        if self._base is not None:
            j = self._base[1]
            external[:3] = self._turn(start_q).T @ other[j : j + 3]
            external[3:6] = other[j + 3 : j + 6]
        external[self._our_v] = other[self._their_v]
        collected.add(*self.state(), efforts[driven], row, h, external)

    def steps(self) -> Steps:
        """Return all steps so far.

        Raises:
            InvalidInput: no step yet.
        """
        return self._collected.steps()

    def __repr__(self) -> str:
        return summary(self, robot=self._robot.name)


@checked
def from_mujoco(
    robot: RobotModel, model: Any, data: Any, steps: int, control: Control | None = None
) -> Steps:
    """Run MuJoCo from the state of `data` and return its steps.

    Args:
        robot: our model of the same robot.
        model: mujoco.MjModel.
        data: mujoco.MjData; what is set in it (ctrl, qfrc_applied) acts in every step.
        steps: how many to take.
        control: joint efforts for a state, applied as qfrc_applied; None: none.

    Raises:
        InvalidInput, UnknownName, ImportError: as `MujocoRecorder`.
    """
    recorder = MujocoRecorder(robot, model, data)
    dofs = [int(model.joint(name).dofadr[0]) for name in robot.joint_names]
    for _ in range(count('steps', steps)):
        if control is not None:
            data.qfrc_applied[dofs] = control(float(data.time), *recorder.state())
        recorder.step()
    return recorder.steps()


# --- Drake. Its discrete contact results are those of the last update: contacts at the start of
# the step, and the forces that took it to the state at hand.


class DrakeRecorder:
    """Records a discrete MultibodyPlant after each of its steps.

    Args:
        robot: our model of the same robot; joints have the same names in both, and a body of the
            plant the name of a link of ours or of the joint that moves it.
        plant: pydrake MultibodyPlant, discrete, with point contact.
        context: its context.
        friction: μ of its contacts [-], which its contact results do not contain.

    Raises:
        InvalidInput: a continuous plant, several floating bodies.
        UnknownName: a joint that the plant does not have.
        ImportError: Drake is missing (extra `peers`).
    """

    def __init__(self, robot: RobotModel, plant: Any, context: Any, friction: float) -> None:
        pydrake = _imported('pydrake')
        of_type('robot', robot, RobotModel)
        of_type('plant', plant, _imported('pydrake.multibody.plant').MultibodyPlant)
        of_type('context', context, _imported('pydrake.systems.framework').Context)
        if not plant.time_step() > 0.0:
            raise InvalidInput('the plant is continuous: expected a time_step > 0')
        name = f'Drake {getattr(pydrake, "__version__", "")}'.strip()
        self._robot, self._plant, self._context, self._mu = robot, plant, context, friction
        floating = [plant.get_body(index) for index in plant.GetFloatingBaseBodies()]
        if len(floating) != int(robot.floating_base):
            raise InvalidInput(
                f'the plant has {len(floating)} floating bodies, robot {robot.name!r} '
                f'{"one" if robot.floating_base else "none"}'
            )
        self._base = floating[0] if floating else None
        known = [plant.get_joint(k).name() for k in plant.GetJointIndices()]
        for joint_name in robot.joint_names:
            if joint_name not in known:
                raise UnknownName('joint of the plant', joint_name, known)
        joints = [plant.GetJointByName(name) for name in robot.joint_names]
        self._q = np.array([joint.position_start() for joint in joints], dtype=int)
        self._v = np.array([joint.velocity_start() for joint in joints], dtype=int)
        tree = robot.pinocchio_model
        self._joint_of_body = {
            str(frame.name): str(tree.names[frame.parentJoint])
            for frame in tree.frames
            if frame.parentJoint
        }
        time = float(context.get_time())
        self._collected = StepCollector(robot, name, time, *self.state())

    def state(self) -> tuple[Array, Array]:
        """Return q (nq,) and v (nv,) in Pinocchio's convention."""
        robot, plant, context = self._robot, self._plant, self._context
        x, u = plant.GetPositions(context), plant.GetVelocities(context)
        q, v = pin.neutral(robot.pinocchio_model), np.zeros(robot.nv)
        if self._base is not None:
            i = self._base.floating_positions_start()
            j = self._base.floating_velocities_start_in_v()
            quaternion = x[[i + 1, i + 2, i + 3, i]]
            q[3:7] = quaternion / np.linalg.norm(quaternion)
            q[:3] = x[i + 4 : i + 7]
            turn = pin.Quaternion(q[3:7]).toRotationMatrix()
            v[:3], v[3:6] = turn.T @ u[j + 3 : j + 6], turn.T @ u[j : j + 3]
        q = robot.with_joint_positions(q, x[self._q])
        v[robot.joint_velocity_index] = u[self._v]
        return q, v

    def record(self, effort: Any) -> None:
        """Add the step that the plant has just taken under these joint efforts [N m].

        Raises:
            InvalidInput: efforts of another number of joints, hydroelastic contacts.
        """
        plant, context, collected = self._plant, self._context, self._collected
        efforts = np.array(effort, dtype=float)
        if efforts.shape != (self._robot.n_joints,):
            raise InvalidInput(f'effort: shape {efforts.shape}, expected {self._robot.n_joints}')
        results = plant.get_contact_results_output_port().Eval(context)
        if results.num_hydroelastic_contacts():
            raise InvalidInput('hydroelastic contacts are surfaces: use point contact')
        query = plant.get_geometry_query_input_port().Eval(context)
        row: list[StepContact] = []
        for k in range(results.num_point_pair_contacts()):
            info = results.point_pair_contact_info(k)
            first, second = (
                self._joint_of_body.get(plant.get_body(index).name(), '')
                for index in (info.bodyA_index(), info.bodyB_index())
            )
            if (first == '') == (second == ''):
                collected.note(BETWEEN_BODIES)
                continue
            pair, sign = info.point_pair(), -1.0 if first else 1.0  # the force acts on B
            # the normal of Drake points from B to A
            after = query.ComputeSignedDistancePairClosestPoints(pair.id_A, pair.id_B).distance
            row.append(
                StepContact(
                    first or second, np.array(info.contact_point()),
                    -sign * np.array(pair.nhat_BA_W), -float(pair.depth),
                    sign * np.array(info.contact_force()), self._mu, float(after),
                )
            )  # fmt: skip
        collected.add(*self.state(), efforts, row, float(plant.time_step()))

    def steps(self) -> Steps:
        """Return all steps so far.

        Raises:
            InvalidInput: no step yet.
        """
        return self._collected.steps()

    def __repr__(self) -> str:
        return summary(self, robot=self._robot.name)


@checked
def from_drake(
    robot: RobotModel,
    plant: Any,
    simulator: Any,
    steps: int,
    friction: float,
    control: Control | None = None,
) -> Steps:
    """Advance a discrete plant of Drake from its present state and return its steps.

    Args:
        robot: our model of the same robot.
        plant: MultibodyPlant, discrete, with point contact; its applied generalized force is free.
        simulator: pydrake Simulator of the diagram with the plant.
        steps: how many to take.
        friction: μ of its contacts [-].
        control: joint efforts for a state; None: none.

    Raises:
        InvalidInput, UnknownName, ImportError: as `DrakeRecorder`.
    """
    of_type('plant', plant, _imported('pydrake.multibody.plant').MultibodyPlant)
    of_type('simulator', simulator, _imported('pydrake.systems.analysis').Simulator)
    context = plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    recorder = DrakeRecorder(robot, plant, context, friction)
    dofs = [plant.GetJointByName(name).velocity_start() for name in robot.joint_names]
    h, port = plant.time_step(), plant.get_applied_generalized_force_input_port()
    first = round(float(context.get_time()) / h + 0.25)  # updates are at multiples of h
    for k in range(count('steps', steps)):
        time, effort = float(context.get_time()), np.zeros(robot.n_joints)
        if control is not None:
            effort = np.asarray(control(time, *recorder.state()), dtype=float)
        force = np.zeros(plant.num_velocities())
        force[dofs] = effort
        port.FixValue(context, force)
        simulator.AdvanceTo((first + k + 0.5) * h)  # halfway between two: rounding is no matter
        recorder.record(effort)
    return recorder.steps()


def _imported(name: str) -> Any:
    """Return a module of the extra `peers`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(how_to_install(name.partition('.')[0], 'peers')) from error


def how_to_install(name: str, extra: str) -> str:
    """Return what to do about a package that is missing."""
    return f"this needs the package {name}: pip install 'contact_sim[{extra}]'"
