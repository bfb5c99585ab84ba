"""A store that can be lost for a while."""

from pegboard.stores.grace.grace_store import GraceStore, with_grace

__all__ = ["GraceStore", "with_grace"]
