"""The demo: a run over ROS 2 as two processes, its verdict and its picture."""
