"""What happened: events, the audit trail, numbers. For every room of the board."""
