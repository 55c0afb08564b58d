"""Queue `embedding`: index → embed → done. Writes points that savers could not write, and adds embeddings."""
