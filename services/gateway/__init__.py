"""The HTTP API. A route parses the request, makes one call and shapes the response."""
