"""The knowledge graph: entities with their names, and triples that say what connects them and when."""
