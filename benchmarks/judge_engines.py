"""go1 stands and trots in MuJoCo, Drake, Bullet and DART, scored by the residuals of our steps.

Every engine gets the same masses, joints, contact spheres, friction, time step and controller,
which is fed with the state of the engine. Joints have viscous friction, but no dry friction: each
engine has a law of its own for it. Run with

    python benchmarks/judge_engines.py --out out

It prints the tables of docs/judge_other_engines.md and writes their figure and a JSON file; with
`--docs` it writes the tables and the figure of the page, both of this run. pybullet and dartpy are
optional: an engine that is missing or refuses the robot is named.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.compare._scenarios import hold
from contact_sim.control import Trot
from contact_sim.judge import (
    DrakeRecorder,
    MujocoRecorder,
    Score,
    StepCollector,
    StepContact,
    Steps,
    from_reports,
    judge,
)
from contact_sim.simulation import StepReport

Array = NDArray[np.float64]
FRICTION, TIME_STEP, GRAVITY = 0.8, 1e-3, 9.81
SECONDS = {'stand': 2.0, 'trot': 3.0}
SPEED = 0.3
"""Commanded to the trot [m/s]."""
SHOWN = (
    'penetration', 'creep', 'slip', 'cone', 'signorini', 'force_apart', 'dissipation', 'ncp',
    'momentum', 'energy',
)  # fmt: skip
"""Columns of the table."""
DOCS = Path(__file__).resolve().parents[1] / 'docs'
TITLES = {'stand': '**Standing**', 'trot': '**Trotting**'}
"""Of the tables in docs/judge_other_engines.md."""


def robot_of(name: str = 'go1') -> RobotModel:
    """Return the robot as all engines get it: feet only, joints without dry friction."""
    robot = load_robot(name, body_contacts=False)
    return robot.with_actuators(velocity_limit=np.inf, dry_friction=0.0).with_position_limits(())


class Ours:
    """contact_sim under one contact model."""

    def __init__(self, robot: RobotModel, model: str) -> None:
        self._sim = Simulator(robot, model, friction=FRICTION, time_step=TIME_STEP)
        self._reports: list[StepReport] = []

    def start(self, q: Array) -> None:
        """Start at rest."""
        self._sim.reset(q)

    def state(self) -> tuple[Array, Array]:
        """Return q and v."""
        return self._sim.q, self._sim.v

    def step(self, effort: Array) -> None:
        """Advance by one step."""
        self._reports.append(self._sim.step(effort))

    def steps(self) -> Steps:
        """Return what was recorded."""
        return from_reports(self._sim.robot, self._reports, self._sim.contact_model)


# --- MuJoCo and Drake have recorders in contact_sim.judge.


class Mujoco:
    """MuJoCo under its defaults, or `tuned` for hard contacts without creep."""

    def __init__(self, robot: RobotModel, tuned: bool = False) -> None:
        import mujoco
        from mujoco_peer import MujocoPeer

        self._peer, self._robot = MujocoPeer(robot, FRICTION, TIME_STEP), robot
        model, options = self._peer.model, self._peer.model.opt
        model.dof_frictionloss[:] = 0.0
        if tuned:
            options.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
            options.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
            options.noslip_iterations, options.impratio = 20, 10.0
            model.geom_solref[:] = 2.0 * TIME_STEP, 1.0
            model.geom_solimp[:, :2] = 0.95, 0.99

    def start(self, q: Array) -> None:
        """Start at rest."""
        self._peer.reset(q, self._robot.joint_positions(q))
        self._recorder = MujocoRecorder(self._robot, self._peer.model, self._peer.data)

    def state(self) -> tuple[Array, Array]:
        """Return q and v."""
        return self._recorder.state()

    def step(self, effort: Array) -> None:
        """Advance by one step."""
        self._peer.set_effort(effort)
        self._recorder.step()

    def steps(self) -> Steps:
        """Return what was recorded."""
        return self._recorder.steps()


class Drake:
    """A discrete plant of Drake under its defaults, or with stiff contacts."""

    def __init__(self, robot: RobotModel, stiffness: float | None = None) -> None:
        from drake_peer import DrakePeer

        self._robot = robot
        self._peer = DrakePeer(robot, FRICTION, TIME_STEP, stiffness=stiffness)

    def start(self, q: Array) -> None:
        """Start at rest."""
        peer = self._peer
        peer.set_state(q, np.zeros(self._robot.nv))
        self._recorder = DrakeRecorder(self._robot, peer.plant, peer.context, FRICTION)

    def state(self) -> tuple[Array, Array]:
        """Return q and v."""
        return self._recorder.state()

    def step(self, effort: Array) -> None:
        """Advance by one step."""
        self._peer.step(effort)
        self._recorder.record(effort)

    def steps(self) -> Steps:
        """Return what was recorded."""
        return self._recorder.steps()


# --- Bullet and DART read a URDF with the numbers of our model: one link per joint, no meshes.

AXES = {'JointModelRX': '1 0 0', 'JointModelRY': '0 1 0', 'JointModelRZ': '0 0 1'}


def plain_urdf(robot: RobotModel) -> str:
    """Return a URDF with links and joints named after the joints of the Pinocchio model."""
    model, text = robot.pinocchio_model, [f'<robot name="{robot.name}">']
    for j in range(1, model.njoints):
        name, body = model.names[j], model.inertias[j]
        a = body.inertia
        text.append(
            f'<link name="{name}"><inertial><origin xyz="{_words(body.lever)}"/>'
            f'<mass value="{body.mass!r}"/><inertia ixx="{a[0, 0]!r}" ixy="{a[0, 1]!r}" '
            f'ixz="{a[0, 2]!r}" iyy="{a[1, 1]!r}" iyz="{a[1, 2]!r}" izz="{a[2, 2]!r}"/></inertial>'
        )
        text += [
            f'<collision><origin xyz="{_words(point.offset)}"/><geometry>'
            f'<sphere radius="{point.radius!r}"/></geometry></collision>'
            for point in robot.contact_points
            if point.joint == name
        ]
        text.append('</link>')
        if j == 1:
            continue
        place, kind = model.jointPlacements[j], model.joints[j]
        angles = pin.rpy.matrixToRpy(place.rotation)
        damping = float(model.damping[kind.idx_v])
        text.append(
            f'<joint name="{name}_joint" type="continuous"><parent link="'
            f'{model.names[model.parents[j]]}"/><child link="{name}"/><origin '
            f'xyz="{_words(place.translation)}" rpy="{_words(angles)}"/>'
            f'<axis xyz="{AXES[kind.shortname()]}"/><dynamics damping="{damping!r}"/></joint>'
        )
    # numbers of NumPy have their type in their repr
    return '\n'.join([*text, '</robot>']).replace('np.float64(', '').replace(')"', '"')


def _words(values: Any) -> str:
    return ' '.join(repr(float(value)) for value in values)


class Bullet:
    """Bullet's multi-body engine through pybullet under its defaults, or `tuned`."""

    def __init__(self, robot: RobotModel, tuned: bool = False) -> None:
        import pybullet

        self._bullet, self._robot, self._tuned = pybullet, robot, tuned
        pybullet.resetSimulation() if pybullet.isConnected() else pybullet.connect(pybullet.DIRECT)
        pybullet.setGravity(0.0, 0.0, -GRAVITY)
        pybullet.setTimeStep(TIME_STEP)
        plane = pybullet.createCollisionShape(pybullet.GEOM_PLANE)
        self._ground = pybullet.createMultiBody(0.0, plane)
        pybullet.changeDynamics(self._ground, -1, lateralFriction=1.0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'robot.urdf'
            path.write_text(plain_urdf(robot), encoding='utf-8')
            flags = pybullet.URDF_USE_INERTIA_FROM_FILE
            self._body = body = pybullet.loadURDF(str(path), flags=flags)
        count = pybullet.getNumJoints(body)
        names = [pybullet.getJointInfo(body, j)[12].decode() for j in range(count)]
        self._links = {-1: str(robot.pinocchio_model.names[1]), **dict(enumerate(names))}
        self._joints = [names.index(name) for name in robot.joint_names]
        for j in range(-1, count):
            if tuned:  # in a call of its own: with friction in the same call links keep theirs
                pybullet.changeDynamics(body, j, linearDamping=0.0, angularDamping=0.0)
            pybullet.changeDynamics(
                body, j, lateralFriction=FRICTION, spinningFriction=0.0, rollingFriction=0.0
            )
            if abs(pybullet.getDynamicsInfo(body, j)[1] - FRICTION) > 1e-9:
                raise ValueError(f'Bullet did not take the friction of link {j}')
        motor = {'controlMode': pybullet.VELOCITY_CONTROL, 'forces': [0.0] * len(self._joints)}
        pybullet.setJointMotorControlArray(body, self._joints, **motor)
        if tuned:
            pybullet.setPhysicsEngineParameter(
                numSolverIterations=500, solverResidualThreshold=1e-12
            )
        mass = sum(pybullet.getDynamicsInfo(body, j)[0] for j in range(-1, count))
        if abs(mass - robot.total_mass) > 1e-6 * mass:
            raise ValueError(f'Bullet loads {mass} kg of {robot.total_mass} kg')
        # the frame of the base is that of its centre of mass
        info = pybullet.getDynamicsInfo(body, -1)
        self._inertial = pin.SE3(pin.Quaternion(*_w_first(info[4])), np.array(info[3]))

    def start(self, q: Array) -> None:
        """Start at rest."""
        bullet, robot = self._bullet, self._robot
        base = pin.SE3(pin.Quaternion(*_w_first(q[3:7])), q[:3]) * self._inertial
        turn = pin.Quaternion(base.rotation).coeffs()
        bullet.resetBasePositionAndOrientation(self._body, base.translation.tolist(), turn)
        for j, angle in zip(self._joints, robot.joint_positions(q), strict=True):
            bullet.resetJointState(self._body, j, float(angle))
        name = 'Bullet' + (', tuned' if self._tuned else '')
        self._collected = StepCollector(robot, name, 0.0, *self.state())

    def state(self) -> tuple[Array, Array]:
        """Return q and v."""
        bullet, robot = self._bullet, self._robot
        place, turn = bullet.getBasePositionAndOrientation(self._body)
        centre = pin.SE3(pin.Quaternion(*_w_first(turn)).normalized(), np.array(place))
        base = centre * self._inertial.inverse()
        linear, angular = map(np.array, bullet.getBaseVelocity(self._body))
        linear = linear + np.cross(angular, base.translation - centre.translation)
        joints = bullet.getJointStates(self._body, self._joints)
        q, v = pin.neutral(robot.pinocchio_model), np.zeros(robot.nv)
        q[:3], q[3:7] = base.translation, pin.Quaternion(base.rotation).coeffs()
        q = robot.with_joint_positions(q, np.array([joint[0] for joint in joints]))
        v[:3], v[3:6] = base.rotation.T @ linear, base.rotation.T @ angular
        v[robot.joint_velocity_index] = [joint[1] for joint in joints]
        return q, v

    def step(self, effort: Array) -> None:
        """Advance by one step; contact points are those of its start."""
        bullet = self._bullet
        bullet.setJointMotorControlArray(
            self._body, self._joints, bullet.TORQUE_CONTROL, forces=effort.tolist()
        )
        bullet.stepSimulation()
        row = []
        for contact in bullet.getContactPoints(self._body, self._ground):
            link, on_robot, normal, gap, load = (contact[k] for k in (3, 5, 7, 8, 9))
            force = load * np.array(normal)
            force += contact[10] * np.array(contact[11]) + contact[12] * np.array(contact[13])
            row.append(StepContact(self._links[link], on_robot, normal, gap, force, FRICTION))
        self._collected.add(*self.state(), effort, row, TIME_STEP)

    def steps(self) -> Steps:
        """Return what was recorded."""
        return self._collected.steps()


def _w_first(quaternion: Any) -> tuple[float, float, float, float]:
    x, y, z, w = (float(number) for number in quaternion)
    return w, x, y, z


class Dart:
    """DART under its defaults, with its own collision detector: spheres on a box."""

    def __init__(self, robot: RobotModel) -> None:
        import dartpy as dart

        self._dart, self._robot = dart, robot
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / 'robot.urdf'
            path.write_text(plain_urdf(robot), encoding='utf-8')
            self._body = body = dart.utils.DartLoader().parseSkeleton(str(path))
        ground = dart.dynamics.Skeleton('ground')
        _, floor = ground.createWeldJointAndBodyNodePair()
        shape = floor.createShapeNode(dart.dynamics.BoxShape([20.0, 20.0, 1.0]))
        shape.createCollisionAspect()
        shape.createDynamicsAspect()
        place = np.eye(4)
        place[2, 3] = -0.5
        shape.setRelativeTransform(place)
        self._world = world = dart.simulation.World()
        world.setTimeStep(TIME_STEP)
        world.setGravity([0.0, 0.0, -GRAVITY])
        world.setCollisionDetector(dart.collision.DARTCollisionDetector())
        world.addSkeleton(body)
        world.addSkeleton(ground)
        for skeleton in (body, ground):
            for k in range(skeleton.getNumBodyNodes()):
                for node in skeleton.getBodyNode(k).getShapeNodes():
                    aspect = node.getDynamicsAspect()
                    if aspect is not None:
                        aspect.setFrictionCoeff(FRICTION)
                        aspect.setRestitutionCoeff(0.0)
        dofs = [body.getDof(k).getName() for k in range(body.getNumDofs())]
        self._dofs = [dofs.index(f'{name}_joint') for name in robot.joint_names]
        if abs(body.getMass() - robot.total_mass) > 1e-6 * robot.total_mass:
            raise ValueError(f'DART loads {body.getMass()} kg of {robot.total_mass} kg')

    def start(self, q: Array) -> None:
        """Start at rest."""
        body, positions = self._body, np.zeros(self._body.getNumDofs())
        turn = pin.Quaternion(*_w_first(q[3:7])).toRotationMatrix()
        positions[:3], positions[3:6] = pin.log3(turn), q[:3]
        positions[self._dofs] = self._robot.joint_positions(q)
        body.setPositions(positions)
        name = f'DART {self._dart.__version__}'
        self._collected = StepCollector(self._robot, name, 0.0, *self.state())

    def state(self) -> tuple[Array, Array]:
        """Return q and v."""
        robot, root = self._robot, self._body.getRootBodyNode()
        place = np.array(root.getWorldTransform().matrix())
        turn = place[:3, :3]
        q, v = pin.neutral(robot.pinocchio_model), np.zeros(robot.nv)
        quaternion = pin.Quaternion(turn)
        q[:3], q[3:7] = place[:3, 3], quaternion.normalized().coeffs()
        q = robot.with_joint_positions(q, np.array(self._body.getPositions())[self._dofs])
        v[:3] = turn.T @ np.array(root.getLinearVelocity())
        v[3:6] = turn.T @ np.array(root.getAngularVelocity())
        v[robot.joint_velocity_index] = np.array(self._body.getVelocities())[self._dofs]
        return q, v

    def step(self, effort: Array) -> None:
        """Advance by one step; contacts are those of its start."""
        forces = np.zeros(self._body.getNumDofs())
        forces[self._dofs] = effort
        self._body.setForces(forces)
        self._world.step()
        result, row = self._world.getLastCollisionResult(), []
        for k in range(result.getNumContacts()):
            contact = result.getContact(k)
            names = [
                frame.getShapeFrame().asShapeNode().getBodyNodePtr().getName()
                for frame in (contact.collisionObject1, contact.collisionObject2)
            ]
            first = names[0] in self._robot.pinocchio_model.names
            sign = 1.0 if first else -1.0  # normal and force are those on the first object
            row.append(
                StepContact(
                    names[0] if first else names[1], contact.point,
                    sign * np.array(contact.normal), -contact.penetrationDepth,
                    sign * np.array(contact.force), FRICTION,
                )
            )  # fmt: skip
        self._collected.add(*self.state(), effort, row, TIME_STEP)

    def steps(self) -> Steps:
        """Return what was recorded."""
        return self._collected.steps()


ENGINES: dict[str, Callable[[RobotModel], Any]] = {
    'ncp': lambda robot: Ours(robot, 'ncp'),
    'todorov': lambda robot: Ours(robot, 'todorov'),
    'MuJoCo': Mujoco,
    'MuJoCo tuned': lambda robot: Mujoco(robot, tuned=True),
    'sap': lambda robot: Ours(robot, 'sap'),
    'Drake': Drake,
    'Bullet': Bullet,
    'Bullet tuned': lambda robot: Bullet(robot, tuned=True),
    'DART': Dart,
}
"""Name in the table: what makes the engine; the lower-case ones are ours."""


def run(engine: Any, robot: RobotModel, motion: str, seconds: float) -> Steps:
    """Return the steps of an engine in a motion."""
    q = Simulator(robot, friction=FRICTION, time_step=TIME_STEP).standing_configuration()
    engine.start(q)
    trot = Trot(robot)
    trot.velocity = SPEED, 0.0, 0.0
    control = trot.effort if motion == 'trot' else hold(robot, q)
    for k in range(round(seconds / TIME_STEP)):
        effort = np.asarray(control(k * TIME_STEP, *engine.state()))
        engine.step(np.clip(effort, -robot.effort_limit, robot.effort_limit))
    steps = engine.steps()
    assert isinstance(steps, Steps)
    return steps


# --- The tables and the figure.


def quantity(value: float) -> str:
    """Return a residual with two digits."""
    return '–' if math.isnan(value) else '0' if value == 0.0 else f'{value:.1e}'


def markdown(scores: dict[str, Score]) -> str:
    """Return a table of the 99th percentiles, bold where beyond the limit."""
    some = next(iter(scores.values()))
    head = '| ' + ' | '.join(['99 % of the steps below', *SHOWN]) + ' |'
    lines = [head, '|---' * (len(SHOWN) + 1) + '|']
    lines.append('| *limit* | ' + ' | '.join(quantity(some.limit(name)) for name in SHOWN) + ' |')
    for engine, score in scores.items():
        cells = []
        for name in SHOWN:
            value, limit = score.percentile(name), score.limit(name)
            text = quantity(value)
            cells.append(f'**{text}**' if value > limit else text)
        lines.append(f'| {engine} | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def printed(scores: dict[str, dict[str, Score]]) -> dict[str, dict[str, dict[str, str]]]:
    """Return the numbers of the tables, by motion, engine and column."""
    return {
        motion: {
            engine: {name: quantity(score.percentile(name)) for name in SHOWN}
            for engine, score in found.items()
        }
        for motion, found in scores.items()
    }


def write_docs(scores: dict[str, dict[str, Score]]) -> None:
    """Write the tables, the versions and the figure of docs/judge_other_engines.md."""
    page = DOCS / 'judge_other_engines.md'
    text = page.read_text(encoding='utf-8')
    for motion, found in scores.items():
        before, title, rest = text.partition(TITLES[motion])
        said, _, after = rest.partition('| 99 % of the steps below')
        text = before + title + said + markdown(found) + '\n\n' + after.partition('\n\n')[2]
    named = [f'{name} {version}' for name, version in versions().items() if name != 'contact_sim']
    line = re.compile(r'^mujoco [\d.]+, drake [\w., ]+(?=\. The tables)', re.MULTILINE)
    page.write_text(line.sub(', '.join(named), text), encoding='utf-8')
    draw(scores, DOCS / 'judge.png')


def draw(scores: dict[str, dict[str, Score]], path: Path) -> None:
    """Draw the same as colours: decades beyond the limit, grey where kept.

    The text `Description` of the picture has the numbers as JSON.
    """
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot as plt

    names = [name for name in SHOWN if name not in ('slip', 'energy')]
    labels = [name.replace('_', ' ') for name in names]
    figure, panels = plt.subplots(
        1, len(scores), figsize=(10.0, 3.4), sharey=True, layout='constrained'
    )
    for axes, (motion, found) in zip(np.atleast_1d(panels), scores.items(), strict=True):
        decades = np.full((len(found), len(names)), np.nan)
        for k, score in enumerate(found.values()):
            for column, name in enumerate(names):
                value = score.percentile(name)
                if value > score.limit(name):
                    decades[k, column] = np.log10(value / score.limit(name))
                axes.text(column, k, quantity(value), ha='center', va='center', fontsize=7.5)
        axes.set_facecolor('#eeeeea')
        picture = axes.imshow(decades, cmap='YlOrRd', vmin=0.0, vmax=8.0, aspect='auto')
        axes.set_title(f'go1, {motion}', fontsize=10, loc='left')
        axes.set_xticks(range(len(names)), labels, rotation=35, ha='right', fontsize=8)
        axes.set_yticks(range(len(found)), list(found), fontsize=9)
        axes.tick_params(length=0)
    bar = figure.colorbar(picture, ax=panels, pad=0.01, fraction=0.03)
    bar.set_label('decades beyond the limit', fontsize=8)
    numbers = {'Description': json.dumps(printed(scores))}
    figure.savefig(path, dpi=170, bbox_inches='tight', facecolor='white', metadata=numbers)
    plt.close(figure)


def versions() -> dict[str, str]:
    """Return the versions of the engines."""
    from importlib import metadata

    found = {}
    for name in ('contact_sim', 'mujoco', 'drake', 'pybullet', 'dartpy'):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = 'missing'
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run all engines and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--out', type=Path, default=Path('out'), metavar='DIR')
    parser.add_argument('--engines', nargs='+', choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument('--motions', nargs='+', choices=list(SECONDS), default=list(SECONDS))
    parser.add_argument('--seconds', type=float, help='of each motion; default: 2 and 3')
    parser.add_argument('--docs', action='store_true', help='all, into the page of docs')
    options = parser.parse_args(arguments)
    if options.docs:
        options.engines, options.motions, options.seconds = list(ENGINES), list(SECONDS), None
    robot = robot_of()
    print('versions: ' + ', '.join(f'{name} {text}' for name, text in versions().items()))
    scores: dict[str, dict[str, Score]] = {}
    for motion in options.motions:
        found = scores[motion] = {}
        for name in options.engines:
            try:
                engine = ENGINES[name](robot)
            except (ImportError, ValueError, OSError) as error:
                print(f'without {name}: {error}', file=sys.stderr)
                continue
            steps = run(engine, robot, motion, options.seconds or SECONDS[motion])
            found[name] = judge(robot, steps)
            height, way = steps.q[-1, 2], steps.q[-1, 0] - steps.q[0, 0]
            print(f'{motion}, {name}: base at {height:.4f} m after {1e3 * way:.1f} mm along x')
        print(f'\n### {motion}\n\n{markdown(found)}\n')
    options.out.mkdir(parents=True, exist_ok=True)
    document = {
        'versions': versions(),
        'scores': {m: {n: s.as_dict() for n, s in found.items()} for m, found in scores.items()},
    }
    text = json.dumps(document, indent=1, allow_nan=False)
    (options.out / 'judge.json').write_text(text + '\n', encoding='utf-8')
    draw(scores, options.out / 'judge.png')
    if options.docs:
        if missing := set(ENGINES).difference(*scores.values()):
            print(f'docs stay as they are without {", ".join(sorted(missing))}', file=sys.stderr)
            return 1
        write_docs(scores)
    return 0


if __name__ == '__main__':
    sys.exit(main())
