"""Content of /diagnostics: real-time factor, solver, commands, lockstep, messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from contact_sim.robot._several_robots import RobotPart
from contact_sim.ros._joint_commands import CommandInbox
from contact_sim.ros._lockstep import Lockstep
from contact_sim.simulation._loop import Pacer
from contact_sim.step._problem import STATUSES
from contact_sim.topics._sinks import Message, diagnostics
from contact_sim.topics._solver_numbers import status_counts
from contact_sim.topics._table import nanoseconds
from contact_sim.topics._world_topics import ERROR, OK, WARN

SLOW = 0.95
"""Fraction of the desired real-time factor below which a warning is published."""


@dataclass
class Tally:
    """Counts that /diagnostics reports."""

    statuses: list[int] = field(default_factory=lambda: [0] * len(STATUSES))
    """Number of steps that ended with each solver status, by its code."""
    switches: int = 0
    """Number of switches of the contact model."""
    last_switch: str = 'none'
    """The models before and after it, and its simulated time."""
    failure: str = ''
    """Reason why the simulation stopped stepping; empty while it steps."""
    recording: str = ''
    """Reason why recording has ended before the simulation; empty while it has not."""


@dataclass(frozen=True)
class Conditions:
    """State of the node that /diagnostics reports."""

    time: float
    """Simulated time [s]."""
    name: str
    """Name of the node."""
    contact_model: str
    shadow: tuple[str, ...]
    """Contact models that solve the same steps."""
    constraints: tuple[str, ...]
    """Names of the bilateral constraints that hold."""
    wanted_factor: float
    """Desired real-time factor [-], 0: as fast as possible."""
    paused: bool
    command_timeout: float
    """Age of the last command at which it is called stale, wall time [s]."""
    steps: int
    """Steps since the last reset."""
    pushes_accepted: int
    """Messages on external_wrench that were accepted."""
    pushes_refused: int
    """Messages on external_wrench that were invalid."""
    messages_lost: int
    """Messages that could not be sent since the start."""
    messages_sent: dict[str, int]
    """Messages sent since the start, by topic."""
    long_steps: int
    """Steps, and changes between two, that took longer than a second."""
    under_way: str
    """Description of a call that takes long; empty if there is none."""
    clock: str
    """Warning about /clock; empty if there is none."""
    viewer: str
    """Address of the viewer page; empty if none is served."""
    viewer_trouble: str
    """Reason why the viewer page is not served; empty if it is."""
    solver: str
    """Warnings about the solver since the last message; empty if there are none."""
    robots: tuple[RobotPart, ...]
    """All robots; a single robot has no name."""


def diagnostics_message(
    now: Conditions, pacer: Pacer, inbox: CommandInbox, lockstep: Lockstep, tally: Tally
) -> Message:
    """Return a DiagnosticArray of one status about the whole node."""
    level, text = verdict(now, pacer, inbox, lockstep, tally)
    status = {
        'level': level, 'name': f'{now.name}: simulation', 'message': text,
        'hardware_id': now.name,
    }  # fmt: skip
    ages = {part.prefix: inbox.age(part.joints) for part in now.robots}
    values = {
        'contact_model': now.contact_model,
        'contact_model_switches': tally.switches,
        'last_contact_model_switch': tally.last_switch,
        'shadow_models': ' '.join(now.shadow),
        'constraints': ' '.join(now.constraints),
        'real_time_factor': f'{pacer.measured:.4g}',
        'wanted_real_time_factor': f'{now.wanted_factor:g}',
        'overruns': pacer.overruns,
        'steps_since_reset': now.steps,
        'messages_lost': now.messages_lost,
        'long_steps': now.long_steps,
        'viewer': now.viewer,
        'paused': now.paused,
        'commands_accepted': inbox.accepted,
        'commands_dropped': inbox.dropped,
        'last_refusal': inbox.last_refusal,
        **{
            f'{prefix}command_age': 'none' if age is None else f'{age:.3f}'
            for prefix, age in ages.items()
        },
        'pushes_accepted': now.pushes_accepted,
        'pushes_refused': now.pushes_refused,
        'lockstep': lockstep.enabled,
        'lockstep_timeouts': lockstep.timeouts,
        'lockstep_late_commands': lockstep.late,
        'lockstep_waits_for': ' '.join(lockstep.awaited_joints),
        'lockstep_lost': ' '.join(lockstep.lost_joints),
        **status_counts(tally.statuses),
        **{f'sent on {topic}': count for topic, count in now.messages_sent.items()},
    }
    return diagnostics(nanoseconds(now.time), status, values)


def verdict(
    now: Conditions, pacer: Pacer, inbox: CommandInbox, lockstep: Lockstep, tally: Tally
) -> tuple[int, str]:
    """Return level and message of the most severe problem."""
    if tally.failure:
        return ERROR, tally.failure
    if tally.recording:
        return ERROR, tally.recording
    if wrong := now.under_way or now.clock or now.solver:
        return WARN, wrong
    if lockstep.silent_joints:
        joints = ', '.join(lockstep.silent_joints)
        return WARN, f'lockstep: no command for {joints}; {lockstep.policy}'
    if not now.paused and 0.0 < pacer.measured < SLOW * now.wanted_factor:
        return WARN, (
            f'slower than asked: real-time factor {pacer.measured:.3g} instead of '
            f'{now.wanted_factor:g}; time slows down, no step is skipped'
        )
    for part in now.robots:
        age, whom = inbox.age(part.joints), f' for {part.name}' if part.name else ''
        if age is not None and age > now.command_timeout:
            text = f'no command{whom} for {age:.1f} s; the last one stays in force'
            return WARN, text
    if now.viewer_trouble:
        return WARN, now.viewer_trouble
    return OK, 'paused' if now.paused else 'running'
