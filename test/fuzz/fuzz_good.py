"""Good arguments of every public call, by name and by type, so that one at a time can be odd."""

from __future__ import annotations

import dataclasses
import inspect
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import contact_sim
from contact_sim import ContactProblem, Simulator, Worlds, load_robot, support
from contact_sim.compare._scenarios import scenario_of
from contact_sim.constraints import PointAnchor, Projection
from contact_sim.control._balance import BalanceTuning
from contact_sim.control._stance import BaseGains
from contact_sim.control._trot import TrotTuning
from contact_sim.replay import Recorder, Recording
from contact_sim.replay._export import Targets
from contact_sim.replay._replayer import Timeline
from contact_sim.robot._actuators import holding
from contact_sim.robot._coordinates import PositionLimit
from contact_sim.sensors import DelayedSensor, Encoders
from contact_sim.step._problem import Cone, Interval
from contact_sim.terrain import (
    HeightField,
    Region,
    SubTerrain,
    Terraces,
    TerrainGenerator,
    TriangleMesh,
    boxes,
    sub_terrain,
)
from contact_sim.testing import Trial, recorded_trajectory
from contact_sim.view._session import LiveSession

STAIRS = {
    'type': 'pyramid_stairs', 'step_height_range': (0.05, 0.2), 'step_width': 0.3,
    'platform_width': 1.0,
}  # fmt: skip
WAVE = {'num_waves': 1, 'amplitude_range': (0.05, 0.1)}
GENERATOR: dict[str, Any] = {
    'size': (4.0, 4.0),
    'sub_terrains': {'flat': {'type': 'plane'}, 'rough': {'type': 'wave', **WAVE}},
    'horizontal_scale': 0.5,
}


