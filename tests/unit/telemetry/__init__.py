"""Logs and traces without a stack."""
