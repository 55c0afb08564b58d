"""The context of an agent's next model call, built from a user's message."""
