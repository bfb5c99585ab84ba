"""Adapters that bring plugins in: MCP servers, Python code, Agno toolkits, installed packages.

Each source implements :class:`pegboard.ports.Source` and knows only core, ports and errors; what
several of them share is in :mod:`pegboard.sources.signatures`. What a source changes in the
process of its host it gives back when it is closed; :mod:`pegboard.sources.stdout` is for processes
whose standard output is not for plugins.
"""
