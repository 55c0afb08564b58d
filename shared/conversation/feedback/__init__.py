"""Feedback: signals of what went well or wrong in a session, for dreams to learn from."""
