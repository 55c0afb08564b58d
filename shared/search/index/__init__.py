"""The index: everything between a record and being found. Derived, and rebuildable from the stores."""
