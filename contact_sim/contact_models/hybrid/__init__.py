"""The event-driven model: rigid contact in continuous time."""
