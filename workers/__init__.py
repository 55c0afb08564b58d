"""Processes that consume: the folder's name is the queue's name."""
