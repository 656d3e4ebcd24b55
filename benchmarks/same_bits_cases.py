"""The cases of same_bits.py, by name."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from same_bits_runs import (
    MODEL,
    ROBOTS,
    STEPS,
    SUPPORT,
    Array,
    Case,
    Digest,
    Result,
    Standing,
    add_report,
    drop,
    dropped,
    ground,
    pushes,
    robot_called,
    run,
    the,
)

import contact_sim

# ------------------------------------------------------------------------------- 1: models


def on_ground(model: Any, robot: str, name: str, **settings: Any) -> str:
    """Return the digest of a robot on a ground."""
    return dropped(contact_sim.Simulator(robot_called(robot), model, ground(name), **settings))


VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    'Anitescu': ({'sides': 6}, {'max_points': 3, 'max_sweeps': 3, 'max_admm_iterations': 5}),
    'Compliant': (
        *({'normal_law': law} for law in ('linear', 'kelvin_voigt', 'unclamped')),
        *({'friction_law': law} for law in ('piecewise', 'tanh', 'stribeck')),
        {'integration': 'explicit', 'stiffness': 2e4},
        {'exponent': 1.0, 'static_ratio': 1.3, 'friction_law': 'stribeck'},
    ),
    'Hybrid': (
        *(
            {'impact': law}
            for law in ('plastic', 'poisson', 'moreau', 'frictionless', 'infinite_friction')
        ),
        {'energy_guard': False, 'max_events': 1},
        {'max_substep': 2e-4},
    ),
    'Lcp': ({'friction_law': 'box'}, {'sides': 4}, {'max_pivots': 4}),
    'Ncp': (
        *({'solver': solver} for solver in ('pgs', 'raisim', 'staggered')),
        {'max_points': 3, 'max_sweeps': 3, 'max_admm_iterations': 5},
    ),
    'NullSpace': (
        {'release': True},
        {'support': 'given', 'feet': ('FL_foot', 'RR_foot')},
        {'stabilisation': 'velocity', 'touch_gap': 1e-3},
    ),
    'Sap': (
        {'approximation': 'similar'},
        {'approximation': 'sap'},
        {'weight': 'delassus'},
        {'acts_ahead': True},
    ),
    'Todorov': (
        {'form': '2014'},
        {'cone': 'elliptic'},
        {'cone': 'elliptic', 'impratio': 10.0, 'noslip_iterations': 5},
        {'diagonal': 'exact'},
        {'refsafe': False, 'time_constant': 0.005},
    ),
}
"""Parameters of the models besides their defaults, by the names of their classes."""


def variant(name: str, number: int) -> str:
    """Return the digest of a model with other parameters than its own, in a wide stance change."""
    model = the(name)(**VARIANTS[name][number])
    return on_ground(model, 'go1', 'plane', restitution=0.3)


def switched(first: str) -> str:
    """Return the digest of a run in which model, friction, time step and ground change."""
    models = [first, *contact_sim.contact_models()]

    def change(sim: Any, step: int) -> None:
        if step and step % 15 == 0:
            sim.contact_model = models[(step // 15) % len(models)]
        if step == 40:
            sim.friction, sim.restitution = 0.3, 0.2
        if step == 60:
            sim.baumgarte, sim.restitution_threshold = 0.5, 0.02
        if step == 75:
            sim.time_step = 2e-3
        if step == 100:
            sim.reset(terrain=ground('rough'))

    sim = contact_sim.Simulator(robot_called('go1'), first, friction=[0.8, 0.7, 0.6, 0.5])
    return dropped(sim, change=change)


# ------------------------------------------------------------------------------- 2: bodies


@cache
def bodies(name: str) -> Any:
    """Return robots whose links touch each other, loose bodies, or other robots."""
    box, ball = contact_sim.loose_box, contact_sim.loose_ball
    if name == 'folded':
        return robot_called('go1').with_body_contacts().with_self_collision()
    if name == 'crate':
        dog = robot_called('quadruped').with_body_contacts()
        loose = {'crate': box((0.3, 0.2, 0.1), 2.0), 'ball': ball(0.05, 0.3)}
        places = {'crate': (0.05, 0.0, 0.2), 'ball': (0.4, 0.3)}
        return contact_sim.joined({'dog': dog, **loose}, places, against_each_other=True)
    if name == 'two':
        both = {'a': robot_called('go1'), 'b': robot_called('solo12')}
        places = {'a': (0.0, 0.0, 0.1), 'b': (0.45, 0.1, 1.0)}
        return contact_sim.joined(both, places, against_each_other=True)
    if name == 'cradle':
        return robot_called('newtons_cradle').with_self_collision()
    return box((0.2, 0.3, 0.1), 3.0) if name == 'box' else ball(0.1, 1.0)


def touching(model: str, name: str, on: str = 'plane') -> str:
    """Return the digest of bodies that touch each other and the ground."""
    robot = bodies(name)
    sim = contact_sim.Simulator(robot, model, ground(on))
    if name == 'folded':
        return dropped(sim, 0.02, 0.2, lean=[-0.9, 0.3, -0.2, 0.9, 0.0, 0.2] * 2, steps=200)
    if name == 'cradle':
        return run(sim, 700)
    if name == 'crate':
        drop(sim)
        q = sim.q.copy()
        q[robot.of('crate')[0].start + 2] += 0.4
        sim.reset(q, sim.v)
        return run(sim)
    if name == 'box':
        return dropped(sim, 0.05, 0.3, steps=200)
    return dropped(sim, 0.005 if name == 'ball' else 0.02)


# ------------------------------------------------------------------------------- 3: bilateral


MIMIC = """<robot name="pair">
<link name="base"><inertial><mass value="2.0"/><origin xyz="0 0 0.01"/>
<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.2 0.1 0.05"/></geometry></collision></link>
<link name="left"><inertial><mass value="0.3"/><origin xyz="0 0 -0.1" rpy="0.1 0 0.2"/>
<inertia ixx="0.002" iyy="0.002" izz="0.001" ixy="0" ixz="0.0001" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/></geometry></collision></link>
<link name="right"><inertial><mass value="0.3"/><origin xyz="0 0 -0.1"/>
<inertia ixx="0.002" iyy="0.002" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><origin xyz="0 0 -0.2"/><geometry><sphere radius="0.02"/></geometry></collision></link>
<joint name="swing" type="revolute"><parent link="base"/><child link="left"/>
<origin xyz="0.05 0.1 0" rpy="0 0.1 0"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="20" velocity="30"/>
<dynamics damping="0.05" friction="0.1"/></joint>
<joint name="follow" type="revolute"><parent link="base"/><child link="right"/>
<origin xyz="-0.05 -0.1 0"/><axis xyz="0 0.6 0.8"/>
<limit lower="-1" upper="1" effort="20" velocity="30"/>
<mimic joint="swing" multiplier="-0.5" offset="0.1"/></joint>
</robot>"""
"""A robot with a joint that follows another one."""


@cache
def mimic() -> Any:
    """Return the robot with a joint that follows another one."""
    return contact_sim.load_robot(
        MIMIC, feet=('left', 'right'), poses={'standing': {'swing': 0.2}}
    )


def fork_error(q: Array) -> Array:
    """Return what keeps two hip joints of go1 apart."""
    return np.array([q[7] + q[10] + 0.1 * q[7] * q[10]])


def fork_jacobian(q: Array) -> Array:
    """Return its derivative."""
    J = np.zeros((1, 18))
    J[0, 6], J[0, 9] = 1.0 + 0.1 * q[10], 1.0 + 0.1 * q[7]
    return J


HELD = (
    'tether',
    'soft_tether',
    'stand',
    'geared',
    'fork',
    'four_bar',
    'four_bar_quadruped',
    'mimic',
)
"""Constraints of go1, and robots that have constraints."""


def held_by(name: str) -> list[Any]:
    """Return constraints of go1."""
    soft = the('Baumgarte')(20.0)
    if name == 'tether':
        return [the('PointAnchor')('trunk', point=(0.1, 0.0, 0.05))]
    if name == 'soft_tether':
        point = the('PointAnchor')('trunk', at=(0.05, 0.0, 0.33), stabilisation=soft)
        return [point, the('JointLock')('RL_calf_joint')]
    if name == 'stand':
        return [the('FrameAnchor')('trunk'), the('JointVelocity')('FR_hip_joint', 0.5, alpha=50.0)]
    if name == 'geared':
        gear = the('JointCoupling')('FL_hip_joint', 'FR_hip_joint', ratio=-1.0)
        return [gear, the('LoopClosure')('RL_calf', 'RR_calf', full=False)]
    return [the('Holonomic')(fork_error, fork_jacobian, 1, name='fork')]


def held(model: str, name: str) -> str:
    """Return the digest of a robot that is held, or in whose legs there are loops."""
    if name == 'four_bar_quadruped':
        return dropped(contact_sim.Simulator(robot_called(name), model))
    if name == 'mimic':
        return dropped(contact_sim.Simulator(mimic(), model))
    if name == 'four_bar':
        loop = the('LoopClosure')('coupler_tip', 'rocker_tip')
        return run(contact_sim.Simulator(robot_called(name), model, constraints=[loop]))
    sim = contact_sim.Simulator(robot_called('go1'), model, constraints=held_by(name))

    def change(sim: Any, step: int) -> None:
        if step == 60:
            sim.remove_constraint(sim.constraints[-1])
        if step == 90:
            sim.add_constraint(the('PointAnchor')('FL_foot', name='late'))

    return run(sim, change=change)


# ------------------------------------------------------------------------------- 4: worlds


def worlds(model: str, name: str, on: str) -> str:
    """Return the digest of worlds that differ."""
    robot, n = bodies(name) if name == 'folded' else robot_called(name), 5
    random = np.random.default_rng(2)
    masses = np.array([inertia.mass for inertia in robot.pinocchio_model.inertias][1:])
    friction, bounce = random.uniform(0.4, 1.0, (n, 1)), random.uniform(0.0, 0.3, (n, 1))
    gravity = np.array([[0.1 * i, 0.0, -9.81 - 0.05 * i] for i in range(n)])
    many = contact_sim.Worlds(
        robot, n, model, ground(on), friction, bounce, gravity=gravity,
        masses=masses * random.uniform(0.9, 1.1, (n, 1)), threads=2,
    )  # fmt: skip
    q = np.repeat(many.q[:1], n, axis=0) + 0.0
    q[:, 2] += 0.004 * np.arange(n)
    many.reset(q, 0.1 * random.uniform(-1.0, 1.0, (n, 6)) @ np.eye(6, robot.nv))
    kp, kd = robot.default_gains
    pose, zero = robot.joint_positions(q[0]), np.zeros(robot.n_joints)
    commands = [
        the('JointCommand')(pose + 0.02 * i, zero, zero, kp * (1.0 - 0.05 * i), kd)
        for i in range(n)
    ]
    digest = Digest(many.q, many.v)

    def law(time: Array, q: Array, v: Array) -> ArrayLike:
        joints = np.array([robot.joint_positions(row) for row in q])
        speeds = np.array([robot.joint_velocities(row) for row in v])
        return np.asarray(kp * (pose - joints) - kd * speeds)

    def seen(rollout: Any) -> None:
        digest.add_all(rollout, ('time', 'q', 'v', 'effort'))

    seen(many.follow(commands, 40, every=10))
    many.push(robot.base_frame, random.uniform(-20.0, 20.0, (n, 6)))
    seen(many.run(law, 40, period=2, every=4))
    many.step(random.uniform(-1.0, 1.0, (n, robot.n_joints)), 10)
    many.reset(worlds=[1, 3])
    many.push(robot.base_frame, np.zeros(6))
    seen(many.follow(commands[0], 30))
    digest.add(many.time, many.q, many.v, many.running, many.stopped)
    for k in range(n):
        add_report(digest, many.report(k))
    return digest.hex


def followed(model: str) -> str:
    """Return the digest of `Simulator.follow`."""
    sim = contact_sim.Simulator(robot_called('go1'), model, ground('rough'))
    drop(sim)
    law, (kp, kd) = Standing(sim), sim.robot.default_gains
    digest, zero = Digest(), np.zeros(sim.robot.n_joints)
    for k in range(8):
        command = the('JointCommand')(law.target(20 * k), zero, zero + 0.1, kp, kd)
        add_report(digest, sim.follow(command, 15), k)
    return digest.hex


def restored(model: str) -> str:
    """Return the digest of a run that goes back to where it was, under another model between."""
    sim = contact_sim.Simulator(robot_called('anymal_b'), model)
    drop(sim)
    digest = Digest(run(sim, 30))
    kept = sim.snapshot()
    digest.add(run(sim, 30))
    sim.contact_model, sim.friction = 'ncp', 0.4
    digest.add(run(sim, 10))
    sim.restore(kept)
    digest.add(sim.contact_model, sim.friction, sim.time, sim.q, sim.v, run(sim, 30))
    return digest.hex


def shadowed(model: str) -> str:
    """Return the digest of what all models say of the steps of one of them."""
    sim = contact_sim.Simulator(robot_called('go1'), model)
    sim.shadow = contact_sim.contact_models()
    drop(sim)
    digest, law = Digest(), Standing(sim)
    for k in range(60):
        report = sim.step(law.effort(k), pushes(sim, k))
        if k % 6:
            continue
        for name, shadow in report.shadows.items():
            digest.add(name, shadow.finite, shadow.force, shadow.velocity)
            digest.add(shadow.force_difference, shadow.velocity_difference)
            add_report(digest, shadow.step)
    return digest.hex


def with_momentum(model: str, name: str = 'solo12') -> str:
    """Return the digest of a run with the integrator that keeps momentum, of each free base."""
    robot = bodies(name) if name in ('two', 'crate') else robot_called(name)
    sim = contact_sim.Simulator(robot, model, integrator='momentum')
    return dropped(sim, 0.03, 0.1)


@cache
def limited() -> Any:
    """Return go1 with joints that hit their limits, dry friction, delays, lags and curves."""
    robot = robot_called('go1')
    q = robot.joint_positions(robot.reference_configuration())
    near = [
        the('PositionLimit')((joint,), at - 0.03, at + 0.05, restitution=0.2 * (k % 2))
        for k, (joint, at) in enumerate(zip(robot.joint_names, q.tolist(), strict=True))
    ]
    pair = robot.joint_names[:2]
    both = the('PositionLimit')(pair, -3.0, float(q[0] + 0.5 * q[1] + 0.02), shares=(1.0, 0.5))
    drives = robot.with_actuators(
        dry_friction=0.3, viscous_friction=0.05, rotor_inertia=1e-4, gear_ratio=6.0,
        delay={pair[0]: 0.003}, time_constant={pair[1]: 0.004}, velocity_limit=15.0,
        saturation_effort=40.0, effort_limit=25.0, armature=0.01,
    )  # fmt: skip
    return drives.with_position_limits([*near, both])


def at_limits(model: str) -> str:
    """Return the digest of joints at their limits."""
    return dropped(contact_sim.Simulator(limited(), model, restitution=0.2), amplitude=0.3)


def system(name: str, model: str) -> str:
    """Return the digest of a system of the textbook; no effort, it begins with a speed."""
    sim = contact_sim.Simulator(robot_called(name), model, restitution=0.4, time_step=2e-3)
    sim.reset(v=0.2 * np.cos(np.arange(sim.robot.nv)))
    return run(sim, amplitude=0.2)


def gauss() -> str:
    """Return the digest of Gauss' principle, primal and dual."""
    random = np.random.default_rng(4)
    root, H = random.normal(size=(8, 8)), random.normal(size=(3, 8))
    given = root @ root.T + np.eye(8), random.normal(size=8), H, random.normal(size=3)
    return Digest(the('gauss_primal')(*given), the('gauss_dual')(*given)).hex


