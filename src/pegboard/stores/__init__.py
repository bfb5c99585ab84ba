"""Where state, switches, manifests and the audit trail are kept: in memory or in a SQLite file."""
