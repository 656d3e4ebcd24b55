"""The node, but that it publishes /diagnostics ten times a second: much of a test waits for it."""

from contact_sim.ros import simulation_node
from contact_sim.ros.interruption import leave
from contact_sim.ros.stepping import loop


def run():
    """Run the node as a process."""
    loop.DIAGNOSTICS_PERIOD = 0.1
    leave(simulation_node.main())


if __name__ == '__main__':
    run()
