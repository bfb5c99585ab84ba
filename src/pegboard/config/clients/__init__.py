"""The configuration files of MCP clients: found, read, changed. For the command."""
