"""A real small model plays the notes and the examples: `make model-check`, never part of `make test`."""
