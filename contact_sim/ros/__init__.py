"""The only room that imports ROS: parameters in, messages out."""
