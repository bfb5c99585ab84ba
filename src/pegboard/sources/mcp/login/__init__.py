"""Logins to servers over HTTP: found by metadata, completed by a person or the gateway, renewed by one process."""
