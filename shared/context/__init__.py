"""The main job: a user's message in, the context of the next model call out."""
