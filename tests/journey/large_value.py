"""A text that is too large for a context."""

LARGE = "# Findings\n\n{secret}\n\n" + "All is well. " * 1500
