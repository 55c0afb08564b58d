"""Check what a model proposes against the memories that it was shown. Pure functions, without I/O."""
