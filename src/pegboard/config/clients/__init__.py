"""What is done with the files of MCP clients: taken over, merged, changed. For the command."""
