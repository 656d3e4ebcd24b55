"""One step in arrays: workspace, contact rows, the contact problem and its residuals."""

from contact_sim.step._problem import (
    Cone,
    ContactProblem,
    ContactSolution,
    EnergyBalance,
    Interval,
    LawResiduals,
    Residuals,
    SolverReport,
    SolverStatus,
    law_residuals,
)
from contact_sim.step._workspace import Workspace

__all__ = [
    'Cone',
    'ContactProblem',
    'ContactSolution',
    'EnergyBalance',
    'Interval',
    'LawResiduals',
    'Residuals',
    'SolverReport',
    'SolverStatus',
    'Workspace',
    'law_residuals',
]
