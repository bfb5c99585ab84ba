"""Rankers: which tools answer a need best."""
