"""Values that a configuration names and does not hold: read where they are kept, when a server starts (G13)."""

from pegboard.sources.references.reading import fill_references

__all__ = ["fill_references"]
