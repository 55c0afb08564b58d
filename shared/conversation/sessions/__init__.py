"""Sessions: one conversation, task or sub-task of an agent."""
