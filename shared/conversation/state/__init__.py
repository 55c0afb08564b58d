"""What a session, an agent or a scratch store holds: keys, a transcript, labelled collections."""
