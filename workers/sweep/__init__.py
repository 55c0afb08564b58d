"""Queue `sweep`: repair unfinished work and delete expired records, as the databases list them."""
