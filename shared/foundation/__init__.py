"""Vocabulary and rules that every other package builds on. Nothing here opens a connection."""
