"""The tools that language models hold: names, schemas and short answers for what the routes offer."""
