"""The gateway over HTTP. For the command."""
