"""Whether todorov moves a robot step by step as MuJoCo does, both with the same MJCF.

python benchmarks/mjcf_steps.py FILE ... [--motions stand trot] [--steps 1000]

FILE is an MJCF with a floor. Before each step both have the same state, that of MuJoCo, and the
same efforts, those of a controller of contact_sim. MuJoCo's model has its default numbers for
contacts (solref, solimp, condim 3, pyramids, impratio 1), as `todorov` has, one coefficient of
friction, no contacts between links, no armature of the free joint, and its solver runs to the end.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
import pinocchio as pin
from motions import MOTIONS

from contact_sim import RobotModel, Simulator, load_robot
from contact_sim.robot._mjcf_compiler import compiled
from contact_sim.robot._urdf import read_description

TIME_STEP, FRICTION = 1e-3, 0.8
SLOWEST = 1e-3
"""Speed below which differences are not relative [m/s, rad/s]."""
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)


class Steps(NamedTuple):
    """What was found over the steps of one motion."""

    worst: float
    """Largest difference of velocities over the largest velocity of the step, at least SLOWEST."""
    loaded: int
    """Steps in which a contact was closed."""
    lowest: float
    """Least height of the base, over that of the start."""


def at_defaults(model: Any) -> Any:
    """Return a model of MuJoCo with its own default numbers for contacts; it is changed."""
    option = model.opt
    option.timestep, option.cone, option.impratio = TIME_STEP, mujoco.mjtCone.mjCONE_PYRAMIDAL, 1.0
    option.integrator, option.solver = 0, mujoco.mjtSolver.mjSOL_NEWTON
    option.tolerance, option.iterations = 0.0, 50
    option.ls_iterations, option.ls_tolerance = 50, 1e-14
    option.disableflags, option.gravity[:] = mujoco.mjtDisableBit.mjDSBL_ACTUATION, (0, 0, -9.81)
    for name in ('geom', 'jnt', 'dof', 'eq'):
        for what, value in (('solref', SOLREF), ('solimp', SOLIMP)):
            if hasattr(model, f'{name}_{what}'):
                getattr(model, f'{name}_{what}')[:] = value
    model.geom_friction[:], model.geom_condim[:] = (FRICTION, 0.005, 0.0001), 3
    model.geom_priority[:], model.geom_margin[:], model.geom_gap[:] = 0, 0.0, 0.0
    touches = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    of_world = model.geom_bodyid == 0
    model.geom_contype[:], model.geom_conaffinity[:] = touches & of_world, touches & ~of_world
    free = int(model.jnt_dofadr[np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)[0]])
    for name in ('armature', 'damping', 'frictionloss'):
        getattr(model, f'dof_{name}')[free : free + 6] = 0.0
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def compared(robot: RobotModel, model: Any, motion: str, steps: int) -> Steps:
    """Return the differences of `todorov` from MuJoCo's model over the steps of a motion."""
    data = mujoco.MjData(model)
    sim = Simulator(robot, 'todorov', friction=FRICTION, time_step=TIME_STEP)
    names = robot.joint_names
    places = [int(model.joint(name).qposadr[0]) for name in names]
    dofs = [int(model.joint(name).dofadr[0]) for name in names]
    q, effort = robot.reference_configuration(), MOTIONS[motion](robot).effort
    q[2] -= 1e-6
    data.qpos[:7] = [*q[:3], q[6], *q[3:6]]
    data.qpos[places] = robot.joint_positions(q)
    worst, loaded, height, lowest = 0.0, 0, q[2], 1.0
    for k in range(steps):
        q, v = robot.with_joint_positions(q, data.qpos[places]), np.zeros(robot.nv)
        w, *xyz = data.qpos[3:7]
        q[:7] = [*data.qpos[:3], *xyz, w]
        v[:3] = pin.Quaternion(w, *xyz).matrix().T @ data.qvel[:3]
        v[3:6], v[robot.joint_velocity_index] = data.qvel[3:6], data.qvel[dofs]
        sim.reset(q, v)
        report = sim.step(effort(k * TIME_STEP, q, v))
        data.qfrc_applied[dofs] = report.effort
        mujoco.mj_step(model, data)
        # the base turns within the step: compare in world axes
        ours = np.concatenate([
            pin.Quaternion(*report.q[[6, 3, 4, 5]]).matrix() @ report.v[:3], report.v[3:6],
            report.v[robot.joint_velocity_index],
        ])  # fmt: skip
        theirs = np.concatenate([data.qvel[:6], data.qvel[dofs]])
        worst = max(worst, np.abs(ours - theirs).max() / max(SLOWEST, np.abs(theirs).max()))
        loaded += data.ncon > 0
        lowest = min(lowest, data.qpos[2] / height)
    return Steps(float(worst), loaded, float(lowest))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line per file and motion."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('files', nargs='+', type=Path, metavar='FILE')
    parser.add_argument('--motions', nargs='+', default=['stand', 'trot'], choices=MOTIONS)
    parser.add_argument('--steps', type=int, default=1000)
    given = parser.parse_args(arguments)
    warnings.simplefilter('ignore')
    print('| file | motion | steps | with contact | lowest base | largest difference |')
    print('|---|---|---:|---:|---:|---|')
    for file in given.files:
        for motion in given.motions:
            model = at_defaults(compiled(read_description(file), False, [])[2])
            robot = load_robot(file, check_meshes=False)
            found = compared(robot, model, motion, given.steps)
            print(f'| {"/".join(file.parts[-2:])} | {motion} | {given.steps} | {found.loaded} | '
                  f'{found.lowest:.2f} | {found.worst:.1e} |', flush=True)  # fmt: skip


if __name__ == '__main__':
    main()
