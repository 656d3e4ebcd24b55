"""Example controllers: nodes that know the simulator by its topics only."""
