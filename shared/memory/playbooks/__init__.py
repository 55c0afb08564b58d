"""Playbooks: how a flow went before, in tool calls, and to which user query it was the answer."""
