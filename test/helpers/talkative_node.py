"""The node, but that it publishes /diagnostics ten times a second: much of a test waits for it."""

import sys

from contact_sim.ros import simulation_node
from contact_sim.ros.stepping import loop

if __name__ == '__main__':
    loop.DIAGNOSTICS_PERIOD = 0.1
    sys.exit(simulation_node.main())
