"""The newest edit of a configuration as operators see it, with the lines that are wrong in it."""
