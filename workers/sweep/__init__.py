"""Queue `sweep`: repair and expire what is unfinished or expired. It asks the databases, not the broker."""
