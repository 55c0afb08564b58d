"""Queue `summary`: what the oldest turns of sessions say, in one text for each session."""