def maximal(model: str | None) -> str:
    """Return the digest of a robot in maximal coordinates."""
    robot = robot_called('go1').with_actuators(viscous_friction=0.0, dry_friction=0.0)
    sim = the('MaximalSimulator')(robot, contact_model=model)
    digest = Digest()
    for k in range(30):
        report = sim.step(0.5 * np.sin(0.2 * k + np.arange(robot.n_joints)))
        digest.add(report.time, report.q, report.acceleration, report.multipliers)
        digest.add(report.drift, report.drift_rate, report.joint_force, report.energy)
    return digest.hex


def field(name: str) -> str:
    """Return the digest of a ready-made ground: heights, triangles, regions."""
    made = the('ready_made')(name, 0.6, 3)
    digest = Digest(made.origins, made.names, made.difficulty)
    for one in made.fields:
        digest.add(one.heights, one.horizontal_scale, one.origin, one.shifts())
    if made.mesh is not None:
        digest.add(made.mesh.vertices, made.mesh.triangles, made.mesh.neighbours)
        digest.add(made.mesh.normals)
    digest.add([(one.x_range, one.y_range, one.friction) for one in made.regions])
    sim = contact_sim.Simulator(robot_called('go1'), 'ncp', made)
    q = sim.standing_configuration().copy()
    q[:2] = 2.3, 1.4
    q[2] = 0.33 + sim.terrain.height(*q[:2])
    sim.reset(q)
    digest.add(run(sim))
    return digest.hex


