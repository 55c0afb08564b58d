"""Agents: the root of what an agent has beyond its sessions."""
