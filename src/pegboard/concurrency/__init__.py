"""Waiting and background work, for every layer: imports nothing of Pegboard."""
