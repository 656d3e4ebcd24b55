"""The ROS 2 interface of the simulator: node, parameters, messages and controllers."""
