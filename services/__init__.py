"""The processes that serve requests: the gateway, the command line, and the local stack."""
