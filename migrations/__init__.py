"""The schema of Postgres, as a sequence of migrations. Its address comes from `shared.foundation.config`."""
