"""Typed values and collections, compared exactly and written as JSON without loss."""
