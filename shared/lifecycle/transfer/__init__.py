"""Memory in and out: NDJSON of a scope, and the folders of a RockBot agent."""
