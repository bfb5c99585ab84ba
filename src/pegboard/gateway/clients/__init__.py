"""The way back to clients: questions of upstreams, calls that wait for an answer, open connections."""
