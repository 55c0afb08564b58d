"""Observations: facts, summaries and reflections that are attached to a session."""
