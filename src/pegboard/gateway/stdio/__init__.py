"""The gateway over standard input and output. For the command."""
