"""How the robot would move if nothing touched it."""
