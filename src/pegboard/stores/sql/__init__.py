"""The store in a SQL database: SQLite or PostgreSQL."""
