"""The documents of a tenant: uploaded, parsed by a worker, searched on request with citations."""
