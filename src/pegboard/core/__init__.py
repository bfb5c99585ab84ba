"""Decide which tools are out, and why: pure values and functions, standard library only."""
