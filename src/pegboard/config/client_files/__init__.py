"""How each MCP client writes its servers: read, and put in our own shape. `clients/` and `reading` enter it."""
