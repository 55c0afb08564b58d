"""Queue `sweep`: asks the stores, not the broker, what is unfinished, expired or astray, and mends it."""
