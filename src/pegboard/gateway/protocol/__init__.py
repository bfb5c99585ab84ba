"""What all of the gateway shares: its port to a board, whose request it is, names and forms of the protocol."""
