"""Recorded runs as files of other tools: MCAP with ROS 2 messages, CSV, Parquet."""
