"""How a worker executes one pass of a run, whichever queue the pass belongs to. No queue has this name."""
