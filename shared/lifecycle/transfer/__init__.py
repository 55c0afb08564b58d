"""Export and import: NDJSON of a scope, and the folders of a RockBot agent."""
