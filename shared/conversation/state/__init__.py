"""The state of a session, an agent or a scratch store: keys, a transcript and labelled collections."""
