"""One module per resource of the API. A route imports no other route."""
