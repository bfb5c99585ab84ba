"""The shape of a configuration: its sections, their values, their validation. Imports `documents`."""
