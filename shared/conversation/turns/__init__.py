"""Turns: the messages of sessions, durable in Postgres, with the last ones cached in Redis."""
