"""Contact points between robot and terrain."""
