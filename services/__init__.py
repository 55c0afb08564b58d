"""The gateway that serves the HTTP API, the `loci` command line, and the local stack."""
