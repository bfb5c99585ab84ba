"""Sessions as operators see and delete them."""
