"""Microseconds of the derivatives of a step, next to the step and to MuJoCo's differences.

    python benchmarks/derivatives.py [--robot go1 arm FILE] [--motions stand trot]
                                     [--models ncp sap] [--blocks 15] [--json FILE]

For every motion (motions.py) the simulation runs in closed loop. In each block of states, `step`,
`derivatives` of that step and, for the same robot in MuJoCo, `mjd_transitionFD` (differences of
the whole step to state and control, forward and centred) are timed in turn, so that all see the
same machine. `compiled` is the linearisation alone, without the step that it linearises, Python
and copies. MuJoCo keeps its default options. The ratios are medians over blocks: derivatives
over the step, then how many times faster they are than forward and than centred differences.

A file is a URDF of a robot with feet, to which joint PD of `default_gains` is applied in `stand`.
`arm` is an arm of seven revolute joints that holds its pose in the air, `arm_on_ground` the same
with a ball at its end that presses on the ground.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from engines import (
    FRICTION,
    HAVE_MUJOCO,
    TIME_STEP,
    Ours,
    Theirs,
    peer,
    stay_on_one_core,
    write_json,
)
from motions import MOTIONS

import contact_sim

SETTLING_STEPS, BLOCK_STEPS, DIFFERENCE = 400, 40, 1e-6
ARMS = {'arm': 0.2, 'arm_on_ground': 0.0}
"""Height of the ball at the end of the arm over the ground [m]."""
ANGLES = 0.3, 0.7, -0.2, 1.1, 0.4, 0.6, 0.1
"""Pose of the arm [rad]."""


def arm(name: str) -> contact_sim.RobotModel:
    """Return an arm of seven revolute joints, axes along z and y in turn, on a fixed base."""
    low = _arm(name, 0.0)
    model = low.pinocchio_model
    data, tool = model.createData(), low.contact_points[0]
    pin.framesForwardKinematics(model, data, low.reference_configuration())
    place = data.oMi[model.getJointId(tool.joint)].act(tool.offset)
    return _arm(name, ARMS[name] + tool.radius - float(place[2]))


def _arm(name: str, height: float) -> contact_sim.RobotModel:
    """Return the arm with its first joint at a height [m]."""
    parts, before, at = ['<link name="base"/>'], 'base', height
    for k in range(len(ANGLES)):
        mass = 3.0 - 0.4 * k
        inertia = mass * 0.2**2 / 12.0
        ball = '<collision><origin xyz="0 0 0.2"/><geometry><sphere radius="0.03"/></geometry>'
        parts.append(
            f'<link name="l{k}"><inertial><origin xyz="0.01 0 0.1"/><mass value="{mass}"/>'
            f'<inertia ixx="{inertia}" iyy="{inertia}" izz="{0.2 * inertia}" ixy="0" ixz="0" '
            f'iyz="0"/></inertial>{ball + "</collision>" if k == len(ANGLES) - 1 else ""}</link>'
            f'<joint name="j{k}" type="revolute"><origin xyz="0 0 {at!r}"/><parent '
            f'link="{before}"/><child link="l{k}"/><axis xyz="0 {k % 2} {1 - k % 2}"/><limit '
            'lower="-3" upper="3" effort="100" velocity="10"/></joint>'
        )
        before, at = f'l{k}', 0.2
    return contact_sim.load_robot(
        f'<robot name="{name}">{"".join(parts)}</robot>', floating_base=False, feet=[before],
        poses={'standing': {f'j{k}': angle for k, angle in enumerate(ANGLES)}},
    )  # fmt: skip


class PeerDerivatives:
    """MuJoCo's finite differences of its step, at the states of another MuJoCo simulation.

    The efforts are controls here: joints have PD actuators.
    """

    def __init__(self, theirs: Theirs, robot: contact_sim.RobotModel, centred: bool) -> None:
        import mujoco
        from mujoco_peer import MujocoPeer

        engine = MujocoPeer(robot, FRICTION, TIME_STEP, robot.default_gains)
        self.theirs = theirs
        self._function, self._from = mujoco.mjd_transitionFD, theirs.engine.data
        self._model, self._data, self._centred = engine.model, engine.data, centred
        size = 2 * self._model.nv + self._model.na
        self._A, self._B = np.zeros((size, size)), np.zeros((size, self._model.nu))

    def load(self) -> None:
        """Take over the state."""
        for name in ('qpos', 'qvel', 'qacc_warmstart'):
            getattr(self._data, name)[:] = getattr(self._from, name)

    def __call__(self) -> None:
        """Fill A and B."""
        self._function(
            self._model, self._data, DIFFERENCE, self._centred, self._A, self._B, None, None
        )


def measure(
    robot: contact_sim.RobotModel, motion: str, model: str, blocks: int
) -> dict[str, float]:
    """Return the medians of step, derivatives, their compiled part and differences, and ratios.

    Times are in µs.
    """
    ours = Ours(robot, motion, model)
    theirs = peer(partial(Theirs, robot, motion), robot.name)
    ours.times(SETTLING_STEPS)
    differences = []
    if theirs is not None:
        theirs.times(SETTLING_STEPS)
        differences = [PeerDerivatives(theirs, robot, centred) for centred in (False, True)]
    clock, rows = time.perf_counter, []
    for _ in range(blocks):
        spent = np.zeros((5, BLOCK_STEPS))
        for k in range(BLOCK_STEPS):
            sim = ours.sim
            effort = ours.motion.effort(sim.time, sim.q, sim.v)
            begin = clock()
            own = sim.derivatives(effort)._arrays
            middle = clock()
            own._counts[:] = 0
            own._linearise(*own.work.arrays, own.numbers, own.indices, own.layout)
            after = clock()
            sim.step(effort)
            spent[:3, k] = clock() - after, middle - begin, after - middle
        for k in range(BLOCK_STEPS if differences else 0):
            differences[0].theirs.times(1)
            for place, one in enumerate(differences):
                one.load()
                begin = clock()
                one()
                spent[3 + place, k] = clock() - begin
        rows.append(1e6 * np.median(spent, axis=1))
    table = np.array(rows)
    step, total, compiled, forward, centred = np.median(table, axis=0)
    ratios = np.median(table[:, [1, 3, 4]] / table[:, [0, 1, 1]], axis=0)
    return {
        'step': float(step), 'derivatives': float(total), 'compiled': float(compiled),
        'forward': float(forward), 'centred': float(centred), 'over step': float(ratios[0]),
        'faster than forward': float(ratios[1]), 'faster than centred': float(ratios[2]),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--robot', nargs='+', default=['go1'])
    parser.add_argument('--motions', nargs='+', default=['stand', 'trot'], choices=sorted(MOTIONS))
    parser.add_argument('--models', nargs='+', default=['ncp', 'anitescu', 'lcp'])
    parser.add_argument('--blocks', type=int, default=15)
    parser.add_argument('--json', type=Path)
    parser.add_argument('--core', type=int, help='core to stay on; -1: any')
    arguments = parser.parse_args()
    stay_on_one_core(arguments.core)
    if not HAVE_MUJOCO:
        print('without MuJoCo: only the step and its derivatives')
    found: dict[str, Any] = {}
    heads = (
        'step',
        'derivatives',
        'compiled',
        'forward',
        'centred',
        'over step',
        'faster',
        'faster',
    )
    print(f'{"":28}' + ''.join(f'{head:>12}' for head in heads))
    for name in arguments.robot:
        robot = arm(name) if name in ARMS else contact_sim.load_robot(name)
        for motion in arguments.motions:
            for model in arguments.models:
                row = measure(robot, motion, model, arguments.blocks)
                label = f'{robot.name} {motion} {model}'
                found[label] = row
                print(f'{label:28}' + ''.join(f'{number:12.1f}' for number in row.values()))
    if arguments.json:
        write_json(arguments.json, found)


if __name__ == '__main__':
    main()
