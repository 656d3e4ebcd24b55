"""What the laws of contact ask, and how far any answer is from them."""
