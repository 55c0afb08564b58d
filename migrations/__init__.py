"""The schema of Postgres, as steps. Its address comes from `shared.foundation.config`."""
