"""What a configuration may say: its sections, their values, their validation. Knows `documents`."""
