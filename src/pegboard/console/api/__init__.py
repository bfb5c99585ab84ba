"""The same as JSON, with its OpenAPI document."""
