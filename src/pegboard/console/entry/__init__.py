"""Who may use the console: one-time codes, signed-in operators, requests of other sites."""
