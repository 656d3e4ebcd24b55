"""Free bodies with contact points on the ground in jiminy, in a process of its own.

jiminy brings a Pinocchio that cannot be loaded beside ours. `in_jiminy` runs this file as a
program under the interpreter that JIMINY_PYTHON names (else under this one), sends it launches
as JSON and reads their motions from its output. The program needs jiminy_py and numpy only.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
NOT_INSTALLED = 3
"""Exit code of the program where jiminy_py cannot be imported."""


@dataclass(frozen=True)
class Launch:
    """A body, its start, and the options of jiminy that are not at their defaults."""

    mass: float
    """[kg]."""
    inertia: tuple[float, ...]
    """Diagonal, shape (3,) [kg m²]."""
    points: list[tuple[float, float, float]]
    """Contact points in the frame of the body [m]; the ground is z = 0."""
    q: list[float]
    """Position [m] and quaternion x, y, z, w."""
    v: list[float]
    """Linear and angular velocity in the frame of the body [m/s, rad/s]."""
    steps: int
    time_step: float = 1e-3
    """[s]; an adaptive integrator divides it."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """[m/s²]."""
    contacts: dict[str, Any] = field(default_factory=dict)
    """Engine options `contacts`."""
    stepper: dict[str, Any] = field(default_factory=dict)
    """Engine options `stepper`."""


def in_jiminy(*launches: Launch) -> list[tuple[Array, Array]]:
    """Return q (steps + 1, 7) and v (steps + 1, 6) of each launch, from its start on.

    Raises:
        ImportError: jiminy is not installed.
        RuntimeError: jiminy refused the options, or its integration failed.
    """
    program = subprocess.run(
        [os.environ.get('JIMINY_PYTHON', sys.executable), __file__],
        input=json.dumps([dataclasses.asdict(launch) for launch in launches]),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if program.returncode == NOT_INSTALLED:
        raise ImportError(program.stderr.strip().splitlines()[-1])
    if program.returncode:
        raise RuntimeError(program.stderr)
    motions = json.loads(program.stdout.splitlines()[-1])
    return [(np.array(motion['q']), np.array(motion['v'])) for motion in motions]


# --- The program


def simulate(launch: Launch) -> dict[str, list[list[float]]]:
    """Return positions and velocities, with jiminy in this process."""
    import jiminy_py.core as jiminy
    import pinocchio as pin  # that of jiminy

    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root_joint')
    inertia = pin.Inertia(launch.mass, np.zeros(3), np.diag(launch.inertia))
    model.appendBodyToJoint(joint, inertia, pin.SE3.Identity())
    root = model.addFrame(
        pin.Frame('root_joint', joint, 0, pin.SE3.Identity(), pin.FrameType.JOINT)
    )
    names = [f'point_{k}' for k in range(len(launch.points))]
    for name, point in zip(names, launch.points, strict=True):
        place = pin.SE3(np.eye(3), np.array(point))
        model.addFrame(pin.Frame(name, joint, root, place, pin.FrameType.OP_FRAME))
    robot, engine = jiminy.Robot('body'), jiminy.Engine()
    robot.initialize(model)
    robot.add_contact_points(names)
    engine.add_robot(robot)
    options = engine.get_options()
    options['world']['gravity'] = np.array([*launch.gravity, 0.0, 0.0, 0.0])
    options['contacts'].update(launch.contacts)
    options['stepper'].update({'dtMax': launch.time_step, **launch.stepper})
    engine.set_options(options)
    engine.start(np.array(launch.q), np.array(launch.v))
    state = engine.robot_states[0]
    motion = {'q': [list(launch.q)], 'v': [list(launch.v)]}
    for _ in range(launch.steps):
        engine.step(launch.time_step)
        motion['q'].append(state.q.tolist())
        motion['v'].append(state.v.tolist())
    engine.stop()
    return motion


def main() -> int:
    """Read launches from standard input and print their motions."""
    launches = [Launch(**launch) for launch in json.load(sys.stdin)]
    try:
        motions = [simulate(launch) for launch in launches]
    except ImportError as error:
        print(error, file=sys.stderr)
        return NOT_INSTALLED
    print(json.dumps(motions))
    return 0


if __name__ == '__main__':
    sys.exit(main())
