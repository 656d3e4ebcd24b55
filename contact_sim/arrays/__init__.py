"""The arrays of one simulated robot: which fields there are, and views of them by name."""
