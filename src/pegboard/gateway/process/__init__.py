"""The process that serves: its logs, its signals, and the entry by which clients find it."""
