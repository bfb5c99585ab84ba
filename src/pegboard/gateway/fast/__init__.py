"""The fast path: what goes around the SDK for speed. It can be switched off: see README.md."""
