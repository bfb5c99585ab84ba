"""The version of this package, apart from everything that can be imported from it."""

__version__ = "0.1.0"
