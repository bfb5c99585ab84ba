"""What clients are notified of: changed lists of tools, resources and prompts."""
