"""What there is to search and to explain: names, and toolkits and plugins as a whole."""
