"""What every layer may use: waiting, background work, user folders, constants of MCP. Imports nothing of Pegboard."""
