"""What passes over a connection, seen one message at a time. Knows no other room of the source."""
