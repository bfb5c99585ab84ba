"""What passes over a connection, seen one message at a time. Imports no other folder of the source."""
