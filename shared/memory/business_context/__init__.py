"""The business context of a tenant: one text, `agent.md`, that people write and promotions add lines to."""
