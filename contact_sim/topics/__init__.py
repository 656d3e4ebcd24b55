"""Topics of a simulation: their names, content and bytes, for the node and for MCAP files."""
