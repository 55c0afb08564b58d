"""What decides whether a proposed text becomes a record: a judge, and how far it is trusted."""