# ------------------------------------------------------------------------------- 5: control


def controlled(law: str, robot: str, model: str) -> str:
    """Return the digest of a controller in closed loop."""
    sim = contact_sim.Simulator(robot_called(robot), model)
    if law == 'trot':
        controller = the('Trot')(sim.robot)
        controller.velocity = (0.3, 0.05, 0.2)
    else:
        controller = the('StandingLaw')(sim.robot, the('BaseMotion')(law, 0.02, 2.0))
    digest = Digest()
    for k in range(300):
        effort = controller.effort(sim.time, sim.q, sim.v)
        report = sim.step(effort, pushes(sim, 2 * k) if law != 'trot' else None)
        digest.add(effort, report.q, report.v, report.contacts.force)
    add_report(digest, report)
    return digest.hex


def supported(name: str) -> str:
    """Return the digest of a support analysis, and of what stances can do."""
    robot = robot_called(name)
    q = robot.reference_configuration()
    v, digest, room = 0.1 * np.cos(np.arange(robot.nv)), Digest(), the('support')
    feet = [foot.name for foot in robot.feet]
    for active in (feet, feet[:1], feet[::3], feet[1:], []):
        for on in ('plane', 'slope'):
            found = contact_sim.analyse_support(robot, q, active, terrain=ground(on))
            digest.add_all(found, SUPPORT)
        if len(active) < 2:
            continue
        held = room.stance_dynamics(robot, q, v, active)
        effort = 0.5 * np.sin(np.arange(robot.n_joints))
        for of_effort in ('acceleration', 'constraint_force', 'projected_acceleration'):
            digest.add(getattr(room, of_effort)(held, held.selection_matrix.T @ effort))
        digest.add(room.effort_null_space(held), room.impulse_transfer(held))
        digest.add(room.inverse_dynamics(held, np.zeros(robot.nv)))
    return digest.hex


