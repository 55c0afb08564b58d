"""Clients of what Loci does not own: the stores, the broker, the models."""
