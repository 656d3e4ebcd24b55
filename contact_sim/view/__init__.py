"""The viewer in the browser: a live simulation, a recording, or the simulation of a node."""