def noisy(robot: Any, seed: int) -> list[Any]:
    """Return sensors with all errors that they can have."""
    noise = the('NoiseParameters')(
        joint_position=0.01, joint_velocity=0.05, imu_gyro=0.005, imu_accel=0.05, foot_force=2.0,
        foot_torque=0.1,
    )  # fmt: skip
    imu = the('ImuSensing')(
        gyro_bias_walk=0.01, accel_bias_walk=0.1, gyro_resolution=1e-3, accel_resolution=1e-2,
        gyro_scale=(0.01, 0.0, -0.01), gyro_scale_deviation=0.01, accel_scale_deviation=0.01,
        gyro_misalignment_deviation=0.02, accel_misalignment=(0.01, 0.02, 0.0), latency=2,
    )  # fmt: skip
    encoders = the('EncoderSensing')(position_resolution=1e-3, velocity_resolution=1e-2, latency=1)
    forces = the('ForceSensing')(
        force_resolution=0.5, force_scale_deviation=0.02, torque_scale_deviation=0.02,
        misalignment_deviation=0.03, latency=3,
    )  # fmt: skip
    feet = [foot.name for foot in robot.feet]
    flags = the('ContactSensing')(
        on_threshold=8.0, off_threshold=4.0, latency=1, stuck_off=tuple(feet[:1]), dropout=0.2
    )
    imus = [the('Imu')(robot, frame, noise, imu, seed) for frame in ('', feet[0])]
    return [
        *imus,
        the('Imu')(robot),
        the('Encoders')(robot, None, noise, encoders, seed),
        the('ContactFlags')(robot, flags, seed=seed),
        the('FootForces')(robot, 'foot', noise, forces, seed),
        the('FootForces')(robot, 'world'),
    ]


