"""May it? Grants and denials, switches, guards and lookup for one agent. Imports `model` only."""
