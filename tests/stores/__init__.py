"""Starters of real stores that only tests run."""
