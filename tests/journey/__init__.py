"""Whole stacks of real processes and real stores, seen from outside, over HTTP."""
