"""What moves: from URDF to RobotModel."""
