"""What is said of a step on which topic, without ROS: for the node and for exported recordings."""
