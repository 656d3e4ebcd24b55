"""The loop that steps the simulation, its pace, and how it is doing."""
