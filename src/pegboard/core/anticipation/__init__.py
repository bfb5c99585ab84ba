"""WHAT IS LOADED AHEAD? Leases for what is about to be needed: by a message, or beside what is used (S5)."""
