"""The durable queue: jobs without content in Postgres, what happens to them, and what is measured of them."""
