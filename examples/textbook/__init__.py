"""The systems of the source texts, one module each, on the simulator of the robots."""
