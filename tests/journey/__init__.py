"""End-to-end tests: a whole stack of real processes and databases, used over HTTP and the command line."""
