"""From YAML or JSON to core values, with the place of everything in the file."""
