"""Switches as operators see and throw them."""
