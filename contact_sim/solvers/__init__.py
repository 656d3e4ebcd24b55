"""Numerical methods on plain arrays: compiled kernels that know no robot."""

from contact_sim.solvers._jit import entry, kernel
from contact_sim.solvers._springs import LinearSprings

__all__ = ['LinearSprings', 'entry', 'kernel']