def sensed(name: str, model: str) -> str:
    """Return the digest of readings of one robot, or of two that were joined."""
    world = robot_called(name) if name in contact_sim.robots() else bodies(name)
    sim = contact_sim.Simulator(world, model)
    drop(sim)
    parts = the('parts_of')(world)
    legged = [part for part in parts if part.robot.feet]
    lines = [[the('DelayedSensor')(one) for one in noisy(p.robot, 7 + p.number)] for p in legged]
    digest, law = Digest(), Standing(sim)
    for k in range(STEPS):
        report = sim.step(law.effort(k), pushes(sim, k))
        for part, ours in zip(legged, lines, strict=True):
            seen = report if len(parts) == 1 else the('RobotView')(report, part)
            for line in ours:
                digest.add(line.read(seen))
    return digest.hex


# ------------------------------------------------------------------------------- 6: topics


SAID = {
    'noise': {'imu_gyro': 0.01, 'imu_accel': 0.1, 'joint_position': 0.001, 'foot_force': 1.0},
    'sensors.imu': {'gyro_bias_walk': 0.01, 'latency': 2},
    'sensors.joints': {'position_resolution': 1e-3, 'latency': 1},
    'sensors.contacts': {'on_threshold': 8.0, 'off_threshold': 4.0, 'latency': 1},
    'sensors.forces': {'force_resolution': 0.5, 'latency': 3},
    'node': {'seed': 5},
}
"""Parameters of a node that a recording holds."""


