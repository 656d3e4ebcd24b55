"""What acts on the robot: joint commands, whose turn it is in lockstep, pushes. Imports no ROS."""
