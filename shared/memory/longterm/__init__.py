"""Long-term memory: permanent entries, found by what they say."""
