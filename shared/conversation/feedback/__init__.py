"""Feedback signals: reports of what went well or wrong in a session, which dreams learn from."""
