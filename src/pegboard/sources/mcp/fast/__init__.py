"""The fast path to servers: what goes around the SDK for speed. A guest: see README.md beside this file."""
