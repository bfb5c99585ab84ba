"""Messages to people who do not look at the console: what they say, how they are sent, and when."""
