"""What the node listens to and serves: subscriptions, services, the state set anew."""
