"""The loop: reset, step, snapshot."""
