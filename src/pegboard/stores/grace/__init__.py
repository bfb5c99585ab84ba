"""A store that can be lost: what calls need of it goes on for a while on what was read last."""

from pegboard.stores.grace.grace_store import GraceStore, with_grace

__all__ = ["GraceStore", "with_grace"]
