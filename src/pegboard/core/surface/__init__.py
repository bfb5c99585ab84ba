"""What does the model see? Hints, policy, focus and what they cost. Imports `model`, `access` and `state`."""
