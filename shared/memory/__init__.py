"""What an agent knows: one package for each kind of memory."""
