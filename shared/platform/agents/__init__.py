"""Agents: the profile, texts and files that an agent has beyond its sessions."""
