"""Plugins for infrastructure and research that work in memory."""
