"""Working memory: short-lived entries that agents, patrols and subagents share; all of them expire."""
