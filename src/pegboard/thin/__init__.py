"""What reaches the daemon: the standard library alone, since every start of a client and each command waits for it."""
