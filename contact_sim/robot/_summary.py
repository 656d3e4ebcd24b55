"""Descriptions of gains and actuators, for the log at start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from contact_sim._types import Array
from contact_sim.robot._actuators import Actuators, quantities
from contact_sim.robot._gains import joint_mobility, largest_time_step
from contact_sim.robot._model import RobotModel

# ---------------------------------------------------------------------------------------- PD gains


def describe_gains(robot: RobotModel, kp: Array, kd: Array, q: Array) -> str:
    """Return the range of the gains, and their largest stable time step, as one line.

    Args:
        robot: the robot.
        kp: [N m/rad], of prismatic joints [N/m], shape (n_joints,).
        kd: [N m s/rad], of prismatic joints [N s/m], shape (n_joints,).
        q: configuration in which they are to be stable, shape (nq,).
    """
    if not robot.n_joints:
        return 'PD gains: no joint is driven'
    default = robot.default_gains
    own = int(np.count_nonzero((kp == default[0]) & (kd == default[1])))
    ranges = (f'{name} {_range(robot.joint_names, gain)}' for name, gain in (('p', kp), ('d', kd)))
    return (
        f"PD gains: {', '.join(ranges)}; the robot's own in {own} of {robot.n_joints} joints; "
        f'stable at time steps below {gains_limit(robot, kp, kd, q):.2g} s'
    )


def gain_table(robot: RobotModel, kp: Array, kd: Array) -> str:
    """Return the gains of every joint."""
    rows = zip(robot.joint_names, kp.tolist(), kd.tolist(), strict=True)
    return 'PD gains: ' + '; '.join(f'{name} p {p:.4g} d {d:.4g}' for name, p, d in rows)


def gains_limit(robot: RobotModel, kp: Array, kd: Array, q: Array) -> float:
    """Return the time step below which explicit PD is stable at `q` in the air [s]."""
    joints = robot.joint_velocity_index
    return largest_time_step(joint_mobility(robot.pinocchio_model, joints, q, robot.loops), kp, kd)


def _range(names: Sequence[str], gain: Array) -> str:
    low, high = int(gain.argmin()), int(gain.argmax())
    return f'{gain[low]:.4g} ({names[low]}) to {gain[high]:.4g} ({names[high]})'


# --------------------------------------------------------------------------------------- actuators

UNLIMITED = 1e300
"""From here on a limit is none: Pinocchio's own models have the largest float there."""
ROTARY = {'force': 'N m', 'speed': 'rad/s', 'damping': 'N m s/rad', 'inertia': 'kg m²'}
SLIDING = {'force': 'N', 'speed': 'm/s', 'damping': 'N s/m', 'inertia': 'kg'}
"""Units of what drives a joint that turns or slides."""
EFFECTS = (
    'effort limit', 'velocity limit', 'torque-speed curve', 'viscous friction', 'dry friction',
    'armature', 'delay', 'lag',
)  # fmt: skip
"""What an actuator may have."""


def describe_actuators(robot: RobotModel) -> list[str]:
    """Return the actuator effects by joint, and those that are off, as lines.

    Joints with equal actuators share a line.
    """
    joints_of: dict[str, list[str]] = {}
    shown: set[str] = set()
    for i, name in enumerate(robot.joint_names):
        effects = _effects(robot.actuators, i, _units(robot.pinocchio_model, name))
        shown |= effects.keys()
        words = ', '.join(f'{effect} {value}' for effect, value in effects.items())
        joints_of.setdefault(words or 'nothing, commands act as they are', []).append(name)
    lines = [f'actuators of {", ".join(names)}: {words}' for words, names in joints_of.items()]
    off = [effect for effect in EFFECTS if effect not in shown]
    if lines and off:
        lines.append(f'off in all actuators: {", ".join(off)}')
    return [*lines, 'backlash is not modelled'] if lines else ['no joint is driven']


def _effects(actuators: Actuators, i: int, units: dict[str, str]) -> dict[str, str]:
    """Return what actuator `i` has, by its name in EFFECTS, with numbers and units."""
    value = {name: float(getattr(actuators, name)[i]) for name in quantities()}
    force, fastest = units['force'], value['velocity_limit']
    standstill = value['saturation_effort']
    rotor = value['gear_ratio'] ** 2 * value['rotor_inertia']
    geared = f' = {value["gear_ratio"]:g}² × {value["rotor_inertia"]:g}' if rotor else ''
    geared += f' + {value["armature"]:g}' if rotor and value['armature'] else ''
    effects = {
        'effort limit': (value['effort_limit'] < UNLIMITED, f'{value["effort_limit"]:g} {force}'),
        'velocity limit': (
            fastest < UNLIMITED, f'{fastest:g} {units["speed"]} (not driven faster)',
        ),
        'torque-speed curve': (
            standstill < UNLIMITED,
            f'from {standstill:g} {force} at rest to 0 at the velocity limit',
        ),
        'viscous friction': (
            value['viscous_friction'] > 0.0, f'{value["viscous_friction"]:g} {units["damping"]}',
        ),
        'dry friction': (value['dry_friction'] > 0.0, f'{value["dry_friction"]:g} {force}'),
        'armature': (
            actuators.total_armature[i] > 0.0,
            f'{actuators.total_armature[i]:g} {units["inertia"]}{geared}',
        ),
        'delay': (value['delay'] > 0.0, f'{value["delay"]:g} s'),
        'lag': (value['time_constant'] > 0.0, f'{value["time_constant"]:g} s'),
    }  # fmt: skip
    return {name: words for name, (acts, words) in effects.items() if acts}


def _units(model: pin.Model, joint: str) -> dict[str, str]:
    """Return the units of what drives a joint: SLIDING where it does not turn."""
    place = model.joints[model.getJointId(joint)]
    data = model.createData()
    pin.computeJointJacobians(model, data, pin.neutral(model))
    columns = np.reshape(data.J, (6, model.nv))  # of one dof Pinocchio makes a vector
    return ROTARY if columns[3:, place.idx_v].any() else SLIDING
