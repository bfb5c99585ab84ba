"""Pegboard and its peers as the gateway benchmark runs them: one file per gateway."""
