"""Whose request is it, and what may they open? Bearer tokens and their owners."""
