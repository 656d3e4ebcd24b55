"""Microseconds per step of several robots on one ground, and of long chains.

    python benchmarks/robots_time.py [--models ncp] [--robots 1 2 4 8 16 32 64] [--touching]
    python benchmarks/robots_time.py --chains 14 26 50 100 200 390 [--models ncp]

Joined robots go1 stand under joint PD, evaluated in every step. Calls of all numbers alternate;
`linear` is the time per robot over that of one alone, the median over calls. `reports` is the same
with one call and one report per step, `Simulator.follow(command, 1)`. With `--touching` all links
may touch each other, within a robot and between robots; none do. Times are CPU times.

With `--chains` floating chains of these numbers of links, all even, hang from their ends, which
stand on the ground. Beside them the same chains in MuJoCo, with dense and with sparse matrices.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from engines import FRICTION, TIME_STEP, write_json
from motions import Stand

import contact_sim
from contact_sim.robot._actuators import JointCommand

STEPS = 2000
"""Steps of a robot per call."""
SETTLING = 300
SPACING = 2.0
"""Between two robots [m]."""
LENGTH, MASS, RADIUS, DAMPING = 0.05, 0.05, 0.02, 0.05
"""Of the links of a chain [m], [kg], radius of its ends [m], damping of its joints [N m s/rad]."""
MOMENTS = [1e-5, 1.5e-5, 1.5e-5]
"""Of inertia of a link about its centre [kg m²]."""
PEERS = ('dense', 'sparse')
"""Matrices of MuJoCo."""


def standing(
    n: int, model: str, touching: bool
) -> tuple[contact_sim.Worlds, contact_sim.Simulator, JointCommand]:
    """Return n joined robots that have settled, in both kinds of simulation, and their command."""
    robot = contact_sim.load_robot('go1')
    robot = robot.with_self_collision() if touching else robot
    names = [f'robot_{i}' for i in range(n)]
    places = {name: (SPACING * i, 0.0) for i, name in enumerate(names)}
    world = contact_sim.joined(dict.fromkeys(names, robot), places, against_each_other=touching)
    stand, zeros = Stand(robot), np.zeros(world.n_joints)
    command = JointCommand(
        np.tile(stand.pose, n), zeros, zeros, np.tile(stand.kp, n), np.tile(stand.kd, n),
    )  # fmt: skip
    worlds = contact_sim.Worlds(world, 1, model, friction=FRICTION, time_step=TIME_STEP, threads=1)
    sim = contact_sim.Simulator(world, model, friction=FRICTION, time_step=TIME_STEP)
    worlds.follow(command, SETTLING)
    sim.follow(command, SETTLING)
    return worlds, sim, command


def measure(model: str, numbers: list[int], blocks: int, touching: bool) -> list[dict[str, Any]]:
    """Return the figures of one contact model."""
    started = {n: standing(n, model, touching) for n in numbers}
    times: dict[int, list[list[float]]] = {n: [] for n in numbers}
    for _ in range(blocks):
        for n, (worlds, sim, command) in started.items():
            steps = STEPS // n
            begin = time.process_time()
            worlds.follow(command, steps)
            middle = time.process_time()
            for _ in range(steps):
                sim.follow(command, 1)
            end = time.process_time()
            times[n].append([1e6 * t / steps / n for t in (middle - begin, end - middle)])
    median = {n: np.median(rows, axis=0) for n, rows in times.items()}
    one = median[numbers[0]]
    return [
        {'model': model, 'robots': n, 'us': median[n][0], 'least': min(rows)[0],
         'linear': median[n][0] / one[0], 'reports': median[n][1],
         'reports_linear': median[n][1] / one[1]}
        for n, rows in times.items()
    ]  # fmt: skip


def chain(links: int) -> contact_sim.RobotModel:
    """Return a floating chain of equal links that touches the ground at both ends.

    Links point along x; axes of the joints are y and z in turn.
    """
    link = pin.Inertia(MASS, np.array([0.5 * LENGTH, 0.0, 0.0]), np.diag(MOMENTS))
    model, joint = pin.Model(), 0
    for k in range(links):
        turning = pin.JointModelRY() if k % 2 else pin.JointModelRZ()
        place = pin.SE3(np.eye(3), np.array([LENGTH if k else 0.0, 0.0, 0.0]))
        kind = turning if k else pin.JointModelFreeFlyer()
        joint = model.addJoint(joint, kind, place, f'joint_{k}')
        model.appendBodyToJoint(joint, link, pin.SE3.Identity())
        model.addBodyFrame(f'link_{k}', joint, pin.SE3.Identity(), 0)
    model.damping[6:] = DAMPING
    last = links - 1
    ends = [
        contact_sim.ContactPoint('first', 'link_0', 'joint_0', np.zeros(3), RADIUS),
        contact_sim.ContactPoint(
            'last', f'link_{last}', f'joint_{last}', np.array([LENGTH, 0.0, 0.0]), RADIUS
        ),
    ]
    return contact_sim.RobotModel.from_pinocchio(model, ends, actuated_joints=(), name='chain')


def half_circle(links: int) -> np.ndarray:
    """Return q of a chain, an even number of links, that hangs from its ends on the ground."""
    q = np.zeros(links + 6)
    q[2] = RADIUS
    q[4] = q[6] = np.sqrt(0.5)  # the first link points down
    q[7::2] = -np.pi / len(q[7::2])
    return q


def our_chain(links: int, model: str) -> Callable[[int], object]:
    """Return what advances our chain by some steps."""
    worlds = contact_sim.Worlds(
        chain(links), 1, model, friction=FRICTION, time_step=TIME_STEP, threads=1
    )
    worlds.reset(half_circle(links))
    command = JointCommand(*5 * [np.zeros(0)])
    return lambda steps: worlds.follow(command, steps)


def peer_chain(links: int, jacobian: str) -> Callable[[int], object]:
    """Return what advances the chain in MuJoCo, with its default options but for `jacobian`."""
    import mujoco

    spec = mujoco.MjSpec()
    spec.option.timestep = TIME_STEP
    spec.option.jacobian = getattr(mujoco.mjtJacobian, f'mjJAC_{jacobian.upper()}')
    touching = {'friction': [FRICTION, 0.0, 0.0], 'contype': 1, 'conaffinity': 2}
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1],
        **touching | {'contype': 2, 'conaffinity': 1},
    )  # fmt: skip
    body = spec.worldbody
    for k in range(links):
        body = body.add_body(
            pos=[LENGTH if k else 0.0, 0.0, 0.0], mass=MASS, ipos=[0.5 * LENGTH, 0.0, 0.0],
            inertia=MOMENTS, explicitinertial=True,
        )  # fmt: skip
        if k == 0:
            body.add_freejoint()
        else:
            axis = [0, 1, 0] if k % 2 else [0, 0, 1]
            body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis, damping=[DAMPING, 0, 0])
        if k in (0, links - 1):
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS, 0, 0], mass=0.0,
                pos=[LENGTH if k else 0.0, 0.0, 0.0], **touching,
            )  # fmt: skip
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = half_circle(links)
    data.qpos[3:7] = data.qpos[[6, 3, 4, 5]]  # MuJoCo has w first
    return lambda steps: mujoco.mj_step(model, data, steps)


def measure_chains(links: list[int], blocks: int, engine: str) -> list[dict[str, Any]]:
    """Return the figures of one engine: a contact model of ours, or MuJoCo's 'dense', 'sparse'."""
    started = {
        n: peer_chain(n, engine) if engine in PEERS else our_chain(n, engine) for n in links
    }
    for advance in started.values():
        advance(SETTLING)
    times: dict[int, list[float]] = {n: [] for n in links}
    for _ in range(blocks):
        for n, advance in started.items():
            steps = max(4000 // n, 10)
            begin = time.process_time()
            advance(steps)
            times[n].append(1e6 * (time.process_time() - begin) / steps)
    return [
        {'engine': engine, 'links': n, 'us': statistics.median(row), 'least': min(row),
         'per_link': statistics.median(row) / n}
        for n, row in times.items()
    ]  # fmt: skip


def print_chains(models: list[str], links: list[int], blocks: int) -> list[dict[str, Any]]:
    """Print the table of chains, and return its rows."""
    print('chains with both ends on the ground, µs per step; dense and sparse: MuJoCo')
    print(f'{"engine":12}{"links":>8}{"median":>9}{"least":>9}{"a link":>8}')
    rows = []
    for engine in (*models, *PEERS):
        try:
            found = measure_chains(links, blocks, engine)
        except ImportError:
            print(f'{engine}: MuJoCo is not installed')
            continue
        for row in found:
            rows.append(row)
            print(
                f'{engine:12}{row["links"]:8}{row["us"]:9.1f}{row["least"]:9.1f}'
                f'{row["per_link"]:8.2f}', flush=True
            )  # fmt: skip
    return rows


def main() -> None:
    """Print the table, and write it as JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        '--models', nargs='+', default=['ncp'], choices=contact_sim.contact_models()
    )
    parser.add_argument('--robots', type=int, nargs='+', default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument('--blocks', type=int, default=9, help='calls of each number')
    parser.add_argument('--touching', action='store_true', help='links may touch each other')
    parser.add_argument(
        '--chains', type=int, nargs='+', help='links of chains, in place of robots'
    )
    parser.add_argument('--json', type=Path, help='file for the same figures')
    options = parser.parse_args()
    if options.chains:
        write_json(options.json, print_chains(options.models, options.chains, options.blocks))
        return
    print('go1, µs per step and robot')
    print(
        f'{"model":12}{"robots":>8}{"median":>9}{"least":>9}{"linear":>8}{"reports":>9}{"linear":>8}'
    )
    rows = []
    for model in options.models:
        for row in measure(model, options.robots, options.blocks, options.touching):
            rows.append(row)
            print(
                f'{model:12}{row["robots"]:8}{row["us"]:9.2f}{row["least"]:9.2f}'
                f'{row["linear"]:8.2f}{row["reports"]:9.2f}{row["reports_linear"]:8.2f}',
                flush=True,
            )  # fmt: skip
    write_json(options.json, rows)


if __name__ == '__main__':
    main()
