"""Numbers only: numba kernels on arrays; no robots, no types of contact_sim."""
