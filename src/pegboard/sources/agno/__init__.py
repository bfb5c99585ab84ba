"""Toolkits of Agno: imported when first needed, constructed when loaded, quiet while they are used."""

from pegboard.sources.agno.construction import AgnoToolkits
from pegboard.sources.agno.source import AgnoSource

__all__ = ["AgnoSource", "AgnoToolkits"]
