"""Dream runs: start a run, read what it needs, apply the outcome of a pass, undo the run."""
