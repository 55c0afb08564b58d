"""What two processes must agree on: records, statements, stages, and the clients of the stores."""