def topics(name: str) -> dict[str, str]:
    """Return the digest of every topic, and of the table, of a recorded run."""
    with tempfile.TemporaryDirectory(prefix='same_bits_') as folder:
        home = Path(folder)
        record(name, home / 'run.npz')
        told = [printed('replay', home, 'run.npz', '--json', '--model', 'lcp')]
        files = '--mcap', 'run.mcap', '--csv', 'run.csv'
        told.append(printed('replay', home, 'run.npz', *files, '--ground-truth'))
        return {
            **of_topics(home / 'run.mcap'),
            ':csv': Digest((home / 'run.csv').read_bytes()).hex,
            ':recording': of_recording(home / 'run.npz'),
            ':told': Digest(told).hex,
        }


def of_recording(path: Path) -> str:
    """Return the digest of what is in a recording, but for the versions of who wrote it."""
    digest = Digest()
    with np.load(path) as entries:
        for name in entries.files:
            if name == 'header':
                header = json.loads(str(entries[name]))
                digest.add({key: one for key, one in header.items() if key != 'versions'})
            else:
                digest.add(name, entries[name])
    return digest.hex


def printed(program: str, folder: Path, *arguments: str) -> str:
    """Return what a program of the package prints.

    Raises:
        RuntimeError: it ends with another status than 0.
    """
    command = [sys.executable, '-m', f'contact_sim.{program}', *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f'{program} {" ".join(arguments)}: {done.stderr.strip()[-500:]}')
    return done.stdout


def program(name: str, *arguments: str) -> str:
    """Return the digest of what a program prints."""
    with tempfile.TemporaryDirectory(prefix='same_bits_') as folder:
        return Digest(printed(name, Path(folder), *arguments)).hex


def record(name: str, path: Path) -> None:
    """Record a run, with pushes, a switch, a constraint and a reset."""
    if name == 'go1':
        robot, parameters = robot_called('go1'), {}
    elif name == 'held':
        robot, parameters = robot_called('four_bar_quadruped').with_body_contacts(), SAID
    else:
        robot, parameters = bodies(name), SAID
    sim = contact_sim.Simulator(robot, 'ncp', ground('slope' if name == 'go1' else 'plane'))
    drop(sim)
    law = Standing(sim)
    with the('Recorder')(sim, path, parameters=parameters):
        for k in range(80):
            if k == 40:
                sim.contact_model = 'sap'
            if k == 50 and name == 'held':
                sim.add_constraint(the('PointAnchor')(robot.base_frame, name='tether'))
            if k == 70:
                sim.reset(time=sim.time)
            sim.step(law.effort(k), pushes(sim, k))


