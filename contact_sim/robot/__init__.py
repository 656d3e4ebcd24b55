"""Robots: from URDF to RobotModel."""
