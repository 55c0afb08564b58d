"""Sessions: a session is one conversation, task or sub-task of an agent."""
