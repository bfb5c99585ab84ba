"""Plugins that run in a process of their own: Python, packaged and Agno plugins that are confined (A7).

``source.py`` is the source that board and operators see; :mod:`pegboard.sources.plugin_process.child` is the program
that constructs the plugin. Between them passes MCP over stdio, so that a process is started, pooled, stopped and
started again as that of a server is. This process never imports the module of such a plugin.
"""
