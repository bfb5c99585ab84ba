"""What is read of a session and changes nothing: surface, wire list, search, explanation. For sessions only."""
