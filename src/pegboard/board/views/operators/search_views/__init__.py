"""What a search over everything looks at: names, toolkits and plugins as a whole, and every agent at once."""
