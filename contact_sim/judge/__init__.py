"""Trajectories of other engines, scored by the residuals of the laws of contact."""
