"""The scratchpad of a session: short snippets that an agent notes while it works, and promotes at the end."""
