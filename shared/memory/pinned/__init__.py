"""Texts that stand in every context of an agent or of a user."""