def of_topics(path: Path) -> dict[str, str]:
    """Return the digest of every topic in an MCAP file."""
    from mcap.reader import make_reader

    digests: dict[str, Digest] = {}
    with path.open('rb') as file:
        for schema, channel, message in make_reader(file).iter_messages(log_time_order=False):
            if channel.topic not in digests:
                about = channel.message_encoding, channel.metadata
                digests[channel.topic] = Digest(channel.topic, *about)
                digests[channel.topic].add(schema.name, schema.encoding, schema.data)
            digests[channel.topic].add(message.log_time, message.publish_time, message.data)
    return {topic: digest.hex for topic, digest in sorted(digests.items())}


# ------------------------------------------------------------------------------- 7: robots


def loaded(name: str, fixed: bool) -> Any:
    """Return a robot, or the one with a joint that follows another one."""
    if name == 'mimic':
        return mimic()
    if name in ('crate', 'two'):
        return bodies(name)
    return contact_sim.load_robot(name, floating_base=False) if fixed else robot_called(name)


def numbers(name: str, fixed: bool) -> Iterator[Any]:
    """Yield all numbers of a robot, in the order of its names."""
    robot = loaded(name, fixed)
    model = robot.pinocchio_model
    yield from (np.array(placement.homogeneous) for placement in model.jointPlacements)
    for inertia in model.inertias:
        yield from (np.array(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))
    yield from (np.array(frame.placement.homogeneous) for frame in model.frames)
    for frame in model.frames:
        inertia = frame.inertia
        yield from (np.array(inertia.mass), np.array(inertia.lever), np.array(inertia.inertia))
    for joint in model.joints:
        if hasattr(joint, 'axis'):
            yield np.array(joint.axis)
    for attribute in MODEL:
        value = getattr(model, attribute)
        yield np.array(value.vector if attribute == 'gravity' else value, dtype=float).reshape(-1)
    for point in robot.contact_points:
        yield from (np.array(point.offset), np.array(point.radius))
    for limit in robot.position_limits:
        yield np.array([limit.lower, limit.upper, limit.restitution, *limit.shares])
    for pose in sorted(robot.reference_configurations):
        yield np.array(robot.reference_configuration(pose))
    yield from robot.default_gains
    actuators = robot.actuators
    for each in dataclasses.fields(actuators):
        if each.name != 'joint_names':
            yield np.array(getattr(actuators, each.name))
    yield np.array([robot.gains_time_step, robot.total_mass])
    for one in ('effort_limit', 'velocity_limit', 'joint_damping', 'joint_friction',
                'lower_position_limit', 'upper_position_limit', 'selection_matrix'):  # fmt: skip
        yield np.array(getattr(robot, one))
    for solid in robot.solids:
        yield np.array([*solid.half, solid.radius, *solid.centre, *solid.rotation, solid.error])


def model_exact(name: str, fixed: bool) -> str:
    """Return the digest of the bytes of all numbers of a robot."""
    return Digest(*numbers(name, fixed)).hex


def model_round(name: str, fixed: bool) -> str:
    """Return the digest of all numbers, rounded to twelve decimals."""
    return Digest(*(np.round(one, 12) + 0.0 for one in numbers(name, fixed))).hex


def model_names(name: str, fixed: bool) -> str:
    """Return the digest of everything that has a name, and of how it hangs together."""
    robot = loaded(name, fixed)
    model = robot.pinocchio_model
    digest = Digest(robot.name, model.name, list(model.names), list(map(int, model.parents)))
    digest.add([joint.shortname() for joint in model.joints], model.nq, model.nv)
    digest.add([(joint.idx_q, joint.idx_v) for joint in model.joints])
    for frame in model.frames:
        digest.add(frame.name, str(frame.type), int(frame.parentJoint), int(frame.parentFrame))
    digest.add([(one.name, one.frame, one.joint) for one in robot.contact_points])
    digest.add([(foot.name, foot.frame, foot.joint, foot.points) for foot in robot.feet])
    digest.add([limit.joints for limit in robot.position_limits])
    digest.add(list(map(str, robot.constraints)), sorted(robot.reference_configurations))
    digest.add(robot.joint_names, robot.passive_joint_names, robot.base_frame, robot.notes)
    digest.add(robot.floating_base, robot.continuous_joints, robot.joint_velocity_index)
    digest.add([(one.name, one.frame, one.joint) for one in robot.solids])
    digest.add(robot.collisions.pairs, robot.collisions.most, repr(robot), robot.description)
    return digest.hex


