"""Text to values with their places: YAML, JSON, TOML, environment. They know nothing of what it means."""
