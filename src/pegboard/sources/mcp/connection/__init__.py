"""One connection to a server: started once, shared, started anew."""
