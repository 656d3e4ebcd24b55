"""Presets: contact models with the parameters of other engines, by the name of the engine.

A preset has the law of contact of an engine, not its code. What is the same and what is not is in
docs/engines, one page per engine; test/models/test_presets.py and benchmarks/engine_presets.py
compare them with the engines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from contact_sim.errors import one_line


@dataclass(frozen=True)
class Preset:
    """A contact model with the parameters of an engine; its name stands for it everywhere."""

    name: str
    model: str
    """Name of the contact model."""
    engine: str
    """The engine and its settings."""
    law: str
    """Its law of contact, in one line."""
    differs: str
    """What the engine does otherwise, in one line."""
    parameters: Mapping[str, float | str] = field(default_factory=dict)
    """Parameters of the contact model that are not at their defaults."""

    def __post_init__(self) -> None:
        object.__setattr__(self, 'parameters', MappingProxyType(dict(self.parameters)))

    __repr__ = one_line


SPHERES = 'nothing for spheres on a plane without joint limits, up to the tolerance of its solver'
OWN_SHARE = 'it chooses contact points of its own'

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            'exact', 'ncp', 'contact_sim, no other engine',
            'rigid contact, circular Coulomb friction, solved to rounding', 'nothing',
        ),
        Preset(
            'mujoco', 'todorov', 'MuJoCo at its defaults',
            'soft contact, friction pyramid, a foot under load creeps', SPHERES,
        ),
        Preset(
            'mujoco_elliptic', 'todorov', 'MuJoCo with cone="elliptic"',
            'soft contact, circular friction, a foot under load creeps', SPHERES,
            {'cone': 'elliptic'},
        ),
        Preset(
            'drake', 'sap', 'Drake at its defaults: discrete, lagged',
            'springs and dampers, friction bounded by the normal force of the step before',
            SPHERES, {'approximation': 'lagged'},
        ),
        Preset(
            'raisim', 'ncp', 'RaiSim',
            'rigid contact, each contact solved exactly in turn; slip leaves the least energy',
            'its correction of penetrations; it was compared with the published rule only',
            {'solver': 'raisim'},
        ),
        Preset(
            'bullet', 'ncp', 'PyBullet at its defaults: 50 sweeps, friction cone',
            'rigid contact, projected Gauss-Seidel, 50 sweeps whether they suffice or not',
            f'{OWN_SHARE}; its order of sweeps is another',
            {'solver': 'pgs', 'max_sweeps': 50},
        ),
        Preset(
            'ode', 'ncp', 'ODE: quick step, 20 sweeps, over-relaxation 1.3',
            'rigid contact, friction bounded per tangent, 20 sweeps whether they suffice or not',
            f'{OWN_SHARE}; its order of sweeps is random',
            {'solver': 'pgs_box', 'max_sweeps': 20, 'over_relaxation': 1.3},
        ),
        Preset(
            'gazebo', 'ncp', 'Gazebo Classic: ODE with 50 sweeps; newer ones have dart',
            'as ode, with 50 sweeps',
            f'{OWN_SHARE}; its order of sweeps is random',
            {'solver': 'pgs_box', 'max_sweeps': 50, 'over_relaxation': 1.3},
        ),
        Preset(
            'dart', 'lcp', 'DART at its defaults: boxed LCP by pivoting; Gazebo of today',
            'rigid contact, friction bounded per tangent, solved to rounding',
            f'{OWN_SHARE}; it takes 1 % of a penetration out per step, not 20 %',
            {'friction_law': 'box'},
        ),
        Preset(
            'chrono', 'anitescu', 'Project Chrono, NSC',
            'convex relaxation: a contact that slides hovers by h μ |u_t|',
            'it stops after a number of sweeps, and limits the speed of correction',
        ),
    )
}  # fmt: skip
"""Name: preset."""
