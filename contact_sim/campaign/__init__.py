"""Tables of trials: one controller under many laws, time steps, disturbances and seeds."""
