# An import from here would put the distribution on sys.path for every other test.
collect_ignore = ["acme_tools"]
