"""The values that all is decided over: tools, plugins, toolkits, loadouts, agents, leases. Imports no other folder."""
