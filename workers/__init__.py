"""Worker processes: each folder but `runtime` holds the tasks of the queue of its name."""
