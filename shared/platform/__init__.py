"""What every capability uses: resources, API keys, agents, idempotency, directives and spend."""
