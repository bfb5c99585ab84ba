"""Measure, do not guess: each benchmark prints figures taken side by side in one run."""
