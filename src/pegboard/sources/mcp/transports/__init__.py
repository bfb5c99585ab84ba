"""The ways to a server: a child process, HTTP."""
