"""Parameters of the node, grouped by their dotted prefix; imports no ROS.

Which robot it is, is declared in _robots.py, which controllers import, too. A new parameter is a
field here; where it acts when it is changed is `SimulationNode._apply_settings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contact_sim.collision._terrain import terrains
from contact_sim.constraints._constraint_rows import KINDS
from contact_sim.contact_models import CONTACT_MODELS, model_names
from contact_sim.dynamics._integration import INTEGRATORS
from contact_sim.parameters import Parameters, parameter
from contact_sim.ros._robots import NOT_SET, RobotParameters
from contact_sim.topics._robot_topics import GROUPS, FrameParameters
from contact_sim.topics._table import PublishRateParameters

GROUNDS = (*terrains(), 'file')
"""Kinds of ground that the node knows."""
LARGEST_ACTUATOR_NUMBER = 1e9
"""Bound of what an actuator may have."""
LARGEST_GAIN = 1e6
"""Bound of PD gains: with the bound on commands it keeps every effort finite."""
FARTHEST, STIFFEST = 1e5, 1e12
"""Bounds of places and speeds [m, rad, m/s, rad/s], and of feedback [1/s²]."""


@dataclass(frozen=True)
class NodeParameters(FrameParameters, RobotParameters):
    """Robot, ground and pace of the simulation."""

    robots: tuple[str, ...] = parameter(
        (), '', 'several robots in one world, each name=robot or name=robot@x,y,yaw [m, m, rad], '
        'such as a=go1 and b=anymal_b@1.5,0,0.3; robot is of the catalogue or a path of a URDF; '
        'see docs/robots.md',
    )  # fmt: skip
    effort_joints: tuple[str, ...] = parameter(
        (), '', 'joints of joint_group_effort_controller/commands, in order; empty: all, as logged'
    )
    reference_pose: str = parameter(
        'standing', '', 'pose at start and after a reset, of the SRDF or of poses', live=True
    )
    initial_height: float = parameter(
        0.0, 'm', 'gap below the lowest foot at start and after a reset', at_least=0.0,
        at_most=100.0, live=True,
    )  # fmt: skip
    initial_x: float = parameter(
        0.0, 'm', 'where on the ground the robot starts, along x', at_least=-1e4, at_most=1e4,
        live=True,
    )  # fmt: skip
    initial_y: float = parameter(
        0.0, 'm', 'where on the ground the robot starts, along y', at_least=-1e4, at_most=1e4,
        live=True,
    )  # fmt: skip
    contact_links: tuple[str, ...] = parameter(
        (), '', 'links that touch with their collision geometry, too; all: every one that moves; '
        'none: only the feet touch; empty: those that are above the feet in the standing pose, '
        'without topics of their own'
    )  # fmt: skip
    joint_limits: bool = parameter(
        True, '', 'joints stop at the position limits of the URDF; mimic joints follow in any case'
    )
    joint_limit_restitution: float = parameter(
        0.0, '-', 'restitution of a joint that hits its limit', at_least=0.0, at_most=1.0
    )
    contact_edge_radius: float = parameter(
        0.0, 'm', 'radius of the edges of boxes of contact_links', at_least=0.0, at_most=1.0
    )
    self_collision: tuple[str, ...] = parameter(
        (), '', 'links that may touch each other, as link:link; all: every pair that can, but '
        'those that the SRDF disables'
    )  # fmt: skip
    robots_touch: bool = parameter(
        False, '', 'robots and loose bodies of `robots` may touch each other'
    )
    pair_contacts: int = parameter(
        32, '', 'contacts of bodies that there may be at once; of more the nearest are kept',
        at_least=1, at_most=1000,
    )  # fmt: skip
    end_on_contact: tuple[str, ...] = parameter(
        (), '', 'links whose touch on the ground ends the run: time stands still until ~/reset'
    )
    publish_robot_description: bool = parameter(
        False, '', 'publish the URDF on robot_description, kept for who comes late, as '
        'robot_state_publisher does: one of the two, never both',
    )  # fmt: skip
    time_step: float = parameter(1e-3, 's', 'physics step', at_least=1e-6, at_most=0.1)
    integrator: str = parameter(
        'semi_implicit', '', 'how time-stepping models move the robot; hybrid has its own',
        choices=INTEGRATORS,
    )  # fmt: skip
    gravity: float = parameter(9.81, 'm/s^2', 'gravity, downwards', at_least=-100.0, at_most=100.0)
    real_time_factor: float = parameter(
        1.0, '-', 'simulated seconds per wall second; 0: as fast as possible', at_least=0.0,
        at_most=1000.0, live=True,
    )  # fmt: skip
    record: str = parameter(
        '', '', 'file to record the run in, for python -m contact_sim.replay; empty: none'
    )
    start_paused: bool = parameter(False, '', 'wait for ~/pause or ~/step before the first step')
    step_count: int = parameter(
        1, '', 'steps taken by one call of ~/step', at_least=1, at_most=10_000_000, live=True
    )
    restitution: float = parameter(
        0.0, '-', "Newton's coefficient of every foot; 0: plastic", at_least=0.0, at_most=1.0,
        live=True,
    )  # fmt: skip
    clock: str = parameter(
        'publish', '', '/clock: publish it, follow that of another simulation in steps of its '
        'own, or none', choices=('publish', 'follow', 'none'),
    )  # fmt: skip
    services_at_root: bool = parameter(
        False, '', 'serve simulation_interfaces as /step_simulation etc., too, not only under ~/'
    )
    command_timeout: float = parameter(
        0.5, 's', 'wall time without a command after which /diagnostics warns', above=0.0,
        live=True,
    )  # fmt: skip


@dataclass(frozen=True)
class ContactParameters(Parameters):
    """The contact model in force, and the parameters that all time-stepping models share."""

    model: str = parameter(
        'ncp',
        '',
        'contact model, or preset of an engine; switches between two steps',
        choices=model_names(),
        live=True,
    )
    baumgarte: float = parameter(
        0.2, '-', 'share of a penetration taken out per step', at_least=0.0, at_most=1.0, live=True
    )
    restitution_threshold: float = parameter(
        0.05, 'm/s', 'approach speed below which an impact is plastic', at_least=0.0, live=True
    )
    shadow: tuple[str, ...] = parameter(
        (), '', 'contact models that solve the same steps without advancing them, for ~/shadow',
        choices=model_names(), live=True,
    )  # fmt: skip


@dataclass(frozen=True)
class FrictionParameters(Parameters):
    """Coulomb friction, and moments of torsional and rolling friction."""

    mu: float = parameter(0.8, '-', 'friction coefficient of every foot', at_least=0.0, live=True)
    torsional: float = parameter(
        0.0, 'm', 'largest moment of every contact point about the normal, over its normal force',
        at_least=0.0, live=True,
    )  # fmt: skip
    rolling: float = parameter(
        0.0, 'm', 'largest moment of every contact point along the ground, over its normal force',
        at_least=0.0, live=True,
    )  # fmt: skip


def _gain(unit: str, meaning: str) -> Any:
    return parameter(0.0, unit, meaning, at_least=0.0, at_most=LARGEST_GAIN, live=True)


@dataclass(frozen=True)
class GainParameters(Parameters):
    """PD gains with which joint_commands and the standing pose are followed."""

    p: float = _gain('N m/rad', 'position gain; 0: the default of the robot')
    d: float = _gain('N m s/rad', 'velocity gain; 0: the default of the robot')


@dataclass(frozen=True)
class JointGainParameters(Parameters):
    """PD gains of one joint."""

    p: float = _gain('N m/rad', 'position gain of this joint; 0: as gains.p')
    d: float = _gain('N m s/rad', 'velocity gain of this joint; 0: as gains.d')


def _actuator(unit: str, meaning: str, largest: float = LARGEST_ACTUATOR_NUMBER) -> Any:
    text = f'{meaning}; -1: not set'
    return parameter(NOT_SET, unit, text, at_least=NOT_SET, at_most=largest)


@dataclass(frozen=True)
class ActuatorParameters(Parameters):
    """Actuators, on the joint's side of the gear.

    What is not set for a joint is as in `actuators`, and what is not set there as in the URDF, or
    off. Sliding joints have N, N s/m, kg and m/s for N m, N m s/rad, kg m^2 and rad/s.
    """

    effort_limit: float = _actuator('N m', 'largest effort (URDF: <limit effort>)')
    velocity_limit: float = _actuator(
        'rad/s', 'speed beyond which nothing is driven (URDF: <limit velocity>); 0: none'
    )
    saturation_effort: float = _actuator(
        'N m', 'effort at rest of a torque-speed line that ends at velocity_limit; 0: no line'
    )
    gear_ratio: float = _actuator(
        '-', 'turns of the rotor per turn of the joint (URDF: <mechanicalReduction>)'
    )
    rotor_inertia: float = _actuator(
        'kg m^2', 'inertia of the rotor; the joint feels gear_ratio^2 times as much'
    )
    armature: float = _actuator('kg m^2', 'further inertia of the drive, seen from the joint')
    viscous_friction: float = _actuator('N m s/rad', 'viscous friction (URDF: <dynamics damping>)')
    dry_friction: float = _actuator('N m', 'dry friction (URDF: <dynamics friction>)')
    delay: float = _actuator(
        's', 'from a command to the beginning of its effect, a multiple of time_step', 1.0
    )
    time_constant: float = _actuator('s', 'time constant of a first-order lag', 1e3)


@dataclass(frozen=True)
class TerrainParameters(Parameters):
    """The ground; all kinds but files go through the origin of the world, or lie about it.

    What changes while the simulation runs acts at the next reset.
    """

    type: str = parameter('plane', '', 'kind of ground', choices=GROUNDS, live=True)
    angle: float = parameter(
        0.0, 'rad', 'slope of inclined_plane, and of both sides of groove', above=-1.57,
        below=1.57, live=True,
    )  # fmt: skip
    heading: float = parameter(
        0.0, 'rad', 'direction in which inclined_plane falls, and along which groove and cylinder '
        'run, about z; 0: +x', live=True,
    )  # fmt: skip
    radius: float = parameter(
        10.0, 'm', 'radius of sphere and cylinder', above=0.0, at_most=1e6, live=True
    )
    hollow: bool = parameter(
        False, '', 'the robot is inside of sphere (a bowl) or cylinder (a pipe), not on top',
        live=True,
    )  # fmt: skip
    difficulty: float = parameter(
        0.5, '-', 'of ground from stairs to boxes: from easiest to hardest', at_least=0.0,
        at_most=1.0, live=True,
    )  # fmt: skip
    seed: int = parameter(
        0, '', 'of the same: the same seed, the same ground', at_least=0, live=True
    )
    file: str = parameter(
        '', '', 'what type file loads: YAML of a generator, heights .npy or .png, or a mesh',
        live=True,
    )  # fmt: skip
    horizontal_scale: float = parameter(
        0.1, 'm', 'distance between heights of a file', above=0.0, live=True
    )
    vertical_scale: float = parameter(
        0.0, 'm', 'metres per unit of an image or of integers; 0: the heights are in metres',
        at_least=0.0, live=True,
    )  # fmt: skip


@dataclass(frozen=True)
class LockstepParameters(Parameters):
    """Steps that wait for their commands."""

    enabled: bool = parameter(
        False, '', 'take a step only after the command stamped at or after its start', live=True
    )
    period: int = parameter(
        1, '', 'physics steps per command; states are published at each of these instants, too',
        at_least=1, at_most=100_000, live=True,
    )  # fmt: skip
    timeout: float = parameter(
        1.0, 's', 'wall time to wait for a command; then the policy holds, and nobody waits for '
        'this controller until it speaks again', above=0.0, at_most=86400.0, live=True,
    )  # fmt: skip
    start_timeout: float = parameter(
        0.0, 's', 'wall time to wait for a controller that has not spoken yet; 0: as timeout',
        at_least=0.0, at_most=86400.0, live=True,
    )  # fmt: skip
    policy: str = parameter(
        'hold', '', 'joints without a command in time: hold the last one, zero effort, or pause',
        choices=('hold', 'zero', 'pause'), live=True,
    )  # fmt: skip
    controllers: tuple[str, ...] = parameter(
        (), '', 'names of the controllers that are waited for; empty: one that commands all joints'
    )
    socket: str = parameter(
        '', '', 'path of a Unix socket on which controllers of this machine take joint_states and '
        'answer without DDS; empty: none'
    )  # fmt: skip


@dataclass(frozen=True)
class ControllerParameters(Parameters):
    """One of the controllers in lockstep."""

    joints: tuple[str, ...] = parameter((), '', 'joints that this controller commands')


@dataclass(frozen=True)
class PushParameters(Parameters):
    """Meaning of a message on external_wrench."""

    duration: float = parameter(
        0.1, 's', 'simulated time for which it acts; 0: until the next one on the same link',
        at_least=0.0, at_most=1e6, live=True,
    )  # fmt: skip
    axes: str = parameter(
        'link', '', 'axes of force and torque: those of the link in header.frame_id, which turn '
        'with it, or the world', choices=('link', 'world'), live=True,
    )  # fmt: skip


@dataclass(frozen=True)
class TrajectoryParameters(Parameters):
    """Rules for joint_trajectory, named as those of joint_trajectory_controller."""

    allow_partial_joints_goal: bool = parameter(
        False, '', 'take trajectories of some joints; the others keep their commands', live=True
    )
    interpolate_from_desired_state: bool = parameter(
        True, '', 'begin at the last commanded position; false: where the joints are', live=True
    )


@dataclass(frozen=True)
class ConstraintNames(Parameters):
    """Which bilateral constraints there are."""

    names: tuple[str, ...] = parameter(
        (), '', 'bilateral constraints, each described by constraints.<name>.*, see '
        'docs/constraints.md',
    )  # fmt: skip


def _named(meaning: str) -> Any:
    return parameter('', '', meaning)


def _place(meaning: str) -> Any:
    return parameter((), 'm', meaning, at_least=-FARTHEST, at_most=FARTHEST, live=True)


def _number(default: float, unit: str, meaning: str) -> Any:
    return parameter(default, unit, meaning, at_least=-FARTHEST, at_most=FARTHEST, live=True)


def _feedback(unit: str, meaning: str, largest: float) -> Any:
    text = f'{meaning}; -1: none'
    return parameter(NOT_SET, unit, text, at_least=NOT_SET, at_most=largest, live=True)


@dataclass(frozen=True)
class ConstraintParameters(Parameters):
    """One bilateral constraint.

    Each kind takes what its class in `contact_sim.constraints` has. Without `alpha`, or `kp` and
    `kd`, positions are projected.
    """

    kind: str = _named('one of ' + ', '.join(KINDS))
    enabled: bool = parameter(True, '', 'whether it holds; false lets go', live=True)
    frame: str = _named('frame that is held')
    other: str = _named('loop_closure: frame that it is held to')
    joint: str = _named('joint that is held or driven')
    leader: str = _named('joint_coupling: joint that it follows')
    at: tuple[float, ...] = _place(
        'where it holds: x y z in world, for frame_anchor and quaternion x y z w, for joint_lock '
        'a position [rad or m]; empty: where it is when it begins to hold, and at resets'
    )
    point: tuple[float, ...] = _place('point that is held, in the axes of frame; empty: 0 0 0')
    other_point: tuple[float, ...] = _place(
        'loop_closure: where it is held, in the axes of other; empty: 0 0 0'
    )
    full: bool = parameter(False, '', 'loop_closure: frames do not turn against each other')
    ratio: float = _number(1.0, '-', 'joint_coupling: position = ratio * leader + offset')
    offset: float = _number(0.0, 'rad', 'joint_coupling')
    velocity: float = _number(0.0, 'rad/s', 'joint_velocity: speed [rad/s or m/s]')
    alpha: float = _feedback(
        '1/s', 'rate at which errors go to 0, for kp = alpha^2, kd = 2 alpha', FARTHEST
    )
    kp: float = _feedback('1/s^2', 'feedback of the error of the position, with kd', STIFFEST)
    kd: float = _feedback('1/s', 'feedback of its rate, with kp', STIFFEST)


@dataclass(frozen=True)
class ViewerParameters(Parameters):
    """The page in a browser that shows the simulation; needs viser, see docs/viewer.md."""

    port: int = parameter(
        0, '', 'port at which the page is served, by a process of its own; 0: no page',
        at_least=0, at_most=65535,
    )  # fmt: skip
    host: str = parameter(
        'localhost', '', 'name or address at which it is served; any but localhost lets others in '
        'without a password, 0.0.0.0 from every network',
    )  # fmt: skip


PARAMETER_GROUPS: dict[str, type[Parameters]] = {
    '': NodeParameters,
    'contact': ContactParameters,
    **{f'contact.{name}': model.parameter_class for name, model in CONTACT_MODELS.items()},
    'friction': FrictionParameters,
    'gains': GainParameters,
    'actuators': ActuatorParameters,
    'terrain': TerrainParameters,
    'constraints': ConstraintNames,
    'publish_rate': PublishRateParameters,
    **{prefix: cls for prefix, cls in GROUPS.items() if prefix},
    'lockstep': LockstepParameters,
    'push': PushParameters,
    'trajectory': TrajectoryParameters,
    'viewer': ViewerParameters,
}
"""Dotted prefix to the class that declares its parameters.

`gains.<joint>` and `actuators.<joint>` are added per joint of the robot,
`lockstep.<controller>` per controller, `constraints.<name>` per constraint.
"""
