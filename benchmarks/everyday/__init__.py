"""Everyday requests over the tools of twenty published servers; the data, and how they were made."""
