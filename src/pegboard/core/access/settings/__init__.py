"""What operators and agents set of permissions, and how it is shown: panels, own settings, predicates."""
