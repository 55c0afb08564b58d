"""The durable queue in Postgres: jobs without content, the statements on them, and their metrics."""
