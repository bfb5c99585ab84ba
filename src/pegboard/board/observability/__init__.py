"""What happened: events, the audit trail, numbers. Every folder of the board may import it."""
