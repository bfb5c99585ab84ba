"""Where state, switches, manifests and the audit trail are kept: in a SQL database; or around one that can be lost."""
