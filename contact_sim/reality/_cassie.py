"""Landings of Cassie: its model with leaf springs and closed legs, and the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from scipy.optimize import brentq

from contact_sim import _reading
from contact_sim._types import Array
from contact_sim._validation import as_tuple, checked, count
from contact_sim.contact_models._base import TimeSteppingModel
from contact_sim.errors import InvalidInput, of_type
from contact_sim.reality._data_sets import CASSIE_JOINTS, CASSIE_MOTORS, Landing
from contact_sim.reality._experiments import (
    MOST_WORLDS,
    Measure,
    chosen,
    side_by_side,
)
from contact_sim.reality._laws import Candidate
from contact_sim.robot._contact_points import ContactPoint
from contact_sim.robot._loading import load_robot
from contact_sim.robot._model import RobotModel
from contact_sim.simulation._simulator import Simulator

ROD_LENGTH = 0.5012
"""Of the achilles rods, from thigh to heel [m]."""
ROD_MASS = 0.02
"""A rod stands for a distance [kg]."""
ROD_AT_THIGH = {'left': (0.0, 0.0, 0.045), 'right': (0.0, 0.0, -0.045)}
ROD_AT_HEEL = (0.11877, -0.01, 0.0)
SOLE = {'front': (-0.0457, 0.112, 0.0), 'rear': (0.088, 0.0, 0.0)}
"""Points of a toe link that touch the ground [m]."""
SPRINGS = {'knee_joint': 1500.0, 'ankle_spring_joint': 1250.0}
"""Stiffness of the leaf springs [N m/rad]."""
ARMATURE = {
    'hip_roll': 25.0**2 * 61e-6, 'hip_yaw': 25.0**2 * 61e-6, 'hip_pitch': 16.0**2 * 365e-6,
    'knee': 16.0**2 * 365e-6, 'toe': 50.0**2 * 4.9e-6,
}  # fmt: skip
"""Inertia of the drives, seen from the joints [kg m²]."""
SIDES = ('left', 'right')
IMPACT = 5e-3
"""Time of the first contact in the files [s], about."""


@checked
def cassie(urdf: Path) -> RobotModel:
    """Return Cassie from a URDF without its loops: with achilles rods, springs and armature.

    Args:
        urdf: path of cassie_v2.urdf of dairlib, or one with its names.

    Raises:
        InvalidInput: a file that is missing or lacks links of Cassie.
    """
    text = _reading.file_bytes(urdf)
    root = _reading.xml_root(text, _reading.BoundedTree(str(urdf)), str(urdf))
    links = {link.get('name') for link in root.iter('link')}
    for side in SIDES:
        for link in (f'thigh_{side}', f'heel_spring_{side}', f'toe_{side}'):
            if link not in links:
                raise InvalidInput(f'{urdf}: no link {link!r}; is it cassie_v2.urdf?')
    for element in list(root):
        if element.tag == 'transmission':
            root.remove(element)
    for body in root.iter('link'):
        for shape in [*body.findall('visual'), *body.findall('collision')]:
            body.remove(shape)
    for limit in root.iter('limit'):  # missing ones are no limits
        limit.attrib.setdefault('velocity', '1000')
        limit.attrib.setdefault('effort', '1e6')
    for inertial in root.iter('inertial'):  # a mass without moments is a point
        if inertial.find('inertia') is None:
            zero = dict.fromkeys(('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'), '0')
            ElementTree.SubElement(inertial, 'inertia', zero)
    for side in SIDES:
        root.extend(_rod(side))
    points = [
        ContactPoint(f'toe_{side}_{place}', f'toe_{side}', f'toe_{side}', np.array(offset), 0.0)
        for side in SIDES
        for place, offset in SOLE.items()
    ]
    whole = ElementTree.tostring(root, encoding='unicode')
    robot = load_robot(whole, feet=points, body_contacts=False, poses={'standing': _pose()})
    drives = {f'{joint}_{side}': value for joint, value in ARMATURE.items() for side in SIDES}
    return robot.with_actuators(None, armature=drives)


def _rod(side: str) -> list[ElementTree.Element]:
    """Return the elements of a rod: a universal joint at the thigh, a ball joint at the heel."""
    moment = ROD_MASS * ROD_LENGTH**2 / 12.0
    at = ' '.join(map(str, ROD_AT_THIGH[side]))
    heel = ' '.join(map(str, ROD_AT_HEEL))
    text = f"""<robot>
    <link name="rod_hub_{side}"><inertial><mass value="0.001"/>
      <inertia ixx="1e-6" iyy="1e-6" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <link name="rod_{side}"><inertial><origin xyz="{0.5 * ROD_LENGTH} 0 0"/>
      <mass value="{ROD_MASS}"/><inertia ixx="1e-6" iyy="{moment}" izz="{moment}"
      ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="rod_turn_{side}" type="revolute"><origin xyz="{at}"/>
      <parent link="thigh_{side}"/><child link="rod_hub_{side}"/><axis xyz="0 0 1"/>
      <limit lower="-6.3" upper="6.3" effort="1e6" velocity="1000"/></joint>
    <joint name="rod_tilt_{side}" type="revolute"><parent link="rod_hub_{side}"/>
      <child link="rod_{side}"/><axis xyz="0 1 0"/>
      <limit lower="-1.5" upper="1.5" effort="1e6" velocity="1000"/></joint>
    <loop_joint name="achilles_{side}" type="spherical">
      <link1 link="rod_{side}" xyz="{ROD_LENGTH} 0 0" rpy="0 0 0"/>
      <link2 link="heel_spring_{side}" xyz="{heel}" rpy="0 0 0"/></loop_joint></robot>"""
    return list(ElementTree.fromstring(text))


def _pose() -> dict[str, float]:
    """Return a pose near those of the landings, from which the loops can be closed."""
    legs = {'hip_pitch': -0.45, 'knee': -1.78, 'ankle_joint': 2.0, 'toe': -1.8}
    return {f'{joint}_{side}': angle for joint, angle in legs.items() for side in SIDES}


class LandingExperiment:
    """Landings of Cassie under the measured torques of its motors.

    Heights are shifted so that the lowest point of the soles touches the ground 5 ms after the
    start, as in the description of the data. Angles of the ankle springs are those that close the
    legs; their velocities too.

    Args:
        landings: what was measured.
        robot: from `cassie`.
        steps: time steps per sample (0.5 ms).
        threads: of `Worlds`; None: all cores.

    Raises:
        InvalidInput: no landings, a pose in which a leg cannot be closed.
    """

    name = 'cassie_landings'
    title = 'Landings of Cassie'
    measures = (
        Measure('velocity', '%', 'norm of the velocity error in the kinetic energy, mean from the '
                'impact on, in % of the norm at the start'),
        Measure('pelvis', 'm/s', 'mean error of the velocity of the pelvis'),
        Measure('joints', 'rad/s', 'root mean square of the errors of joint velocities'),
        Measure('position', 'mm', 'error of the position of the pelvis after 50 ms'),
    )  # fmt: skip

    @checked
    def __init__(
        self,
        landings: Sequence[Landing],
        robot: RobotModel,
        steps: int = 2,
        threads: int | None = None,
    ) -> None:
        items = as_tuple('landings', landings)
        self.landings = tuple(of_type('landing', one, Landing) for one in items)
        if not self.landings:
            raise InvalidInput('landings: expected at least one')
        self.robot, self.threads, self.steps = robot, threads, count('steps', steps)
        spacing = np.concatenate([np.diff(one.time) for one in self.landings])
        self.sample = float(np.median(spacing))
        self.time_step = self.sample / self.steps
        self.samples = min(len(one.time) for one in self.landings)
        model = robot.pinocchio_model
        self._data = model.createData()
        of_joint = [model.joints[model.getJointId(name)] for name in CASSIE_JOINTS]
        self._at = np.array([joint.idx_v for joint in of_joint])
        self._measured = np.array([
            i for i, name in enumerate(CASSIE_JOINTS) if 'ankle_spring' not in name
        ])  # fmt: skip
        names = list(robot.joint_names)
        self._motors = np.array([names.index(name) for name in CASSIE_MOTORS])
        self._springs = np.array([
            names.index(f'{joint}_{side}') for joint in SPRINGS for side in SIDES
        ])  # fmt: skip
        self._stiffness = np.repeat(list(SPRINGS.values()), len(SIDES))
        states = [self.state(one, 0) for one in self.landings]
        self.q, self.v = (np.array(part) for part in zip(*states, strict=True))
        self.inertia = np.array([self._inertia(q) for q in self.q])

    def __len__(self) -> int:
        return len(self.landings)

    def _inertia(self, q: Array) -> Array:
        m = pin.crba(self.robot.pinocchio_model, self._data, q)
        return np.asarray(np.triu(m) + np.triu(m, 1).T)

    def state(self, landing: Landing, k: int) -> tuple[Array, Array]:
        """Return q, v of a sample, with the legs closed."""
        model = self.robot.pinocchio_model
        lowest = self._lowest(landing, min(int(IMPACT / self.sample), len(landing.time) - 1))
        q = self._configuration(landing, k)
        q[2] -= lowest
        v = np.zeros(model.nv)
        turn = pin.Quaternion(landing.attitude[k]).toRotationMatrix()
        v[:3], v[3:6] = turn.T @ landing.velocity[k], turn.T @ landing.turning[k]
        v[self._at] = landing.joint_velocities[k]
        # ankle springs and rods move so that the legs stay closed
        loops = self.robot.loops
        jacobian = loops.jacobian(q)
        free = [
            model.joints[model.getJointId(f'{joint}_{side}')].idx_v
            for side in SIDES
            for joint in ('ankle_spring_joint', 'rod_turn', 'rod_tilt')
        ]
        v[free] = 0.0
        v[free] = -np.linalg.lstsq(jacobian[:, free], jacobian @ v, rcond=None)[0]
        return q, v

    def _configuration(self, landing: Landing, k: int) -> Array:
        """Return q with the ankle springs and rods that close the legs."""
        model, data = self.robot.pinocchio_model, self._data
        q: Array = np.array(pin.neutral(model))
        q[:3], q[3:7] = landing.position[k], landing.attitude[k]
        places = {name: model.joints[model.getJointId(name)].idx_q for name in CASSIE_JOINTS}
        for name, angle in zip(CASSIE_JOINTS, landing.joint_positions[k], strict=True):
            q[places[name]] = angle
        for side in SIDES:
            spring = places[f'ankle_spring_joint_{side}']

            def heel_from_thigh(angle: float, side: str = side, spring: int = spring) -> Array:
                q[spring] = angle
                pin.forwardKinematics(model, data, q)
                thigh = data.oMi[model.getJointId(f'hip_pitch_{side}')]
                heel = data.oMi[model.getJointId(f'ankle_spring_joint_{side}')]
                offset = thigh.actInv(heel.act(np.array(ROD_AT_HEEL)))
                return np.asarray(offset - np.array(ROD_AT_THIGH[side]))

            def too_long(angle: float, measure=heel_from_thigh) -> float:  # type: ignore[no-untyped-def]
                return float(np.linalg.norm(measure(angle)) - ROD_LENGTH)

            guess = q[spring]
            try:
                found = brentq(too_long, guess - 0.15, guess + 0.15, xtol=1e-14)
            except ValueError as error:
                raise InvalidInput(
                    f'landing {landing.name}: the rod of the {side} leg does not fit at sample {k}'
                ) from error
            x, y, z = heel_from_thigh(float(found))
            q[model.joints[model.getJointId(f'rod_turn_{side}')].idx_q] = np.arctan2(y, x)
            q[model.joints[model.getJointId(f'rod_tilt_{side}')].idx_q] = np.arcsin(
                -z / ROD_LENGTH
            )
        return q

    def _lowest(self, landing: Landing, k: int) -> float:
        """Return the height of the lowest point of the soles at a sample [m]."""
        model, data = self.robot.pinocchio_model, self._data
        pin.forwardKinematics(model, data, self._configuration(landing, k))
        return float(min(
            data.oMi[model.getJointId(f'toe_{side}')].act(np.array(place))[2]
            for side in SIDES for place in SOLE.values()
        ))  # fmt: skip

    def errors(self, candidates: Sequence[Candidate], trials: Sequence[int]) -> Array:
        """Return errors, shape (candidates, trials, measures).

        Raises:
            InvalidInput: no candidates, trials that do not exist.
        """
        numbers = chosen(trials, len(self))
        most = max(1, MOST_WORLDS // len(numbers))
        if not all(isinstance(one.model, TimeSteppingModel) for one in candidates):
            most = 1
        pieces = []
        for first in range(0, len(candidates), most):
            some = candidates[first : first + most]
            q, v = self.motions(some, numbers)
            pieces.append(
                [[self._errors(q[:, c, k], v[:, c, k], i) for k, i in enumerate(numbers)]
                 for c in range(len(some))]
            )  # fmt: skip
        return np.concatenate([np.array(piece) for piece in pieces])

    def motions(
        self, candidates: Sequence[Candidate], trials: Sequence[int] | NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return q and v at the samples, shapes (T, candidates, trials, nq) and (…, nv)."""
        numbers = chosen(trials, len(self))
        if not all(isinstance(one.model, TimeSteppingModel) for one in candidates):
            return self._one_by_one(candidates[0], numbers)
        copies = len(candidates), 1
        worlds = side_by_side(self.robot, candidates, len(numbers), self.time_step, self.threads)
        worlds.reset(np.tile(self.q[numbers], copies), np.tile(self.v[numbers], copies))
        measured = np.tile([self.landings[i].effort[: self.samples] for i in numbers],
                           (len(candidates), 1, 1))  # fmt: skip
        qs, vs = [worlds.q], [worlds.v]
        for k in range(self.samples - 1):
            for _ in range(self.steps):
                worlds.step(self._effort(measured[:, k], worlds.q))
            qs.append(worlds.q)
            vs.append(worlds.v)
        shape = self.samples, len(candidates), len(numbers), -1
        return np.reshape(qs, shape), np.reshape(vs, shape)

    def _effort(self, motors: Array, q: Array) -> Array:
        effort = np.zeros((len(q), self.robot.n_joints))
        effort[:, self._motors] = motors
        position = q[:, 7:]  # one coordinate per joint, in Pinocchio order
        effort[:, self._springs] = -self._stiffness * position[:, self._springs]
        return effort

    def _one_by_one(self, candidate: Candidate, numbers: NDArray[np.int64]) -> tuple[Array, Array]:
        sim = Simulator(
            self.robot, candidate.model, friction=candidate.friction,
            restitution=candidate.restitution, time_step=self.time_step,
        )  # fmt: skip
        qs, vs = [], []
        for i in numbers:
            sim.reset(self.q[i], self.v[i])
            q, v = [np.array(sim.q)], [np.array(sim.v)]
            for k in range(self.samples - 1):
                for _ in range(self.steps):
                    motors = self.landings[i].effort[k][None]
                    sim.step(self._effort(motors, sim.q[None])[0])
                q.append(np.array(sim.q))
                v.append(np.array(sim.v))
            qs.append(q)
            vs.append(v)
        return np.array(qs).transpose(1, 0, 2)[:, None], np.array(vs).transpose(1, 0, 2)[:, None]

    def _difference(self, v: Array, trial: int, k: int) -> Array:
        """Return the velocity error at a sample (nv,), 0 where nothing was measured."""
        landing = self.landings[trial]
        error = np.zeros_like(v)
        turn = pin.Quaternion(landing.attitude[k]).toRotationMatrix()
        error[:3] = v[:3] - turn.T @ landing.velocity[k]
        error[3:6] = v[3:6] - turn.T @ landing.turning[k]
        at = self._at[self._measured]
        error[at] = v[at] - landing.joint_velocities[k, self._measured]
        return error

    def velocity_error(self, v: Array, trial: int, k: int) -> float:
        """Return the norm of the velocity error at a sample over that of the start."""
        start = np.zeros_like(self.v[trial])
        known = np.concatenate([np.arange(6), self._at[self._measured]])
        start[known] = self.v[trial, known]
        inertia, error = self.inertia[trial], self._difference(v, trial, k)
        return float(np.sqrt((error @ inertia @ error) / (start @ inertia @ start)))

    def sole_heights(self, every: int = 1) -> list[list[float]]:
        """Return measured heights of the lowest point of the soles over its first contact [m]."""
        first = int(IMPACT / self.sample)
        return [
            [self._lowest(one, k) - self._lowest(one, first)
             for k in range(0, len(one.time), every)]
            for one in self.landings
        ]  # fmt: skip

    def _errors(self, q: Array, v: Array, trial: int) -> Array:
        """Return the measures of a landing: simulated q (T, nq), v (T, nv)."""
        landing, n = self.landings[trial], self.samples
        later = range(int(IMPACT / self.sample), n)
        error = np.array([self._difference(v[k], trial, k) for k in later])
        shift = q[-1, :3] - q[0, :3] - (landing.position[n - 1] - landing.position[0])
        return np.array([
            100.0 * np.mean([self.velocity_error(v[k], trial, k) for k in later]),
            np.linalg.norm(error[:, :3], axis=1).mean(),
            np.sqrt(np.mean(error[:, self._at[self._measured]] ** 2)),
            1e3 * np.linalg.norm(shift),
        ])  # fmt: skip
