"""What was understood of a robot description, drawn and tried: python -m contact_sim.inspect."""
