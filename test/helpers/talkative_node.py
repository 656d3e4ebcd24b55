"""The node, but that it publishes /diagnostics ten times a second: much of a test waits for it."""

from contact_sim.ros import _loop, simulation_node
from contact_sim.ros._processes import leave


def run():
    """Run the node as a process."""
    _loop.DIAGNOSTICS_PERIOD = 0.1
    leave(simulation_node.main())


if __name__ == '__main__':
    run()
