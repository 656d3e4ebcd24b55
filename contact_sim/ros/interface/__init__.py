"""Inputs of the node: subscriptions, services, the state set anew."""
