"""Arguments of a call against the tool's schema (X2)."""

from pegboard.arguments.validator import SchemaValidator

__all__ = ["SchemaValidator"]
