"""The one process of a user that serves all stdio clients and commands: boards and servers are in it."""
