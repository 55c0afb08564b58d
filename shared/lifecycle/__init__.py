"""Delete, erase, export, import and reindex: what concerns several kinds of record at once."""
