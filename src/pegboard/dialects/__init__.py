"""How a model manages its own tools: one family of meta-tools per file."""
