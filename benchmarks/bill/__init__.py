"""What a conversation costs with a provider that caches prompts: ``python -m benchmarks bill``."""

from benchmarks.bill.program import main

__all__ = ["main"]
