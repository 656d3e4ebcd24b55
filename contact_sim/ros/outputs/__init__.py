"""The messages of the node, and the publishers that send them."""
