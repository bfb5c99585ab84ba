"""What there is: the catalog, kept up with the sources. For the board only."""
