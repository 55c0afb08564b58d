"""Sessions and their content: turns, observations, feedback signals and state."""
