"""Rankers: which tools answer a query best."""
