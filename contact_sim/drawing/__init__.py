"""Shapes of a step as plain arrays, for RViz, MCAP and the browser."""
