"""Promotion: what is worth keeping of a scratchpad becomes a memory, or a line of the business context."""
