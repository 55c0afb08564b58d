"""Queue `embedding`: index → embed → done. Writes points that savers could not, and adds vectors."""
