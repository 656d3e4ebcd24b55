"""Floating-base dynamics of a robot on its feet (docs/support.md): pure functions, no state."""

from contact_sim.support.actuation import generalized_force, joint_effort
from contact_sim.support.analysis import Support, analyse_support
from contact_sim.support.coordinates import (
    base_rotation,
    body_velocity,
    coordinate_rate,
    in_world_velocity,
    rate_map,
    velocity_map,
    world_velocity,
)
from contact_sim.support.geometry import BaseMotion
from contact_sim.support.impact import ImpulseTransfer, impulse_transfer
from contact_sim.support.inverse import (
    InverseDynamics,
    effort_null_space,
    force_of_effort,
    inverse_dynamics,
)
from contact_sim.support.motion import (
    acceleration,
    consistent_acceleration,
    consistent_velocity,
    constraint_force,
    free_acceleration,
    minimal_acceleration,
    projected_acceleration,
)
from contact_sim.support.partition import Partition, split_base
from contact_sim.support.projection import (
    minimal_coordinates,
    null_space_basis,
    null_space_projector,
)
from contact_sim.support.stance import Stance, contact_drift, contact_jacobian, stance_dynamics

__all__ = [
    'BaseMotion',
    'ImpulseTransfer',
    'InverseDynamics',
    'Partition',
    'Stance',
    'Support',
    'acceleration',
    'analyse_support',
    'base_rotation',
    'body_velocity',
    'consistent_acceleration',
    'consistent_velocity',
    'constraint_force',
    'contact_drift',
    'contact_jacobian',
    'coordinate_rate',
    'effort_null_space',
    'force_of_effort',
    'free_acceleration',
    'generalized_force',
    'impulse_transfer',
    'in_world_velocity',
    'inverse_dynamics',
    'joint_effort',
    'minimal_acceleration',
    'minimal_coordinates',
    'null_space_basis',
    'null_space_projector',
    'projected_acceleration',
    'rate_map',
    'split_base',
    'stance_dynamics',
    'velocity_map',
    'world_velocity',
]