def model_bodies(name: str) -> str:
    """Return the digest of contact points on bodies and of pairs of links that may touch."""
    robot = robot_called(name).with_body_contacts().with_self_collision()
    digest = Digest()
    for point in robot.body_points:
        digest.add(point.name, point.frame, point.joint, point.offset, point.radius)
    digest.add(robot.approximations, robot.collisions.pairs)
    digest.add([solid.name for solid in robot.collisions.solids])
    return digest.hex


# ------------------------------------------------------------------------------- all cases


@cache
def cases() -> dict[str, Case]:
    """Return all cases by name; those that take long come first."""
    models, found = contact_sim.contact_models(), dict[str, Case]()
    stepping = [model for model in models if model != 'hybrid']

    def add(name: str, function: Callable[..., Result], *arguments: Any) -> None:
        found[name] = partial(function, *arguments)

    for name in ('go1', 'two', 'crate', 'held'):
        add(f'topics:{name}', topics, name)
    for model in ('hybrid', *stepping):
        add(f'shadow:{model}', shadowed, model)
        for name in ('folded', 'crate', 'two', 'cradle', 'box', 'ball'):
            add(f'bodies:{name}:{model}', touching, model, name)
        add(f'bodies:box-steps:{model}', touching, model, 'box', 'steps')
        for on in ('plane', 'rough', 'steps'):
            for robot in ROBOTS:
                add(f'ground:{on}:{robot}:{model}', on_ground, model, robot, on)
        for on in ('walls', 'boxes', 'slope', 'valley', 'hill', 'pipe'):
            add(f'ground:{on}:go1:{model}', on_ground, model, 'go1', on)
        for name in HELD:
            add(f'held:{name}:{model}', held, model, name)
        add(f'follow:{model}', followed, model)
        add(f'switch:{model}', switched, model)
        add(f'restore:{model}', restored, model)
        add(f'limits:{model}', at_limits, model)
        for name in contact_sim.textbook_systems():
            add(f'textbook:{name}:{model}', system, name, model)
    for model in stepping:
        add(f'momentum:{model}', with_momentum, model)
        for name in ('two', 'crate'):
            add(f'momentum:{name}:{model}', with_momentum, model, name)
        for name, on in (('go1', 'plane'), ('go1', 'rough'), ('anymal_b', 'steps'),
                         ('four_bar_quadruped', 'plane'), ('folded', 'plane')):  # fmt: skip
            add(f'worlds:{name}:{on}:{model}', worlds, model, name, on)
    for name, variants in VARIANTS.items():
        for number in range(len(variants)):
            add(f'variant:{name}:{number}', variant, name, number)
    for model in ('ncp', 'sap'):
        for law in ('hold', 'squat', 'sway', 'trot'):
            for robot in ('go1', 'anymal_b', 'solo12'):
                add(f'control:{law}:{robot}:{model}', controlled, law, robot, model)
        for name in ('go1', 'anymal_b', 'two'):
            add(f'sensors:{name}:{model}', sensed, name, model)
    for name in ('go1', 'quadruped', 'four_bar_quadruped', 'solo8'):
        add(f'program:inspect:{name}', program, 'inspect', name)
        add(f'program:support:{name}', program, 'support', '--robot', name)
    add('gauss', gauss)
    add('maximal', maximal, None)
    add('maximal:ncp', maximal, 'ncp')
    for name in the('READY_MADE'):
        add(f'terrain:{name}', field, name)
    for name in contact_sim.robots():
        add(f'support:{name}', supported, name)
        add(f'model-bodies:{name}', model_bodies, name)
    for name in (*contact_sim.robots(), *contact_sim.textbook_systems(), 'mimic', 'two', 'crate'):
        for base in ('', ':fixed') if name in contact_sim.robots() else ('',):
            add(f'model-exact:{name}{base}', model_exact, name, bool(base))
            add(f'model-round:{name}{base}', model_round, name, bool(base))
            add(f'model-names:{name}{base}', model_names, name, bool(base))
    return found
