"""Search: how texts become terms, how the index is written and queried, and how hits are ranked."""
