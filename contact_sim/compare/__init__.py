"""Every contact model on the same scenario: numbers, laws broken, one figure. Imports no ROS."""
