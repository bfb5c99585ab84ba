"""Text to values with their places: YAML, JSON, TOML, environment. Knows nothing of what they mean."""
