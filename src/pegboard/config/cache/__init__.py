"""Compiled configurations of earlier starts, read without the schema."""
