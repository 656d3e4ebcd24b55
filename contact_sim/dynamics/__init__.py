"""Motion of the robot without contact: kinematics, mass matrix, bias forces, integration."""
