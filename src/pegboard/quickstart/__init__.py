"""Plugins that work at once: offline, read-only, under the current folder.

They are ordinary Python plugins, named in ``quickstart.yaml`` as anybody would name their own.
"""
