"""What servers list besides tools, and updates of it. For `source` only."""
