"""Adapters that bring plugins in: MCP servers, Python code, Agno toolkits, installed packages.

Each source implements :class:`pegboard.ports.Source` and knows only core, ports and errors; what
several of them share stands in :mod:`pegboard.sources.signatures`. Plugins that run in this process
print to standard error, never to standard output, which may carry a protocol.
"""
