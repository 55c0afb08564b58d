"""Queue `sweep`: repair and expire what is unfinished or expired, by asking the databases and not the broker."""
