"""Conversation: the turns of sessions, durable in Postgres, windowed in Redis."""
