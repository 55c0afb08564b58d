"""Tenants and their API keys: who may call."""
