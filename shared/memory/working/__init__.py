"""Working memory: the desk that agents, patrols and subagents share, where everything expires."""
