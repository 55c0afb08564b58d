"""Idempotency: a repeated request is executed once and gets the stored response."""
