"""A surface and its changes in the form of each model provider: plain dicts; no provider's client is imported."""
