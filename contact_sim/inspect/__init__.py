"""Inspect a robot description: python -m contact_sim.inspect my.urdf."""
