"""The answers to requests of the protocol, one handler for both eras."""
