"""How well, and how fast, engines find the tools that requests need."""
