"""Long-term memory: permanent memories, found by their content."""
