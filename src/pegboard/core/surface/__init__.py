"""What does the model see? Hints, policy, focus and what they cost. Knows `model`, `access` and `state`."""
