"""What a query and a tool have in common beyond their words: vectors, without a network."""
