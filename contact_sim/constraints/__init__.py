"""Bilateral constraints: anchors, closed loops, locked and driven joints, any h(q) = 0.

Frozen values; `Simulator(constraints=[...])` and `Simulator.add_constraint` take them, under every
contact model (theory 4.6).
"""

from contact_sim.constraints._constraint_rows import ConstraintTable
from contact_sim.constraints._elimination import gauss_dual, gauss_primal
from contact_sim.robot._constraints import (
    Baumgarte,
    Constraint,
    FrameAnchor,
    Holonomic,
    JointCoupling,
    JointLock,
    JointVelocity,
    LoopClosure,
    PointAnchor,
    Projection,
)

__all__ = [
    'Baumgarte',
    'Constraint',
    'ConstraintTable',
    'FrameAnchor',
    'Holonomic',
    'JointCoupling',
    'JointLock',
    'JointVelocity',
    'LoopClosure',
    'PointAnchor',
    'Projection',
    'gauss_dual',
    'gauss_primal',
]
