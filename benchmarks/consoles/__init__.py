"""The parts of the benchmark of the console: what it runs over, who visits it, and what is timed."""
