"""What the gateway's rooms share: its port to a board, whose request it is, names and forms of the protocol."""
