"""Parameters: declared, served, written to files, and made into a robot and a simulator."""
