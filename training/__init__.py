"""How the table of word pieces is made (docs/retrieval.md); nothing of it is installed."""
