"""The ROS 2 interface of the simulator; no other package of contact_sim imports ROS."""
