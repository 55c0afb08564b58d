"""Typed values and collections that are compared exactly and written as JSON without loss."""
