"""Processes that answer: the gateway, the command line, and the stack on one machine."""
