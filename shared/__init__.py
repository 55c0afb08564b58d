"""What two processes must agree on: records, their statements, their stages, and the clients of the stores."""
