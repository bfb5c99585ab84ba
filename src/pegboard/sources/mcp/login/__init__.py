"""Logins to remote servers: who issues them, how one is made, kept and renewed (G11)."""
