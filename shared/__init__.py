"""Code that all processes share: records, SQL statements, pipelines, and the clients of the databases."""