class Good:
    """What a call needs to succeed.

    Args:
        folder: for files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.robot = robot = load_robot('quadruped')
        self.sim = Simulator(robot)
        self.start = self.sim.snapshot()
        self.effort = np.zeros(robot.n_joints)
        self.report = self.sim.step(self.effort)
        self.sim.restore(self.start)
        self.problem = ContactProblem.from_delassus(
            np.eye(4), np.array([0.1, 0.0, -0.2, 0.3]), [0.5], lower=[-1.0], upper=[1.0]
        )
        self.feet = [foot.name for foot in robot.feet]
        self.stance = support.stance_dynamics(robot, self.sim.q, np.zeros(robot.nv), self.feet)
        self.worlds = Worlds(robot, 2, threads=1)
        for model in contact_sim.contact_models():  # compiles them: that is no hang
            Simulator(robot, model)
        self.recording = self._recorded(folder / 'good.npz')
        self.session = LiveSession(Simulator(robot), paused=True)
        self.field = HeightField(np.zeros((8, 8)), 0.5, (-2.0, -2.0))
        self.mesh = boxes([-2.0, -2.0, -1.0], [2.0, 2.0, 0.0])
        self._files()
        self.by_name = self._by_name()
        self.instances = self._instances()

    def _recorded(self, path: Path) -> Path:
        with Recorder(self.sim, path):
            for _ in range(20):
                self.sim.step(self.effort)
        self.sim.restore(self.start)
        return path

    def _files(self) -> None:
        folder = self.folder
        self.problem.save(folder / 'problem.npz')
        np.save(folder / 'heights.npy', np.zeros((4, 4)))
        (folder / 'box.obj').write_text(
            'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n',
            encoding='utf-8',
        )
        (folder / 'generator.yaml').write_text(
            'size: [4.0, 4.0]\nsub_terrains: {flat: {type: plane}}\nhorizontal_scale: 0.5\n',
            encoding='utf-8',
        )

    def _by_name(self) -> dict[str, Any]:
        """Return values by 'callable.argument' or by argument; functions make one per call."""
        robot, q, n, folder = self.robot, self.sim.q, len(self.feet), self.folder
        zeros, nv = np.zeros(3), robot.nv
        joints = list(robot.joint_names)
        command = holding(np.zeros(len(joints)), np.ones(len(joints)), np.ones(len(joints)))
        limit = PositionLimit((joints[0],), -1.0, 1.0)
        rng = np.random.default_rng
        return {
            'robot': robot, 'q': q, 'v': np.zeros(nv), 'u': np.zeros(nv), 'effort': self.effort,
            'time': 0.25, 'steps': 3, 'n': 2, 'every': 1, 'period': 1, 'threads': 1,
            'positions': self.effort, 'points': np.zeros((2, 3)), 'x': 0.5, 'y': -0.5,
            'active': self.feet, 'wanted': np.zeros(nv), 'generalized_force': np.zeros(nv),
            'acceleration': np.zeros(nv), 'jacobian': np.eye(3, nv), 'matrix': np.eye(3, 6),
            'null_space_projector.inertia': np.eye(nv), 'terrain': 'plane', 'stance': self.stance,
            'inverse_dynamics.force': np.zeros(3 * n), 'joint_effort.force': np.zeros(nv),
            'base_residual.force': np.zeros(3 * n), 'directions': ('t1', 't2', 'n'),
            'delassus': np.eye(4), 'g': np.zeros(4), 'friction': 0.5, 'restitution': 0.1,
            'torsional_friction': 0.01, 'rolling_friction': 0.01,
            'from_delassus.friction': [0.5],
            'from_delassus.bounds': {'lower': [-1.0], 'upper': [1.0]},
            'problem': self.problem, 'guess': np.zeros(4), 'impulse': np.zeros(4),
            'law_residuals.impulse': np.zeros(4), 'contact_model': 'ncp', 'command': command,
            'external_wrenches': {robot.base_frame: np.zeros(6)}, 'snapshot': self.sim.snapshot,
            'wrenches': np.zeros((2, 6)), 'frame': robot.base_frame, 'world': 1,
            'worlds': np.array([1]), 'controller': lambda time, q, v: self.effort,
            'Worlds.run.controller': lambda *_: np.zeros((2, robot.n_joints)),
            'of': lambda name: name, 'names': joints, 'pose': 'standing',
            'reference_configuration.name': 'standing', 'limits': [limit],
            'joined.robots': {'a': robot}, 'places': {'a': (0.0, 0.0, 0.0)}, 'model':
            robot.pinocchio_model, 'contact_points': self.feet, 'actuated_joints': joints,
            'source': 'quadruped', 'contact_frames': self.feet, 'links': None, 'most': 8,
            'edge_radius': 0.01, 'size': (0.3, 0.2, 0.1), 'mass': 2.0, 'radius': 0.1,
            'heights': np.zeros((4, 4)), 'horizontal_scale': 0.5, 'origin': (0.0, 0.0),
            'slope_threshold': 0.75, 'function': lambda x, y: 0.0 * x * y,
            'of_function.size': (2.0, 2.0), 'blocks_on.size': (2.0, 2.0), 'path': self._path,
            'difficulty': 0.5, 'rng': lambda: rng(0), 'needed': 1.0, 'SubTerrain.size': (4.0, 4.0),
            'blocks': [((0.5, 1.0), (0.5, 1.0), 0.2)], 'x_cuts': np.array([0., 1., 2.]),
            'y_cuts': np.array([0., 1., 2.]), 'Terraces.heights': np.zeros((2, 2)),
            'lower': np.zeros(3) - 1.0, 'upper': zeros, 'meshes': [self.mesh],
            'vertices': np.eye(3), 'triangles': np.array([[0, 1, 2]]), 'values': dict(GENERATOR),
            'sub_terrain.name': 'pyramid_stairs', 'sub_terrain.values': dict(STAIRS), 'scale': 1.0,
            'sub_terrains': GENERATOR['sub_terrains'], 'TerrainGenerator.size': (4.0, 4.0),
            'regions': [Region((-1.0, 1.0), (-1.0, 1.0), 0.5)], 'sensor': Encoders(robot),
            'report': self.report, 'Worlds.report.world': 1, 'recording': self._recording,
            'on_step': None, 'seconds': 0.01, 'share': 0.5, 'seed': 3, 'link': robot.base_frame,
            'Trial.push.force': (1.0, 0.0, 0.0), 'push.force': (1.0, 0.0, 0.0),
            'torque': (0.0, 0.0, 0.0), 'control_steps': 1, 'end_on_contact': (), 'sim': self._sim,
            'Trial.recording': lambda: self.folder / 'trial.npz', 'Recorder.path': lambda:
            self.folder / 'recorded.npz', 'hash_every': 2, 'chunk': 64, 'parameters': {'a': 1},
            'motion': 'hold', 'gains': BaseGains(), 'tuning': TrotTuning(), 'axes': 'foot',
            'Stance.friction': 0.5, 'Balance.friction': 0.5, 'Balance.tuning': BalanceTuning(),
            'Balance.pose': 'standing', 'cannot_balance.pose': 'standing',
            'joint': joints[0], 'offset': zeros, 'name': 'x',
            'ContactPoint.frame': 'trunk', 'ContactPoint.joint': 'root_joint', 'normal':
            (0.0, 0.0, 1.0), 'point': (0.0, 0.0, -10.0), 'time_step': 1e-3, 'gravity': 9.81,
            'force_of_effort.effort': self.effort, 'generalized_force.effort': self.effort,
            'minimal_acceleration.independent': None, 'independent': None, 'tolerance': 1e-3,
            'assert_never_fell.height': 0.1, 'tilt': 2.0, 'over': 10.0, 'speed': 10.0,
            'save.path': lambda: self.folder / 'saved.npz', 'worlds.time': 0.0,
            'velocity': (0.1, 0.0, 0.0),
            'restitution_threshold': 0.01, 'steps_per_call': 1, 'actuators': None, 'constraints':
            (), 'xacro_arguments': None, 'from_pinocchio.name': 'x', 'masses': None, 'srdf': None,
            'other': None, 'observer': type('Observer', (), {'before_step': lambda *_: None,
                                                             'after_step': lambda *_: None})(),
            'from_dynamics.inertia': np.eye(3), 'from_dynamics.jacobian': np.eye(3),
            'from_dynamics.velocity': zeros, 'from_dynamics.free_motion': zeros,
            'from_dynamics.friction': [0.5], 'from_dynamics.gap': [0.0], 'from_dynamics.bias':
            zeros, 'from_dynamics.lower': np.zeros(0), 'from_dynamics.upper': np.zeros(0),
            'from_dynamics.delassus': None, 'from_blocks.blocks': [
                Cone(np.eye(3), 0.5, 0.0), Interval(np.eye(1, 3), -1.0, 1.0)],
            'from_blocks.inertia': np.eye(3), 'from_blocks.velocity': zeros,
            'from_blocks.free_motion': zeros, 'ContactProblem.load.path': folder / 'problem.npz',
            'HeightField.from_file.path': folder / 'heights.npy', 'Plane.offset': 0.0,
            'TriangleMesh.from_file.path': folder / 'box.obj', 'of.name': 'a',
            'TerrainGenerator.from_file.path': folder / 'generator.yaml', 'JoinedRobots.name': 'x',
            'frame_placement.name': 'trunk', 'pinocchio_model': robot.pinocchio_model,
            'joint_names': tuple(joints), 'SubTerrain.build.size': (4.0, 4.0),
            'RobotModel.contact_points': robot.contact_points, 'position_limits': (limit,),
            'memory': DelayedSensor(Encoders(robot)).memory, 'shadow': ('sap',), 'baumgarte': 0.2,
            'Trajectory.assert_settled_by.time': 0.001,
            'MaximalSimulator.robot': robot.with_actuators(viscous_friction=0.0, dry_friction=0.0),
            'stabilisation': Projection(), 'LiveSession.sim': lambda: Simulator(robot),
            'LiveSession.paused': True, 'set_shadows.names': ('sap',), 'set_controller.name':
            'sway', 'LiveSession.drag.target': zeros, 'timeline': lambda:
            Timeline(self._recording()), 'targets':
            Targets(csv=folder / 'table.csv', mcap=folder / 'run.mcap', overwrite=True),
            'Holonomic.error': lambda q: q[7:8] - 0.1, 'Holonomic.jacobian':
            lambda q: np.eye(1, nv, 6), 'JointCoupling.offset': 0.1, 'JointVelocity.velocity':
            0.1, 'LoopClosure.other': 'trunk', 'add_constraint.constraint': PointAnchor('trunk'),
            'scenario': scenario_of('stand', 0.01), 'scenario_of.name': 'stand', 'models':
            ('sap',), 'progress': None, 'set_contact_model.name': 'sap',
            'holding.position': self.effort,
            'stiffness': self.effort, 'damping': self.effort, 'check_blocks.size': (4.0, 4.0),
            'plane': None, 'solver': 'sparse',
            'with_position_limits.limits': (), 'references': {'standing': q},
        } | {
            f'ContactProblem.{item.name}': getattr(self.problem, item.name)
            for item in dataclasses.fields(self.problem)
        }  # fmt: skip

    def _recording(self) -> Recording:
        return Recording(self.recording)

    def _sim(self) -> Simulator:
        self.sim.restore(self.start)
        return self.sim

    def _session(self) -> LiveSession:
        self.session.drag('trunk', None)
        self.session.reset()
        return self.session

    def _path(self) -> Path:
        return self.recording

    def _instances(self) -> dict[type, Callable[[], Any]]:
        """Return what makes an instance, of classes that are not built from good arguments."""
        return {
            Simulator: self._sim,
            Worlds: self._reset_worlds,
            contact_sim.Snapshot: lambda: self.start,
            contact_sim.Support: lambda: contact_sim.analyse_support(
                self.robot, self.start_q, self.feet
            ),
            contact_sim.RobotModel: lambda: self.robot,
            contact_sim.JoinedRobots: lambda: contact_sim.joined({'a': self.robot}),
            ContactProblem: lambda: self.problem,
            HeightField: lambda: self.field,
            TriangleMesh: lambda: self.mesh,
            Terraces: lambda: Terraces(np.arange(3.0), np.arange(3.0), np.zeros((2, 2))),
            contact_sim.Compliant: lambda: contact_sim.Compliant(stiffness=1e4),
            SubTerrain: lambda: sub_terrain('wave', WAVE),
            contact_sim.terrain.GeneratedTerrain: lambda: TerrainGenerator.from_dict(
                GENERATOR
            ).generate(),
            TerrainGenerator: lambda: TerrainGenerator.from_dict(GENERATOR),
            DelayedSensor: lambda: DelayedSensor(Encoders(self.robot)),
            Recording: self._recording,
            Timeline: lambda: Timeline(self._recording()),
            LiveSession: self._session,
            support.StanceDynamics: lambda: self.stance,
            support.Partition: lambda: support.split_base(self.stance),
            Trial: lambda: Trial(self._sim(), lambda *_: self.effort, self.folder / 'trial.npz'),
            contact_sim.testing.Trajectory: lambda: recorded_trajectory(self._recording()),
        }

    @property
    def start_q(self) -> np.ndarray:
        """Configuration in which the robot stands, shape (nq,)."""
        self.sim.restore(self.start)
        return self.sim.q

    def _reset_worlds(self) -> Worlds:
        self.worlds.reset()
        return self.worlds

    def knows(self, owner: str, argument: str) -> str | None:
        """Return the key of a good value for an argument of 'Class.method' or 'function'."""
        cls, _, method = owner.partition('.')
        keys = [f'{owner}.{argument}', f'{method or cls}.{argument}']
        return next((key for key in (*keys, argument) if key in self.by_name), None)

    def argument(self, owner: str, parameter: inspect.Parameter, chance: random.Random) -> Any:
        """Return a good value of an argument, as far as one is known."""
        key = self.knows(owner, parameter.name)
        if key is not None:
            value = self.by_name[key]
            makes = inspect.ismethod(value) or (
                inspect.isfunction(value) and not inspect.signature(value).parameters
            )
            return value() if makes else value
        if parameter.default is not inspect.Parameter.empty:
            return parameter.default
        return by_annotation(str(parameter.annotation), chance)


def by_annotation(annotation: str, chance: random.Random) -> Any:
    """Return a value of about the type that an annotation names."""
    guesses: tuple[tuple[str, Any], ...] = (
        ('float', 0.5), ('int', 1), ('bool', True), ('str', 'x'), ('Path', 'x'),
        ('Mapping', {}), ('Array', np.zeros(chance.choice((1, 3, 12)))), ('Iterable', ()),
        ('Sequence', ()), ('tuple', ()), ('list', []),
    )  # fmt: skip
    return next((value for word, value in guesses if re.search(rf'\b{word}', annotation)), None)
