"""Industry patterns: which tools consenting tenants call in a flow, in which order, and how it ends."""
