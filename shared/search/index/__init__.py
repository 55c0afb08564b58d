"""The search index in Qdrant. It is derived data, and can be rebuilt from the databases."""
