"""What dreams do to the knowledge graph: apply what was extracted, expire what is stale, and undo both."""
