"""What joins a configuration: registered plugins that it names, toolkits and loadouts of code and packages."""
