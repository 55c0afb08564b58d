"""Queue `embedding`: index → embed → done. Writes keyword points that their savers could not, and adds vectors."""
