"""The rolling summary of a session: what its turns before the window say, in one text."""
