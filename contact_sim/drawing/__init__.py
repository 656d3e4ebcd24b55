"""What there is to draw of a step, as plain arrays: for RViz, for MCAP and for the browser."""
