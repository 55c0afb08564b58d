"""Logs and traces without a running stack."""
