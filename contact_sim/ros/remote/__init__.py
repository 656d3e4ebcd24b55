"""A simulation in a process of its own: started, asked and watched."""
