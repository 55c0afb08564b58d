"""What is left to do, as rows without content: the queue of record."""
