"""How fast and how well it remembers: each file one command that prints a table.

Every command starts a stack of its own in a temporary directory and takes it away again. No figure
stands in the code, and figures of one run are compared with each other, never with another machine's.
"""
