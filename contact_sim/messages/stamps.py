"""Simulated time as stamps have it."""

from __future__ import annotations

NANOSECONDS = 1_000_000_000


def nanoseconds(time: float) -> int:
    """Return simulated time [s] as stamps have it [ns]."""
    return round(time * NANOSECONDS)
