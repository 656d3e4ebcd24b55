"""Published policies from their own MJCF, next to MuJoCo.

    python benchmarks/public_policies.py FOLDER [ROBOT ...] [--unitree FOLDER] [--seconds 10]

FOLDER is a checkout of mujoco_playground, the other one of unitree_rl_gym, whose h1 has a network
that torch reads; their networks and robots are not part of this project.
`load_robot` reads the MJCF of each robot, and the policy file has the layout of the framework by
name: joints in the order of the actuators, pose of the keyframe, gains of the MJCF. MuJoCo runs
the same MJCF with its options but the time step, and without the meshes that only draw. Each
row: mean velocity forward and to the left [m/s] and turning rate [rad/s] after 2 s, and the time
of a fall.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml
from engines import write_json
from numpy.typing import NDArray

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.control import Policy, load_policy

Array = NDArray[np.float64]
LAWS = 'ncp', 'todorov', 'sap', 'compliant'
TIME_STEP, SETTLING = 2e-3, 2.0
FINEST = 200
"""Corners of the hull of a sole: all of them."""
FALLEN = 0.5
"""Cosine of the tilt, and share of the height in its pose, at which a robot has fallen."""


@dataclass(frozen=True)
class Case:
    """A policy of the framework."""

    scene: str
    network: str
    layout: str
    command: tuple[float, float, float]
    scale: float = 0.5
    pose: str = 'standing'
    unseen: int = 0
    """Joints, the first ones, that the policy is told nothing about."""
    friction: float = 0.6
    soles: tuple[str, ...] = ()
    """Links whose meshes touch the ground; none: the feet that the MJCF names."""


HUMANOID = 'mujoco_playground_humanoid'
CASES = {
    'go1': Case('go1', 'go1', 'mujoco_playground', (1.0, 0.0, 0.0)),
    'g1': Case('g1', 'g1', HUMANOID, (0.5, 0.0, 0.0), pose='knees_bent'),
    't1': Case('t1', 't1', HUMANOID, (0.5, 0.0, 0.0), 1.0, unseen=2),
    'berkeley_humanoid': Case('berkeley_humanoid', 'bh', HUMANOID, (0.5, 0.0, 0.0)),
}
H1 = Case(
    'resources/robots/h1/scene.xml', 'h1', 'unitree_rl_gym', (0.5, 0.0, 0.0), 0.25, friction=1.0,
    soles=('left_ankle_link', 'right_ankle_link'),
)  # fmt: skip


class Peer:
    """The same MJCF in MuJoCo."""

    def __init__(self, scene: Path) -> None:
        import mujoco

        self._mujoco = mujoco
        spec = mujoco.MjSpec.from_file(str(scene))
        for geom in list(spec.geoms):
            if geom.type == mujoco.mjtGeom.mjGEOM_MESH and not (geom.contype or geom.conaffinity):
                spec.delete(geom)
        used = {geom.meshname for geom in spec.geoms}
        for mesh in list(spec.meshes):
            if mesh.name not in used:
                spec.delete(mesh)
        self.model = spec.compile()
        self.model.opt.timestep = TIME_STEP
        self.data = mujoco.MjData(self.model)
        joints = [int(joint) for joint in self.model.actuator_trnid[:, 0]]
        self.joints = [
            mujoco.mj_id2name(self.model, mujoco.mjtObj.mjOBJ_JOINT, joint) for joint in joints
        ]
        self._q = self.model.jnt_qposadr[joints]
        self._v = self.model.jnt_dofadr[joints]

    def start(self, robot: RobotModel, q: Array) -> None:
        """Set a configuration of the robot, at rest."""
        self._mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:7] = [*q[:3], q[6], *q[3:6]]
        self.data.qpos[self._q] = self._ordered(robot, robot.joint_positions(q))

    def _ordered(self, robot: RobotModel, values: Array) -> Array:
        return values[[robot.joint_names.index(joint) for joint in self.joints]]

    def state(self, robot: RobotModel) -> tuple[Array, Array]:
        """Return q and v of the robot."""
        q, v = robot.reference_configuration().copy(), np.zeros(robot.nv)
        w = self.data.qpos[3]
        q[:7] = [*self.data.qpos[:3], *self.data.qpos[4:7], w]
        place = [self.joints.index(joint) for joint in robot.joint_names]
        q = robot.with_joint_positions(q, self.data.qpos[self._q][place])
        turn = pin.Quaternion(q[3:7]).toRotationMatrix()
        v[:3], v[3:6] = turn.T @ self.data.qvel[:3], self.data.qvel[3:6]
        v[robot.joint_velocity_index] = self.data.qvel[self._v][place]
        return q, v

    def step(self, robot: RobotModel, values: Array) -> None:
        """Take a step with targets of the servos, or efforts of the motors."""
        self.data.ctrl[:] = self._ordered(robot, values)
        self._mujoco.mj_step(self.model, self.data)


def written(case: Case, folder: Path, robot: RobotModel, joints: list[str], into: Path) -> Path:
    """Write the file of a policy; return its path."""
    network = f'{case.network}_policy.onnx'
    shutil.copy(folder / 'mujoco_playground/experimental/sim2sim/onnx' / network, into)
    order = [robot.joint_names.index(joint) for joint in joints]
    pose = robot.joint_positions(robot.reference_configuration(case.pose))[order]
    gains = np.array([robot.described_gains[joint] for joint in joints])
    stated: dict[str, Any] = {
        'layout': case.layout, 'network': network, 'joints': joints, 'pose': pose.tolist(),
        'gains': {'kp': gains[:, 0].tolist(), 'kd': gains[:, 1].tolist()},
        'action': {'scale': case.scale},
    }  # fmt: skip
    if case.unseen:
        seen = [0.0] * case.unseen + [1.0] * (len(joints) - case.unseen)
        stated['scales'] = {'joint_pos': seen, 'joint_vel': seen}
    path = into / 'policy.yaml'
    path.write_text(yaml.safe_dump(stated), encoding='utf-8')
    return path


def written_of_unitree(folder: Path, into: Path) -> tuple[Path, dict[str, tuple[float]]]:
    """Write the file of the policy of h1; return its path, and the pose."""
    shutil.copy(folder / 'deploy/pre_train/h1/motion.pt', into)
    deployed = yaml.safe_load((folder / 'deploy/deploy_mujoco/configs/h1.yaml').read_text())
    names = [
        f'{side}_{joint}_joint'
        for side in ('left', 'right')
        for joint in ('hip_yaw', 'hip_roll', 'hip_pitch', 'knee', 'ankle')
    ]
    stated = {
        'layout': H1.layout, 'network': 'motion.pt', 'joints': names,
        'pose': deployed['default_angles'], 'action': {'scale': deployed['action_scale']},
        'gains': {'kp': deployed['kps'], 'kd': deployed['kds']},
    }  # fmt: skip
    path = into / 'policy.yaml'
    path.write_text(yaml.safe_dump(stated), encoding='utf-8')
    return path, {
        name: (angle,) for name, angle in zip(names, deployed['default_angles'], strict=True)
    }


def walked(
    step: Callable[[], tuple[Array, Array]], height: float, seconds: float
) -> dict[str, Any]:
    """Return the mean velocity after SETTLING, and the time of a fall."""
    speeds, fell = [], None
    for k in range(round(seconds / TIME_STEP)):
        q, v = step()
        upright = pin.Quaternion(q[3:7]).toRotationMatrix()[2, 2]
        speeds.append([v[0], v[1], v[5]])
        if upright < FALLEN or q[2] < FALLEN * height:
            fell = (k + 1) * TIME_STEP
            break
    settled = speeds[round(SETTLING / TIME_STEP) :] or speeds
    return {'velocity': np.mean(settled, axis=0).round(3).tolist(), 'fell': fell}


def measured(case: Case, folder: Path, seconds: float) -> dict[str, Any]:
    """Return the row of a policy: each law, and MuJoCo."""
    with tempfile.TemporaryDirectory() as into, warnings.catch_warnings():
        warnings.simplefilter('ignore')
        if case is H1:
            scene = folder / case.scene
            path, standing = written_of_unitree(folder, Path(into))
            robot = load_robot(scene, feet=(), body_contacts=False, poses={'standing': standing})
            robot = robot.with_body_contacts(case.soles, most=FINEST)
            peer = Peer(scene)
        else:
            scene = folder / 'mujoco_playground/_src/locomotion' / case.scene / 'xmls'
            scene /= 'scene_mjx_feetonly_flat_terrain.xml'
            robot, peer = load_robot(scene, check_meshes=False), Peer(scene)
            path = written(case, folder, robot, peer.joints, Path(into))
        return compared(case, path, robot, peer, seconds)


def compared(
    case: Case, path: Path, robot: RobotModel, peer: Peer, seconds: float
) -> dict[str, Any]:
    """Return how a policy walks under each law, and in MuJoCo."""
    row: dict[str, Any] = {}

    def fresh() -> Policy:
        policy = load_policy(path, robot)
        policy.velocity = case.command
        return policy

    for law in LAWS:
        sim = Simulator(robot, law, friction=case.friction, time_step=TIME_STEP)
        start = sim.standing_configuration(case.pose)
        sim.reset(start)
        policy = fresh()

        def ours(sim: Simulator = sim, policy: Policy = policy) -> tuple[Array, Array]:
            report = sim.step(policy.effort(sim.time, sim.q, sim.v))
            return report.q, report.v

        row[law] = walked(ours, float(start[2]), seconds)
    policy = fresh()
    peer.start(robot, start)

    def theirs() -> tuple[Array, Array]:
        q, v = peer.state(robot)
        time = float(peer.data.time)
        if case is H1:  # its motors have no gains
            peer.step(robot, policy.effort(time, q, v))
        else:
            peer.step(robot, policy.command(time, q, v).position)
        return q, v

    row['mujoco'] = walked(theirs, float(start[2]), seconds)
    return row


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else '')
    parser.add_argument('folder', type=Path)
    parser.add_argument('robots', nargs='*', metavar='ROBOT', help=', '.join(CASES))
    parser.add_argument('--unitree', type=Path, help='checkout of unitree_rl_gym, for h1')
    parser.add_argument('--seconds', type=float, default=10.0)
    parser.add_argument('--json', type=Path)
    options = parser.parse_args()
    rows, cases = {}, {name: (CASES[name], options.folder) for name in options.robots or CASES}
    if options.unitree is not None:
        cases['h1'] = H1, options.unitree
    for name, (case, folder) in cases.items():
        rows[name] = measured(case, folder, options.seconds)
        print(f'{name}, commanded {case.command}')
        for law, found in rows[name].items():
            fell = f'falls after {found["fell"]:.2f} s' if found['fell'] else ''
            print(f'  {law:10} {found["velocity"]} {fell}', flush=True)
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
