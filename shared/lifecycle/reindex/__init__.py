"""Keep the index in step with the databases and the model: create, fill and promote generations."""
