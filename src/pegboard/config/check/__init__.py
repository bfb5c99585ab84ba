"""What a configuration must keep to besides its shape. Knows `schema` and `documents`."""
