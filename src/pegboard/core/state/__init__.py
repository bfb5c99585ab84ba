"""Is it loaded? A session's state, commands and the transitions between states. Imports `model` and `access`."""
