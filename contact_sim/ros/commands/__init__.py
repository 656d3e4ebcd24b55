"""Commands to the robot: joint commands, the rules of lockstep, pushes. Imports no ROS."""
