"""Where the robot touches the terrain."""
