"""The same request twice is done once and answered the same."""
