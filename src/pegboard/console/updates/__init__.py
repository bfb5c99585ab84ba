"""What tells an open page that something has changed."""
