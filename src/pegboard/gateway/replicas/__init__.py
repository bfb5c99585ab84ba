"""This process among others that serve the same store: who they are, and requests that belong to another of them."""
