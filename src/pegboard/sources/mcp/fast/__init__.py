"""The fast path to servers: what goes around the SDK for speed. It can be switched off: see README.md."""
