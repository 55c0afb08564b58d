"""The schema of Postgres, as steps. Its address comes from `shared.config`."""
