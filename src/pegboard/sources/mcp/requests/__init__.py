"""One request to a server: sending it, its second try, the questions before its answer."""
