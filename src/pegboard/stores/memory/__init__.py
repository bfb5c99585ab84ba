"""A store that ends with the process."""

from pegboard.stores.memory.memory_store import MemoryStore

__all__ = ["MemoryStore"]
