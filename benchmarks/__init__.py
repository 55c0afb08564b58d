"""Benchmarks of speed and recall: each command prints a table.

Every command runs a stack of its own in a temporary directory, which is deleted at the end. The code
contains no figures: compare the figures of one run with each other, and not with another machine's.
"""
