"""A provider of models for tests: it answers by a script, and refuses what providers refuse, in their words."""
