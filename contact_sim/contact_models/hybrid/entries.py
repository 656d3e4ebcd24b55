"""Compiled pieces of a step, called by the event-driven stepper.

Every entry takes the arrays of the step (numbers, indices, layout), then those of the arc.
"""

from __future__ import annotations

import numpy as np

from contact_sim.arrays import fields as f
from contact_sim.arrays.views import arrays_of, frames, matrix, vector
from contact_sim.contact.ground import fill_ground_coefficients
from contact_sim.contact_models.hybrid import (
    collide,
    constrained_motion,
    events,
    flow,
    held_contacts,
)
from contact_sim.contact_models.hybrid import fields as e
from contact_sim.contact_models.hybrid.mode_elimination import OPEN, SLIP, STICK
from contact_sim.dynamics.vectors import scaled, vec
from contact_sim.solvers.jit import entry

STICKING_SPEED = 1e-6
"""Speed up to which a contact counts as sticking after a time-stepping step [m/s]."""


@entry
def load(numbers, indices, layout, arc_numbers, arc_indices, arc_layout):
    """Take the state at the start of a step; return True if a contact collides."""
    data = arrays_of(numbers, indices, layout, 0)
    return flow.load(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0))


@entry
def fill_coefficients(numbers, indices, layout, arc_numbers, arc_indices, arc_layout):
    """Fill friction and restitution of the contacts at the instant at hand."""
    arc = arrays_of(arc_numbers, arc_indices, arc_layout, 0)
    data = arrays_of(numbers, indices, layout, 0)
    fill_ground_coefficients(data, matrix(arc, e.POSITION), vector(arc, e.FEATURE))


@entry
def apply_impact(
    numbers, indices, layout, arc_numbers, arc_indices, arc_layout, law, energy_guard
):  # fmt: skip
    """Change the velocity by the impact map; return (status code, iterations, residual)."""
    data = arrays_of(numbers, indices, layout, 0)
    arc = arrays_of(arc_numbers, arc_indices, arc_layout, 0)
    return collide.apply_impact(data, arc, law, energy_guard)


@entry
def change_velocity(numbers, indices, layout, arc_numbers, arc_indices, arc_layout):
    """Bring the instant in line with a velocity that an impact has changed."""
    data = arrays_of(numbers, indices, layout, 0)
    arc = arrays_of(arc_numbers, arc_indices, arc_layout, 0)
    constrained_motion.evaluate_velocity(data, arc, vector(arc, e.ARC_V))


@entry
def choose_modes(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, dt):
    """Choose the modes for an arc of about dt [s]; return (status code, sweeps, residual [N])."""
    data = arrays_of(numbers, indices, layout, 0)
    arc = arrays_of(arc_numbers, arc_indices, arc_layout, 0)
    return held_contacts.choose_modes(data, arc, dt)


@entry
def begin_arc(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, lenience):
    """Start arcs in the modes at hand; return False if no finite force holds them."""
    data = arrays_of(numbers, indices, layout, 0)
    return flow.begin_arc(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), lenience)


@entry
def integrate(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, dt):
    """Integrate by dt [s]; return (held, error, violated guards)."""
    data = arrays_of(numbers, indices, layout, 0)
    return flow.integrate(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), dt)


@entry
def start_stage(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, stage, dt):
    """Fill velocity and displacement of a stage; return the error of the arc at its end."""
    data = arrays_of(numbers, indices, layout, 0)
    return flow.start_stage(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), stage, dt)


@entry
def finish_stage(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, stage):
    """Fill forces, rates and guards of a stage; return (held, violated guards)."""
    data = arrays_of(numbers, indices, layout, 0)
    return flow.finish_stage(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), stage)


@entry
def accept(numbers, indices, layout, arc_numbers, arc_indices, arc_layout, dt):
    """Make the end of the arc the state; return True if a contact slips."""
    data = arrays_of(numbers, indices, layout, 0)
    return flow.accept(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), dt)


@entry
def finish(
    numbers, indices, layout, arc_numbers, arc_indices, arc_layout, count, residual
):  # fmt: skip
    """Write a step with `count` events into the step data."""
    data = arrays_of(numbers, indices, layout, 0)
    flow.finish(data, arrays_of(arc_numbers, arc_indices, arc_layout, 0), count, residual)


@entry
def only_forces_violated(numbers, indices, layout):
    """Return True if every violated guard is one of a force; takes the arrays of the arc."""
    return events.only_forces_violated(arrays_of(numbers, indices, layout, 0))


@entry
def watch_violated(numbers, indices, layout):
    """Watch the violated guards; return their number and the largest violation of the watched.

    Takes the arrays of the arc.
    """
    arc = arrays_of(numbers, indices, layout, 0)
    return events.watch_violated(arc), events.largest_violation(arc)


@entry
def earliest_root(numbers, indices, layout, low, high, bisect):
    """Return the next instant to look at in [low, high] [s]; takes the arrays of the arc."""
    return events.earliest_root(arrays_of(numbers, indices, layout, 0), low, high, bisect)


@entry
def prepare_event(numbers, indices, layout):
    """Close what touches; return True if a contact collides; takes the arrays of the arc."""
    return events.prepare_event(arrays_of(numbers, indices, layout, 0))


@entry
def remember_fallback(numbers, indices, layout):
    """Keep force and mode of every contact after a time-stepping step."""
    data = arrays_of(numbers, indices, layout, 0)
    memory, frame = matrix(data, f.MEMORY), frames(data, f.FRAME_START)
    h = vector(data, f.TIME_STEP)[0]
    impulse, u = vector(data, f.IMPULSE), vector(data, f.U_NEXT)
    for i in range(memory.shape[0]):
        r, mode = 3 * i, OPEN
        if impulse[r + 2] > 0.0:
            slip = np.sqrt(u[r] ** 2 + u[r + 1] ** 2)
            mode = SLIP if slip > STICKING_SPEED else STICK
        force = scaled(1.0 / h, vec(impulse, r))
        flow.remember_contact(memory[i], mode, force, frame[i])
