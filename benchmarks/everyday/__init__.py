"""Everyday requests over the tools of twenty published servers, and how they are read.

``catalogs/`` holds what each server says of itself and its tools (``collecting`` asks them again), ``effects.txt``
whether each tool reads or writes. ``develop/`` and ``kept/`` hold one half each of the requests, with the tools that
do each, and of the small talk that needs none. The kept half is not to be looked at while ranking is changed.
"""

from benchmarks.everyday.program import main

__all__ = ["main"]
