"""Queue `embedding`: index → embed → done. Writes points that a save could not write, and adds embeddings."""
