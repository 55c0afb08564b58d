"""Offline consolidation of one scope's memory: propose changes, verify each of them, apply and undo them."""
