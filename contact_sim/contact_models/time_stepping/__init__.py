"""Time-stepping models: one step for all of them, and one law each."""
