"""Rank tools by how well they answer a need."""
