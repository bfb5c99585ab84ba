"""What operators see and do: pages, commands and applications ask here; a model never does."""
