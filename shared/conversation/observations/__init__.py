"""Observations: facts, summaries and reflections that belong to a session."""
