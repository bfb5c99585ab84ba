"""The web console: pages, JSON and an event stream over one board; it has no rules of its own."""
